package msgkey

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// pointer is an RFC 6901 pointer, as unescaped tokens.
type pointer []string

// parsePointer gives what is wrong with a pointer, or "".
func parsePointer(text string) (p pointer, why string) {
	if !strings.HasPrefix(text, "/") {
		return nil, "write an RFC 6901 pointer, as /orderId or /order/0/id"
	}
	for token := range strings.SplitSeq(text[1:], "/") {
		escapes := strings.Count(token, "~0") + strings.Count(token, "~1")
		if escapes != strings.Count(token, "~") {
			return nil, "write ~ as ~0 and / as ~1 in a name"
		}
		p = append(p, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	return p, ""
}

// readJSON gives an object or array that is well formed. Then the functions
// below find their way by brackets, commas and quotes alone.
func readJSON(p payload) ([]byte, bool) {
	if p.format != FormatJSON || p.utf16 || !json.Valid(p.data) {
		return nil, false
	}
	return bytes.TrimRight(p.data, outerBlanks), true
}

// resolve gives the value that a pointer names, as it is written.
func resolve(value []byte, p pointer) ([]byte, Code) {
	for _, token := range p {
		n := 0
		switch value[0] {
		case '{':
			value, n = member(value, token)
		case '[':
			value, n = arrayItem(value, token)
		}
		switch {
		case n == 0:
			return nil, JSONPointerNotFound
		case n > 1: // parsers differ in which one they take
			return nil, JSONDuplicateMember
		}
	}
	return value, ""
}

// member gives the last value of a name in an object, and how many it has.
func member(object []byte, name string) (value []byte, n int) {
	rest := skipBlanks(object[1:])
	for rest[0] != '}' {
		end := valueEnd(rest)
		key := rest[:end]
		rest = skipBlanks(skipBlanks(rest[end:])[1:]) // the colon
		end = valueEnd(rest)
		if isName(key, name) {
			value, n = rest[:end], n+1
		}
		rest = skipComma(rest[end:])
	}
	return value, n
}

func arrayItem(array []byte, index string) ([]byte, int) {
	at, err := strconv.ParseUint(index, 10, 32)
	if err != nil || strconv.FormatUint(at, 10) != index { // no sign, no leading zero
		return nil, 0
	}
	rest := skipBlanks(array[1:])
	for ; rest[0] != ']'; at-- {
		end := valueEnd(rest)
		if at == 0 {
			return rest[:end], 1
		}
		rest = skipComma(rest[end:])
	}
	return nil, 0
}

func skipBlanks(data []byte) []byte { return bytes.TrimLeft(data, outerBlanks) }

func skipComma(data []byte) []byte {
	if data = skipBlanks(data); data[0] == ',' {
		return skipBlanks(data[1:])
	}
	return data
}

// valueEnd is the length of the value that data begins with. It does not
// recurse: how deep brackets nest is the sender's choice.
func valueEnd(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += stringEnd(data[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				return i + scalarEnd(data[i:])
			}
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(data)
}

func stringEnd(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func scalarEnd(data []byte) int {
	if i := bytes.IndexAny(data, ",]} \t\r\n"); i >= 0 {
		return i
	}
	return len(data)
}

// isName compares a member's name, as it is written, with a token.
func isName(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == name
	}
	if len(quoted) > len("\"\"")+len(`\u0041`)*len(name) { // longer than all of it escaped
		return false
	}
	text, ok := unquote(quoted)
	return ok && text == name
}

// unquote reads a string. What stands for no character (a lone surrogate, text
// that is not UTF-8) is refused: replaced, as encoding/json does, two values
// would become one.
func unquote(quoted []byte) (string, bool) {
	text := quoted[1 : len(quoted)-1]
	if !utf8.Valid(text) {
		return "", false
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text), true
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] != '\\' {
			out, text = append(out, text[0]), text[1:]
			continue
		}
		r, length := escaped(text)
		if r == utf8.RuneError && length == 0 {
			return "", false
		}
		out, text = utf8.AppendRune(out, r), text[length:]
	}
	return string(out), true
}

// escaped reads one character behind a backslash; length 0 for a surrogate
// without its other half.
func escaped(text []byte) (r rune, length int) {
	if text[1] != 'u' {
		const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		return rune(to[strings.IndexByte(from, text[1])]), 2
	}
	r = hex4(text[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(text) < 12 || text[6] != '\\' || text[7] != 'u' {
		return utf8.RuneError, 0
	}
	if r = utf16.DecodeRune(r, hex4(text[8:])); r == utf8.RuneError {
		return r, 0
	}
	return r, 12
}

func hex4(digits []byte) rune {
	n, err := strconv.ParseUint(string(digits[:4]), 16, 16)
	if err != nil {
		return 0xD800 // no digits, which the caller has ruled out: as a lone surrogate
	}
	return rune(n)
}
