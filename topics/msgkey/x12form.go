package msgkey

import (
	"bufio"
	"bytes"
)

const (
	isaRepetition   = 82 // ISA11
	isaVersion      = 84 // ISA12, to 88
	firstRepeating  = "00402"
	binElements     = 2 // separators before the raw octets of BIN
	bdsElements     = 3
	formSeparatorOf = 'r' // behind an escape: ISA11 is the repetition separator
)

// x12Form writes ISA and the segments behind it. Raw octets of BIN and BDS are
// written as they are, but not where line breaks were taken out of the file:
// some of them may have been data. It gives up on a second interchange, and on a
// last segment that does not end: blanks behind it might be data.
func x12Form(b *bufio.Writer, data []byte) bool {
	whole := unwrap(data)
	h, body, code := readISA(whole)
	if code != "" {
		return false
	}
	f := x12Writer{formWriter: formWriter{Writer: b}, isa: &h, component: whole[isaComponent], wrapped: len(whole) != len(data)}
	f.repetition, f.repeats = whole[isaRepetition], string(whole[isaVersion:isaVersion+5]) >= firstRepeating &&
		!alphanumeric(whole[isaRepetition]) && whole[isaRepetition] != ' '
	_, _ = b.WriteString("x12\x00")
	f.header(whole)
	return f.body(body)
}

type x12Writer struct {
	formWriter

	isa                   *isa
	component, repetition byte
	repeats, wrapped      bool
}

// header writes ISA. Its separators are no data.
func (f *x12Writer) header(data []byte) {
	for i, c := range data[:isaComponent] {
		switch {
		case i == isaRepetition && f.repeats:
			_, _ = f.Write([]byte{formEscape, formSeparatorOf})
		case c == f.isa.element:
			_ = f.WriteByte(formElement)
		default:
			f.data([]byte{c})
		}
	}
	_ = f.WriteByte(formTerminator)
}

func (f *x12Writer) body(data []byte) bool {
	for {
		data = bytes.TrimLeft(data, " \t\r\n")
		if len(bytes.TrimLeft(data, trailingBlanks)) == 0 {
			return true
		}
		if bytes.HasPrefix(data, []byte("ISA")) {
			return false
		}
		raw := f.isa.binaryEnd(data)
		if raw > 0 && f.wrapped {
			return false
		}
		segment, behind := f.isa.cut(data)
		switch { // as in iea.go, IEA may lack its terminator, and no other
		case f.isa.is(segment, "IEA"): // a blank behind it may stand before a terminator
			segment = bytes.TrimRight(segment, trailingBlanks)
		case behind == nil:
			return false
		}
		f.segment(segment, raw)
		data = behind
	}
}

// segment writes one; octets before raw are data once the separators before
// them are past.
func (f *x12Writer) segment(segment []byte, raw int) {
	separators := binElements
	if f.isa.is(segment, "BDS") {
		separators = bdsElements
	}
	for i, c := range segment {
		if i < raw && separators == 0 {
			f.octet(c)
			continue
		}
		switch {
		case c == f.isa.element:
			separators--
			f.end(formElement, 0)
		case c == f.component:
			f.end(formComponent, 0)
		case f.repeats && c == f.repetition:
			f.end(formRepetition, 0)
		default:
			f.octet(c)
		}
	}
	f.end(formTerminator, 0)
}
