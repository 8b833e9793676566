package msgkey

import "bytes"

// Canonical reports whether value is a key as this package writes them, so
// that it is taken as it is: a scheme of the documentation, ":" and text of
// the key grammar (its octets only, %XX in upper case, at most MaxKey
// characters in all), or the hashed form. The scheme op is the filter's own
// and never canonical from outside.
func Canonical(value []byte) bool {
	scheme, text, ok := bytes.Cut(value, []byte(":"))
	if !ok || len(text) == 0 || len(value) > MaxKey || !knownScheme(scheme) {
		return false
	}
	head, sum, hashed := bytes.Cut(text, []byte("~"))
	if !hashed {
		return grammatical(text)
	}
	if len(head) > hashedPrefix || !lowerHexSum(sum) {
		return false
	}
	if len(head) == hashedPrefix {
		head = withoutCutEscape(head)
	}
	return grammatical(head)
}

// knownScheme includes the schemes of formats that have no extractor yet:
// their keys come in by header from other systems.
func knownScheme(scheme []byte) bool {
	switch string(scheme) {
	case "edifact", "x12", "ubl", "cii", sharedScheme, "sbdh", "as4", "as2", "oftp2",
		"sftp", "rest", "json", "ce", "cxml", "hdr":
		return true
	}
	return false
}

func grammatical(text []byte) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case plain(c), c == ':', c == '/':
		case c == '%' && i+2 < len(text) && isUpperHex(text[i+1]) && isUpperHex(text[i+2]):
			i += 2
		default:
			return false
		}
	}
	return true
}

// withoutCutEscape drops the begin of a %XX at the end of a hashed key's head:
// the cut at 110 characters may fall into one.
func withoutCutEscape(head []byte) []byte {
	n := len(head)
	if head[n-1] == '%' {
		return head[:n-1]
	}
	if head[n-2] == '%' && isUpperHex(head[n-1]) {
		return head[:n-2]
	}
	return head
}

func isUpperHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' }

func lowerHexSum(sum []byte) bool {
	if len(sum) != 64 {
		return false
	}
	for _, c := range sum {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
