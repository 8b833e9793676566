package topics

import (
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// HeaderSourceService is a foreign header: who handed the message in. It is
// passed on untouched; its cleaned text is stored with the row.
const HeaderSourceService = "source-service"

// SourceService is the text of the last source-service header as the tables
// take it: NUL and each byte that is not UTF-8 become U+FFFD (PostgreSQL
// refuses both, and one such record must not fail its chunk), cut to 40
// characters; "" without the header. Clean text costs one copy.
func SourceService(headers []kgo.RecordHeader) string {
	value, _ := Last(headers, HeaderSourceService)
	return sourceText(value)
}

func sourceText(value []byte) string {
	// 40 characters are at most 160 bytes; a longer header is not looked at further.
	if len(value) > maxSourceService*utf8.UTFMax {
		value = value[:maxSourceService*utf8.UTFMax]
	}
	return cleanText(string(value), maxSourceService)
}

func cleanText(s string, limit int) string {
	if len(s) <= limit && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	out := make([]rune, 0, limit)
	for _, r := range s { // a broken byte arrives here as U+FFFD, one by one
		if len(out) == limit {
			break
		}
		if r == 0 {
			r = utf8.RuneError
		}
		out = append(out, r)
	}
	return string(out)
}
