package setting

import (
	"fmt"
	"log/slog"
)

const hidden = "***"

// Secret is a value that prints as *** whatever prints it. The text sits
// behind a pointer: a printer that goes by reflection and meets it in an
// unexported field, where no method is called, shows an address.
type Secret struct{ text *string }

// NewSecret hides text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal is the text itself, for the client that needs it and nobody else.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// String is *** or, where there is nothing to hide, "".
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return hidden
}

// Format covers every verb of fmt, %#v and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue is what slog shows.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is what encoding/json and YAML show.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
