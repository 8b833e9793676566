package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// released has release characters before separators, before terminators and
// before themselves.
const released = "UNA:+.? '\nUNB+UNOC:3+A?+B?'C??:14+HUB:14+261102:0930+77001'\nUNH+1+ORDERS:D:96A:UN'\n" +
	"FTX+AAI+++QTY 5?+1 SPARE?'S UNB??'\nUNT+3+1'\nUNZ+1+77001'\n"

func TestEDIFACT(t *testing.T) {
	t.Parallel()
	unb := func(elements, ref string) string { return "UNB+" + elements + "'UNZ+0+" + ref + "'" }
	tests := map[string]struct {
		value, key string
		code       msgkey.Code
	}{
		"released":                    {value: released, key: "edifact:A+B%27C%3F:14/HUB:14/77001"},
		"components are trimmed":      {value: unb("UNOA:1+ A B : 14 +H+D+ 1 ", "1 "), key: "edifact:A%20B:14/H/1"},
		"inner empty component":       {value: unb("UNOA:1+A::R+H::+D+1", "1"), key: "edifact:A::R/H/1"},
		"octets as received":          {value: unb("UNOC:3+\xDCBER+H+D+1", "1"), key: "edifact:%DCBER/H/1"},
		"test":                        {value: unb("UNOA:1+A+H+D+1++++++1", "1"), key: "edifact:A/H/1/T"},
		"later elements do not count": {value: unb("UNOA:1+A+H+D+1++++++1+x+1", "1"), key: "edifact:A/H/1/T"},
		"0035 is not 1":               {value: unb("UNOA:1+A+H+D+1++++++11", "1"), key: "edifact:A/H/1"},
		"terminators behind UNZ":      {value: "UNA:+.? \nUNB+UNOA:1+A+H+D+1\nUNZ+0+1\n\n \n", key: "edifact:A/H/1"},
		"empty segments":              {value: "UNB+UNOA:1+A+H+D+1'''UNZ+0+1'", key: "edifact:A/H/1"},
		"indented segments":           {value: "UNB+UNOA:1+A+H+D+1'\n\t UNZ+0+1'", key: "edifact:A/H/1"},
		"break inside the tag":        {value: "UNB+UNOA:1+A+H+D+1'UN\r\nZ+0+1'", key: "edifact:A/H/1"},
		"break behind a release":      {value: unb("UNOA:1+A?\r\n+B+H+D+1", "1"), key: "edifact:A+B/H/1"},
		"released terminator":         {value: "UNB+UNOA:1+A+H+D+1'FTX+???'UNZ+0+2'UNZ+0+1'", key: "edifact:A/H/1"},
		"release releases itself":     {value: "UNB+UNOA:1+A+H+D+1'FTX+????'UNZ+0+1'", key: "edifact:A/H/1"},
		"UNG is no second UNB":        {value: "UNB+UNOA:1+A+H+D+1'UNG+X'UNE+1'UNZ+0+1'", key: "edifact:A/H/1"},

		"nothing behind UNB":      {value: "UNB", code: msgkey.EDIFACTUNBUnterminated},
		"unterminated":            {value: "UNB+UNOA:1+A+H+D+1", code: msgkey.EDIFACTUNBUnterminated},
		"released to the end":     {value: "UNB+UNOA:1+A+H+D+1?'", code: msgkey.EDIFACTUNBUnterminated},
		"another tag":             {value: "UNA:+.? 'UNH+1'", code: msgkey.EDIFACTNoUNB},
		"no tag":                  {value: "UNA:+.? '", code: msgkey.EDIFACTNoUNB},
		"longer tag":              {value: "UNBX+UNOA:1'", code: msgkey.EDIFACTNoUNB},
		"level B behind a UNA":    {value: "UNA:+.? 'UNB\x1DUNOB", code: msgkey.EDIFACTNoUNB},
		"other format":            {value: "ISA*00*", code: msgkey.EDIFACTNoUNB},
		"short UNA":               {value: "UNA:+.? ", code: msgkey.EDIFACTBadUNA},
		"UNA with blank element":  {value: "UNA: .? 'UNB", code: msgkey.EDIFACTBadUNA},
		"UNA release a separator": {value: "UNA:+.+ 'UNB", code: msgkey.EDIFACTBadUNA},
		"UNA release a letter":    {value: "UNA:+.x 'UNB", code: msgkey.EDIFACTBadUNA},
		"UNA terminator twice":    {value: "UNA:+.? :UNB", code: msgkey.EDIFACTBadUNA},
		"interactive":             {value: "UNA:+.?*'UIB+UNOA:4'", code: msgkey.EDIFACTInteractive},
		"syntax id in lower case": {value: unb("unoa:1+A+H+D+1", "1"), code: msgkey.EDIFACTBadSyntaxID},
		"syntax id too long":      {value: unb("UNOAA:1+A+H+D+1", "1"), code: msgkey.EDIFACTBadSyntaxID},
		"sender is a qualifier":   {value: unb("UNOA:1+ :14+H+D+1", "1"), code: msgkey.EDIFACTMissingSender},
		"nothing but a syntax id": {value: "UNB+UNOA:1'", code: msgkey.EDIFACTMissingSender},
		"no recipient":            {value: "UNB+UNOA:1+A'", code: msgkey.EDIFACTMissingRecipient},
		"no reference":            {value: unb("UNOA:1+A+H+D", "1"), code: msgkey.EDIFACTMissingControlRef},
		"blank reference":         {value: unb("UNOA:1+A+H+D+  ", "  "), code: msgkey.EDIFACTMissingControlRef},
		"no UNZ":                  {value: "UNB+UNOA:1+A+H+D+1'UNT+1'", code: msgkey.EDIFACTNoUNZ},
		"UNZ without terminator":  {value: "UNB+UNOA:1+A+H+D+1'UNZ+0+1", code: msgkey.EDIFACTNoUNZ},
		"UNZ, released":           {value: "UNB+UNOA:1+A+H+D+1'UNZ+0+1?'", code: msgkey.EDIFACTNoUNZ},
		"rest behind UNZ":         {value: unb("UNOA:1+A+H+D+1", "1") + "UNH+1'", code: msgkey.EDIFACTNoUNZ},
		"other reference":         {value: unb("UNOA:1+A+H+D+1", "01"), code: msgkey.EDIFACTUNZMismatch},
		"UNZ without reference":   {value: "UNB+UNOA:1+A+H+D+1'UNZ+0'", code: msgkey.EDIFACTUNZMismatch},
		"UNZ with a component":    {value: unb("UNOA:1+A+H+D+1", "1:1"), code: msgkey.EDIFACTUNZMismatch},
		"tag begins with UNZ":     {value: "UNB+UNOA:1+A+H+D+1'UNZ0+0+1'", code: msgkey.EDIFACTUNZMismatch},
		"two":                     {value: unb("UNOA:1+A+H+D+1", "1") + unb("UNOA:1+A+H+D+2", "2"), code: msgkey.EDIFACTMultipleInterchanges},
		"second with a UNA":       {value: unb("UNOA:1+A+H+D+1", "1") + "\nUNA|^!* ~UNB^", code: msgkey.EDIFACTMultipleInterchanges},
		"second before UNZ":       {value: "UNB+UNOA:1+A+H+D+1'\n UNB+UNOA:1+A+H+D+1'UNZ+0+1'", code: msgkey.EDIFACTMultipleInterchanges},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, code := keyOf(t, msgkey.EDIFACT, []byte(tt.value))
			require.Equal(t, tt.code, code)
			require.Equal(t, tt.key, key)
		})
	}
}

