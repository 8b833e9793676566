package msgkey

import (
	"bufio"
	"bytes"
)

// edifactForm writes the segments from UNB on; UNA says nothing more once they
// are read. It gives up on a second interchange, whose service characters may
// be others, on a package of binary data (UNO), and on a last segment without
// its terminator.
func edifactForm(b *bufio.Writer, data []byte) bool {
	s, rest, code := readUNA(data)
	if code != "" {
		return false
	}
	decimal, repetition := byte('.'), byte('*')
	if s.advised {
		decimal, repetition = data[5], data[7]
	}
	if rest, code = s.openUNB(rest); code != "" {
		return false
	}
	f := edifactWriter{formWriter: formWriter{Writer: b}, service: s, decimal: decimal, repetition: repetition, first: true, element: unbSyntax}
	_, _ = b.WriteString("edifact\x00UNB")
	_ = b.WriteByte(formElement)
	return f.write(rest)
}

type edifactWriter struct {
	formWriter
	service

	decimal, repetition byte
	repeats             bool // version 4: repetition separates
	first               bool // in UNB
	element, position   int  // of the component in work; element 0 is the tag
}

func (f *edifactWriter) write(data []byte) bool {
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case f.dropped(c):
		case f.releases && c == f.release:
			if i = f.skipDropped(data, i+1); i < len(data) {
				f.octet(data[i])
			}
		case c == f.component:
			f.close(formComponent)
			f.position++
		case f.repeats && c == f.repetition:
			f.close(formRepetition)
			f.position = 0
		case c == f.service.element:
			if !f.closeTag() {
				return false
			}
			f.close(formElement)
			f.element, f.position = f.element+1, 0
		case c == f.terminator:
			if !f.closeTag() {
				return false
			}
			f.close(formTerminator)
			f.first, f.element, f.position = false, 0, 0
			rest := f.skipBlanks(data[i+1:])
			i = len(data) - len(rest) - 1
			if len(bytes.TrimLeft(rest, trailingBlanks)) == 0 {
				return true
			}
		default:
			f.octet(c)
		}
	}
	return false
}

func (f *edifactWriter) skipDropped(data []byte, i int) int {
	for i < len(data) && f.dropped(data[i]) {
		i++
	}
	return i
}

// close ends a component. That of S001 which tells the version decides whether
// there are repetitions (ISO 9735-1, version 4).
func (f *edifactWriter) close(separator byte) {
	if f.first && f.element == unbSyntax && f.position == 1 {
		f.repeats = string(f.value) == "4" && f.repetition != ' '
	}
	f.end(separator, f.decimal)
}

// closeTag refuses the segments that the form does not know how to read.
func (f *edifactWriter) closeTag() bool {
	if f.element > 0 || f.position > 0 || len(f.value) != 3 {
		return true
	}
	switch tag := [3]byte(f.value); string(tag[:]) {
	case "UNO":
		return false
	default:
		return !opensInterchange(tag)
	}
}
