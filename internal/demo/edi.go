package demo

import (
	"fmt"
	"strings"
)

// hub is the receiver of every interchange.
const (
	hubGLN = "4012345000023" // EDIFACT: GS1 location number, qualifier 14
	hubID  = "HUBONE"        // X12: mutually defined, qualifier ZZ
)

// gln is the nth partner's GS1 location number: 12 digits and the check digit
// of GS1's standard weights.
func gln(n int) string {
	digits := fmt.Sprintf("4098765000%02d", n)
	sum := 0
	for i := range digits {
		sum += int(digits[i]-'0') * (1 + 2*(i%2))
	}
	return fmt.Sprintf("%s%d", digits, (10-sum%10)%10)
}

// edifact is an interchange with one message (ISO 9735 syntax 3, UN/EDIFACT
// D.96A). The control reference has at most 14 characters.
func edifact(sender, control, kind string, body ...string) []byte {
	segments := []string{
		"UNA:+.? ",
		"UNB+UNOC:3+" + sender + ":14+" + hubGLN + ":14+261129:1402+" + control,
		"UNH+1+" + kind,
	}
	segments = append(segments, body...)
	segments = append(segments,
		fmt.Sprintf("UNT+%d+1", len(body)+2),
		"UNZ+1+"+control,
	)
	return []byte(strings.Join(segments, "'\n") + "'\n")
}

// invoice is an INVOIC interchange over one line.
func invoice(sender, control string, quantity int) []byte {
	return edifact(sender, control, "INVOIC:D:96A:UN:EAN008",
		"BGM+380+RE"+control+"+9",
		"DTM+137:20261129:102",
		"RFF+ON:PO"+control,
		"NAD+SU+"+sender+"::9",
		"NAD+BY+"+hubGLN+"::9",
		"CUX+2:EUR:4",
		"LIN+1++4000862141404:EN",
		fmt.Sprintf("QTY+47:%d", quantity),
		fmt.Sprintf("MOA+203:%d.00", 12*quantity),
		"PRI+AAA:12.00",
		"UNS+S",
		fmt.Sprintf("MOA+77:%d.00", 12*quantity),
	)
}

// orders is an ORDERS interchange over one line.
func orders(sender, control string, quantity int) []byte {
	return edifact(sender, control, "ORDERS:D:96A:UN:EAN008",
		"BGM+220+PO"+control+"+9",
		"DTM+137:20261129:102",
		"NAD+BY+"+sender+"::9",
		"NAD+SU+"+hubGLN+"::9",
		"LIN+1++4000862141404:EN",
		fmt.Sprintf("QTY+21:%d", quantity),
		"UNS+S",
		"CNT+2:1",
	)
}

// cut is an interchange that lost its end in transit, the UNZ segment.
func cut(interchange []byte) []byte {
	return interchange[:strings.LastIndex(string(interchange), "UNZ+")]
}

// edifactKey is the dedup key of an interchange: sender, receiver, control
// reference.
func edifactKey(sender, control string) string {
	return "edifact:" + sender + ":14/" + hubGLN + ":14/" + control
}

// x12 is an interchange with one group and one transaction set (ANSI X12
// 004010). ISA has fixed widths: 106 octets with its terminator.
func x12(sender string, control int, group, set string, body ...string) []byte {
	segments := []string{
		fmt.Sprintf("ISA*00*%10s*00*%10s*ZZ*%-15s*ZZ*%-15s*261129*1402*U*00401*%09d*0*P*>", "", "", sender, hubID, control),
		fmt.Sprintf("GS*%s*%s*%s*20261129*1402*%d*X*004010", group, sender, hubID, control),
		"ST*" + set + "*0001",
	}
	segments = append(segments, body...)
	segments = append(segments,
		fmt.Sprintf("SE*%d*0001", len(body)+2),
		fmt.Sprintf("GE*1*%d", control),
		fmt.Sprintf("IEA*1*%09d", control),
	)
	return []byte(strings.Join(segments, "~\n") + "~\n")
}

// purchaseOrder is an 850.
func purchaseOrder(sender string, control, quantity int) []byte {
	return x12(sender, control, "PO", "850",
		fmt.Sprintf("BEG*00*SA*PO%d**20261129", control),
		fmt.Sprintf("PO1*1*%d*EA*9.99**UP*400086214140", quantity),
		"CTT*1",
	)
}

// x12Invoice is an 810.
func x12Invoice(sender string, control, quantity int) []byte {
	return x12(sender, control, "IN", "810",
		fmt.Sprintf("BIG*20261129*RE%d*20261128*PO%d", control, control),
		fmt.Sprintf("IT1*1*%d*EA*9.99**UP*400086214140", quantity),
		fmt.Sprintf("TDS*%d", 999*quantity),
		"CTT*1",
	)
}

// x12Key is the dedup key of an interchange: sender, receiver, control number.
func x12Key(sender string, control int) string {
	return fmt.Sprintf("x12:ZZ:%s/ZZ:%s/%09d", sender, hubID, control)
}