func TestEDIFACTWithDate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	tests := map[string]string{ // UNB elements from S001 on: dated key
		"UNOA:1+A+H+261102:0930+1":            "edifact:A/H/1/261102",
		"UNOA:1+A+H+261102:0930+1++++++1":     "edifact:A/H/1/261102/T",
		"UNOA:1+A+H+20261102+1":               "edifact:A/H/1/20261102",
		"UNOA:1+A+H+ 26/11 :x+1":              "edifact:A/H/1/26%2F11",
		"UNOA:1+A+H++1":                       "edifact:A/H/1/",
		"UNOA:1+A+H++1++++++1":                "edifact:A/H/1//T",
		"UNOA:1+" + long + "+H+261102:0930+1": msgkey.Encode("edifact", msgkey.Field{long}, msgkey.Field{"H"}, msgkey.Field{"1"}, msgkey.Field{"261102"}),
	}
	for elements, want := range tests {
		found, code := attempt(t, msgkey.EDIFACT, &msgkey.Message{Value: []byte("UNB+" + elements + "'UNZ+0+1'")})
		require.Empty(t, code, elements)
		require.Equal(t, want, found.KeyWithDate())
		require.NotEqual(t, want, found.Key)
		requireRoundTrip(t, found.Key)
		requireRoundTrip(t, want)
	}
}
