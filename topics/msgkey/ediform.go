package msgkey

import (
	"bufio"
	"bytes"
)

// Octets of the canonical form of EDI, whatever the interchange itself uses.
const (
	formTerminator = 0x1C
	formElement    = 0x1D
	formRepetition = 0x1E
	formComponent  = 0x1F
	formEscape     = 0x10 // before one of these octets that is data
	formDecimal    = '.'  // behind an escape: the decimal mark of a number
)

// maxNumber is longer than any number of EDI (n..35, sign and mark).
const maxNumber = 40

// ediForm writes an interchange with fixed separators and without what a file
// may gain on its way: line ends, wrapping, blanks between segments, a mark of
// end of file. Values stay as they are, stamps of time too. Only a decimal mark
// is mapped, in what looks like a number: other text with a comma is another
// text.
func ediForm(w *bufio.Writer, _ *Message, p payload) bool {
	switch {
	case p.utf16:
		return false
	case p.format == FormatEDIFACT:
		return edifactForm(w, p.data)
	case p.format == FormatX12:
		return x12Form(w, p.data)
	}
	return false
}

// formWriter writes components; most are a few octets long.
type formWriter struct {
	*bufio.Writer

	value []byte // of the component in work, as far as it is not written yet
	long  bool   // its begin is written: it is no number
}

func (w *formWriter) octet(c byte) {
	if w.value = append(w.value, c); len(w.value) > maxNumber {
		w.data(w.value)
		w.value, w.long = w.value[:0], true
	}
}

// end closes the component with a separator of the form.
func (w *formWriter) end(separator, decimal byte) {
	rest := w.value
	if mark := bytes.IndexByte(rest, decimal); mark >= 0 && !w.long && isNumber(rest, mark) {
		w.data(rest[:mark])
		_ = w.WriteByte(formEscape)
		_ = w.WriteByte(formDecimal)
		rest = rest[mark+1:]
	}
	w.data(rest)
	_ = w.WriteByte(separator)
	w.value, w.long = w.value[:0], false
}

// data writes octets of a value. Errors stay in the writer until Flush.
func (w *formWriter) data(value []byte) {
	for _, c := range value {
		if c >= formTerminator && c <= formComponent || c == formEscape {
			_ = w.WriteByte(formEscape)
		}
		_ = w.WriteByte(c)
	}
}

// isNumber reports digits around a decimal mark, with or without a sign.
func isNumber(value []byte, mark int) bool {
	whole, fraction := value[:mark], value[mark+1:]
	if len(whole) > 0 && (whole[0] == '-' || whole[0] == '+') {
		whole = whole[1:]
	}
	return len(fraction) > 0 && digits(whole) && digits(fraction)
}
