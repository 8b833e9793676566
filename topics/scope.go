package topics

import (
	"errors"
	"fmt"
)

// ErrScope says that a text is not tenant:flow; its closed code is
// CodeScopeMalformed.
var ErrScope = errors.New("scope is not tenant:flow, both of 1 to 40 characters A-Z a-z 0-9 . _ -")

// Scope is tenant:flow, the record key of a raw topic.
type Scope struct{ Tenant, Flow string }

// String is the spelling in record keys and headers.
func (s Scope) String() string { return s.Tenant + ":" + s.Flow }

// ParseScope reads tenant:flow. Both parts are 1 to 40 characters of
// [A-Za-z0-9._-] with exactly one colon between them; case matters. The parts
// share text's memory, so a caller that has the text pays for nothing more.
// Errors wrap ErrScope and never carry the text: it may be anything.
func ParseScope(text string) (Scope, error) {
	colon := -1
	for i := range len(text) {
		switch c := text[i]; {
		case scopeByte(c):
		case c == ':' && colon < 0:
			colon = i
		default:
			return Scope{}, fmt.Errorf("byte %d of %d: %w", i, len(text), ErrScope)
		}
	}
	if colon < 1 || colon > maxScopePart || len(text)-colon-1 < 1 || len(text)-colon-1 > maxScopePart {
		return Scope{}, ErrScope
	}
	return Scope{Tenant: text[:colon], Flow: text[colon+1:]}, nil
}

func scopeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
