package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// invoiceWith replaces parts of invoice, in pairs.
func invoiceWith(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(invoice) }

func TestX12(t *testing.T) {
	t.Parallel()
	const key = "x12:ZZ:ACMEBUYER/01:009876543/000004711"
	const ellipsis = "\xE2\x80\xA6"
	fake := "~ISA*~IEA*1*000000001~"
	tests := map[string]struct {
		value, key string
		code       msgkey.Code
	}{
		"no last terminator":         {value: strings.TrimSuffix(invoice, "~\n"), key: key},
		"no last terminator, break":  {value: strings.TrimSuffix(invoice, "~\n") + "\r\n\x1A", key: key},
		"indented":                   {value: invoiceWith("\n", "\r\n \t"), key: key},
		"terminators behind IEA":     {value: invoice + "~\n~", key: key},
		"terminator of three octets": {value: invoiceWith("~", ellipsis), key: key},
		"terminator in Latin-1":      {value: invoiceWith("~", "\x85"), key: key},
		"wrapped, three octets":      {value: wrap(invoiceWith("~", ellipsis, "\n", ""), 80, "\n"), key: key},
		"test":                       {value: invoiceWith("*P*", "*T*"), key: key + "/T"},
		"unknown usage":              {value: invoiceWith("*P*", "*X*"), key: key + "/X"},
		"blank usage":                {value: invoiceWith("*P*", "* *"), key: key + "/%20"},
		"blank qualifier":            {value: invoiceWith("*ZZ*", "*  *"), key: "x12::ACMEBUYER/01:009876543/000004711"},
		"BIN fakes a trailer":        {value: invoiceWith("SE*2", "BIN*22*"+fake+"~SE*2"), key: key},
		"BDS fakes a trailer":        {value: invoiceWith("SE*2", "BDS*ASC*22*"+fake+"~SE*2"), key: key},
		"BIN without a length":       {value: invoiceWith("SE*2", "BIN**x~BIN~BDS*a~SE*2"), key: key},

		"nothing":                {value: "ISA", code: msgkey.X12ISATruncated},
		"105 octets":             {value: invoice[:105], code: msgkey.X12ISATruncated},
		"lower case":             {value: "isa*", code: msgkey.X12NoISA},
		"element is a letter":    {value: "ISAX" + invoice[4:], code: msgkey.X12BadSeparators},
		"element is a blank":     {value: "ISA " + invoice[4:], code: msgkey.X12BadSeparators},
		"element is a break":     {value: "ISA\n" + invoice[4:], code: msgkey.X12BadSeparators},
		"element in an id":       {value: invoiceWith("ACMEBUYER ", "ACME*BUYER"), code: msgkey.X12ISALayout},
		"break in an id":         {value: invoiceWith("ACMEBUYER ", "ACMEBUYER\n"), code: msgkey.X12ISALayout},
		"terminator is element":  {value: invoiceWith("~", "*"), code: msgkey.X12BadSeparators},
		"terminator is sub":      {value: invoiceWith("~", ":"), code: msgkey.X12BadSeparators},
		"terminator is a letter": {value: invoiceWith("~", "x"), code: msgkey.X12BadSeparators},
		"no sender":              {value: invoiceWith("*ACMEBUYER      *01", "*               *01"), code: msgkey.X12MissingSender},
		"letters in ISA13":       {value: invoiceWith("000004711", "00000471x"), code: msgkey.X12BadControlNumber},
		"ISA alone":              {value: invoice[:106], code: msgkey.X12NoIEA},
		"longer id than IEA":     {value: invoiceWith("IEA*", "IEAX*"), code: msgkey.X12NoIEA},
		"BIN beyond the end":     {value: invoiceWith("SE*2", "BIN*99999999999999999999*~SE*2"), code: msgkey.X12NoIEA},
		"rest behind IEA":        {value: invoice + "GS*", code: msgkey.X12NoIEA},
		"IEA without a number":   {value: invoiceWith("IEA*1*000004711", "IEA*1"), code: msgkey.X12IEAMismatch},
		"IEA without zeros":      {value: invoiceWith("IEA*1*000004711", "IEA*1*4711"), code: msgkey.X12IEAMismatch},
		"two":                    {value: invoice + invoice, code: msgkey.X12MultipleInterchanges},
		"second before IEA":      {value: invoice[:107] + invoice, code: msgkey.X12MultipleInterchanges},
		"second, other element":  {value: invoice + invoiceWith("*", "|"), code: msgkey.X12MultipleInterchanges},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, code := keyOf(t, msgkey.X12, []byte(tt.value))
			require.Equal(t, tt.code, code)
			require.Equal(t, tt.key, key)
		})
	}
}

func TestX12WithDate(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		invoice:                             "x12:ZZ:ACMEBUYER/01:009876543/000004711/261102",
		invoiceWith("*P*", "*T*"):           "x12:ZZ:ACMEBUYER/01:009876543/000004711/261102/T",
		invoiceWith("*261102*", "*      *"): "x12:ZZ:ACMEBUYER/01:009876543/000004711/",
	}
	for value, want := range tests {
		found, code := attempt(t, msgkey.X12, &msgkey.Message{Value: []byte(value)})
		require.Empty(t, code)
		require.Equal(t, want, found.KeyWithDate())
		requireRoundTrip(t, want)
	}
}
