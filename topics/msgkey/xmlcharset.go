package msgkey

import (
	"bytes"
	"unicode/utf8"
)

// charset is how a document's octets stand for characters. Keys are UTF-8, so
// that one invoice in two encodings has one key.
type charset uint8

const (
	utf8Charset charset = iota
	asciiCharset
	latin1Charset  // ISO-8859-1
	latin9Charset  // ISO-8859-15
	windowsCharset // windows-1252
)

// charsetOf knows the declared encodings that invoices come in. All of them are
// supersets of ASCII, so that markup is the same in each. Others are refused;
// "UTF-16" too, as what declares it in octets is not what it says.
func charsetOf(name []byte) (charset, bool) {
	for _, known := range [...]struct {
		name string
		is   charset
	}{
		{"UTF-8", utf8Charset},
		{"UTF8", utf8Charset},
		{"US-ASCII", asciiCharset},
		{"ASCII", asciiCharset},
		{"ISO-8859-1", latin1Charset},
		{"LATIN1", latin1Charset},
		{"ISO-8859-15", latin9Charset},
		{"windows-1252", windowsCharset},
		{"CP1252", windowsCharset},
	} {
		if bytes.EqualFold(name, []byte(known.name)) {
			return known.is, true
		}
	}
	return utf8Charset, false
}

// width is how many octets the character behind ASCII at the begin of data has;
// 0 if there is none that XML takes.
func (c charset) width(data []byte) int {
	switch c {
	case utf8Charset:
		r, size := utf8.DecodeRune(data)
		if size == 1 || !character(r) {
			return 0
		}
		return size
	case asciiCharset:
		return 0
	case latin1Charset, latin9Charset, windowsCharset:
	}
	return 1
}

// valid reports that text consists of characters alone.
func (c charset) valid(text []byte) bool {
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b < ' ' && !blank(b):
			return false
		case b < 0x80:
			i++
		default:
			size := c.width(text[i:])
			if size == 0 {
				return false
			}
			i += size
		}
	}
	return true
}

// append adds text as UTF-8.
func (c charset) append(dst, text []byte) []byte {
	if c == utf8Charset {
		return append(dst, text...)
	}
	for _, b := range text {
		if b < 0x80 {
			dst = append(dst, b)
			continue
		}
		dst = utf8.AppendRune(dst, c.rune(b))
	}
	return dst
}

// appendDecoded adds checked text as UTF-8 with its references resolved.
func (c charset) appendDecoded(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return c.append(dst, text)
		}
		dst = c.append(dst, text[:i])
		r, size := reference(text[i:])
		dst = utf8.AppendRune(dst, r)
		text = text[i+max(size, 1):]
	}
}

// rune is the character of an octet behind ASCII in a charset of one octet each.
func (c charset) rune(b byte) rune {
	switch c {
	case latin9Charset:
		if i := bytes.IndexByte([]byte("\xA4\xA6\xA8\xB4\xB8\xBC\xBD\xBE"), b); i >= 0 {
			return [...]rune{'€', 'Š', 'š', 'Ž', 'ž', 'Œ', 'œ', 'Ÿ'}[i]
		}
	case windowsCharset:
		if b < 0xA0 {
			return [...]rune{
				'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8D, 'Ž', 0x8F,
				0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9D, 'ž', 'Ÿ',
			}[b-0x80]
		}
	case utf8Charset, asciiCharset, latin1Charset:
	}
	return rune(b)
}
