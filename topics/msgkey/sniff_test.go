package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

func TestSniff(t *testing.T) {
	t.Parallel()
	tests := map[string]msgkey.Format{
		"":                                     msgkey.Empty,
		"\xEF\xBB\xBF \t\r\n\x00":              msgkey.Empty,
		"\xFF\xFE":                             msgkey.Empty,
		"UNA:+.? 'UNB":                         msgkey.FormatEDIFACT,
		"\xEF\xBB\xBF\r\n\x00UNB+":             msgkey.FormatEDIFACT,
		"UIB+UNOA:4":                           msgkey.FormatEDIFACT,
		"ISA*00*":                              msgkey.FormatX12,
		"\xFF\xFE \x00I\x00S\x00A\x00":         msgkey.FormatX12,
		"\xFE\xFF\x00<\x00a":                   msgkey.FormatXML,
		"\xFE\xFF\x01U\x00N\x00B":              msgkey.Unknown,
		" <a/>":                                msgkey.FormatXML,
		"{}":                                   msgkey.FormatJSON,
		"[1]":                                  msgkey.FormatJSON,
		"--b\r\n":                              msgkey.FormatMIME,
		"A: b\r\nC: d\r\n e\r\n\r\nbody":       msgkey.FormatMIME,
		"A: b\n\nbody":                         msgkey.FormatMIME,
		"A: b\nno field\n\n":                   msgkey.Unknown,
		"A: b\n":                               msgkey.Unknown,
		": b\n\n":                              msgkey.Unknown,
		strings.Repeat("A: b\n", 1<<15) + "\n": msgkey.Unknown, // no blank line within 64 KiB
		"STX=ANA:1+":                           msgkey.FormatTradacoms,
		"MSH|^~":                               msgkey.FormatHL7,
		"UN":                                   msgkey.Unknown,
		"unb+":                                 msgkey.Unknown,
		"anything":                             msgkey.Unknown,
	}
	for value, want := range tests {
		require.Equal(t, want, msgkey.Sniff([]byte(value)), "%.60q", value)
	}
}
