package laws

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Of the messages below.
const (
	EDISender   = "4098765000014"
	EDIReceiver = "4012345000023"
	// EDIWindow is the built-in rules' for edifact and x12 keys.
	EDIWindow = 60 * 24 * time.Hour
)

// edifactOrders is an ORDERS interchange (UN/EDIFACT D.96A) with an interchange
// control reference of at most 14 characters.
func edifactOrders(control string, quantity int) []byte {
	segments := []string{
		"UNA:+.? ",
		"UNB+UNOC:3+" + EDISender + ":14+" + EDIReceiver + ":14+261129:1402+" + control,
		"UNH+1+ORDERS:D:96A:UN:EAN008",
		"BGM+220+PO" + control + "+9",
		"DTM+137:20261129:102",
		"NAD+BY+" + EDIReceiver + "::9",
		"NAD+SU+" + EDISender + "::9",
		"LIN+1++4000862141404:EN",
		fmt.Sprintf("QTY+21:%d", quantity),
		"UNS+S",
		"CNT+2:1",
		"UNT+10+1",
		"UNZ+1+" + control,
	}
	return []byte(strings.Join(segments, "'\n") + "'\n")
}

// Order is an ORDERS message as a partner sends it, and what it should become.
func Order(scope, control string, quantity int) Message {
	return Message{
		Partition: ByKey, Key: scope, Value: edifactOrders(control, quantity),
		Want: Want{Key: "edifact:" + EDISender + ":14/" + EDIReceiver + ":14/" + control, Window: EDIWindow},
	}
}

// CutOrder is an ORDERS interchange that lost its end in transit.
func CutOrder(scope, control string) Message {
	m := Order(scope, control, 5)
	m.Value = m.Value[:strings.Index(string(m.Value), "UNZ+")]
	m.Want = Want{Code: "edifact.no_unz"}
	return m
}

// x12PurchaseOrder is an 850 (ANSI X12 004010).
func x12PurchaseOrder(control, quantity int) []byte {
	segments := []string{
		fmt.Sprintf("ISA*00*%10s*00*%10s*ZZ*%-15s*ZZ*%-15s*261129*1402*U*00401*%09d*0*P*>", "", "", "ACMECORP", "HUBONE", control),
		fmt.Sprintf("GS*PO*ACMECORP*HUBONE*20261129*1402*%d*X*004010", control),
		"ST*850*0001",
		fmt.Sprintf("BEG*00*SA*PO%d**20261129", control),
		fmt.Sprintf("PO1*1*%d*EA*9.99**UP*400086214140", quantity),
		"CTT*1",
		"SE*5*0001",
		fmt.Sprintf("GE*1*%d", control),
		fmt.Sprintf("IEA*1*%09d", control),
	}
	return []byte(strings.Join(segments, "~\n") + "~\n")
}

// PurchaseOrder is an 850 message and what it should become.
func PurchaseOrder(scope string, control, quantity int) Message {
	return Message{
		Partition: ByKey, Key: scope, Value: x12PurchaseOrder(control, quantity),
		Want: Want{Key: fmt.Sprintf("x12:ZZ:ACMECORP/ZZ:HUBONE/%09d", control), Window: EDIWindow},
	}
}

// Keyed is a message with an explicit, plain key in its header.
func Keyed(scope, key string, value []byte) Message {
	return Message{
		Partition: ByKey, Key: scope, Value: value,
		Headers: []kgo.RecordHeader{{Key: "dedup-key", Value: []byte(key)}},
		Want:    Want{Key: "hdr:" + key},
	}
}
