package msgkey

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Names of payload-hash modes.
const (
	HashRaw         = "raw"          // the value's octets alone
	HashEDI         = "edi"          // EDIFACT and X12 without line ends and service characters
	HashC14N        = "c14n"         // XML as Exclusive XML Canonicalization 1.0 writes it
	HashMIMEParts   = "mime-parts"   // the decoded parts, in order
	HashMIMEPayload = "mime-payload" // those but the SOAP part, unpacked
)

// Mode is a canonical form of payloads, in which two that a retry may tell
// apart are equal. The raw hash is always kept beside it; the zero Mode is raw
// and has no form of its own.
type Mode struct {
	name    string
	version int
	// write gives the form of a payload; false if it cannot be read.
	write func(w *bufio.Writer, m *Message, p payload) bool
}

func modes() [5]Mode {
	return [...]Mode{
		{name: HashRaw},
		{name: HashEDI, version: 1, write: ediForm},
		{name: HashC14N, version: 1, write: xmlForm},
		{name: HashMIMEParts, version: 1, write: partsForm},
		{name: HashMIMEPayload, version: 1, write: payloadForm},
	}
}

// ModeNames lists the modes there are.
func ModeNames() []string {
	all := modes()
	names := make([]string, 0, len(all))
	for _, m := range all {
		names = append(names, m.name)
	}
	return names
}

// LaterModeNames lists modes that people ask for by name and that this version
// does not have, so that a configuration can be refused with the reason.
func LaterModeNames() []string { return []string{"edi-ignore-time", "c14n-ws", "jcs", "mask"} }

// UnknownModeError refuses the name of a mode that this version does not have.
type UnknownModeError struct{ Name string }

func (e *UnknownModeError) Error() string {
	why := "unknown payload-hash mode"
	if slices.Contains(LaterModeNames(), e.Name) {
		why = "payload-hash mode not available yet:"
	}
	return fmt.Sprintf("%s %q; available are %s", why, e.Name, strings.Join(ModeNames(), " "))
}

// NewMode finds a mode by its name. The error is an *UnknownModeError.
func NewMode(name string) (Mode, error) {
	for _, m := range modes() {
		if m.name == name {
			return m, nil
		}
	}
	return Mode{}, &UnknownModeError{Name: name}
}

// String is the mode as it is stored beside its hash, with its version: edi/1.
// The form of a version never changes, since hashes of two forms must never be
// compared. Raw has no version.
func (m Mode) String() string {
	if m.write == nil {
		return HashRaw
	}
	return fmt.Sprintf("%s/%d", m.name, m.version)
}

// Canonical is SHA-256 of the message's canonical form. ok is false where there
// is none: in mode raw, and where the mode cannot read the payload. Such a record has
// its raw hash alone, under the mode raw: two of them are compared by it, and
// one with a record whose form was read is not comparable.
func (m Mode) Canonical(msg *Message) (sum [sha256.Size]byte, ok bool) {
	if m.write == nil {
		return sum, false
	}
	h := sha256.New()
	if !m.form(h, msg) {
		return sum, false
	}
	return [sha256.Size]byte(h.Sum(nil)), true
}

// form writes what is hashed, in pieces: it may be as large as the payload.
func (m Mode) form(to io.Writer, msg *Message) bool {
	w := bufio.NewWriterSize(to, 8<<10)
	return m.write(w, msg, clean(msg.Value)) && w.Flush() == nil
}
