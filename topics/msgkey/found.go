package msgkey

// Found is a key and where it comes from.
type Found struct {
	Key       string // canonical, at most MaxKey characters, without a date
	Extractor string // name of the extractor that gave it, never "auto"

	full   string // the key before the 200-character rule
	date   string // encoded interchange date; only if dated
	suffix int    // length of the test indicator's field at the end of full
	dated  bool
}

// newKey makes the Found of a key's fields.
func newKey(scheme string, fields ...Field) Found { return newFound(encode(scheme, fields...)) }

func newFound(full string) Found { return Found{Key: limit(full), full: full} }

// newInterchange makes the Found of an interchange from its encoded parts:
// the key's head, the field of the test indicator ("" or "/T") and the date.
// One string holds all three.
func newInterchange(head []byte, suffix string, date []byte) Found {
	head = append(head, suffix...)
	n := len(head)
	all := string(append(head, date...))
	f := newFound(all[:n])
	f.date, f.suffix, f.dated = all[n:], len(suffix), true
	return f
}

// KeyWithDate is the key with the interchange date (EDIFACT S004 date, X12
// ISA09) as a field of its own, before the field of the test indicator, which
// stays the last. An absent date is an empty field, so that no two messages
// share a dated key for want of one. Keys of formats without an interchange
// date, and explicit keys, stay as they are.
func (f Found) KeyWithDate() string {
	if !f.dated {
		return f.Key
	}
	n := len(f.full) - f.suffix
	return limit(f.full[:n] + "/" + f.date + f.full[n:])
}

// FullKey is the key before the 200-character rule, for a log at debug level:
// a hashed key does not tell what it stands for.
func (f Found) FullKey() string { return f.full }
