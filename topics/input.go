package topics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics/msgkey"
)

// Where a raw record may tell its scope.
const (
	ScopeFromKey    = "key"    // the record key
	ScopeFromHeader = "header" // the header dedup-scope, or what it is renamed to
)

// Input is how raw records are read: where the scope stands, and what senders
// call the headers that the filter reads. The zero Input takes the scope from
// the record key and every header by its own name.
type Input struct {
	scopeFrom []string
	names     map[string]string // the filter's name, in lower case -> the sender's
}

// ownHeaders are the filter's own headers of a raw record.
func ownHeaders() []string { return []string{HeaderKey, HeaderScope, HeaderSourceService} }

// inputHeaders are all that it reads of one, those of transports included.
func inputHeaders() []string { return append(ownHeaders(), msgkey.HeaderNames()...) }

// NewInput takes topics.scope_from and topics.header_names. The error joins a
// NameError for each fault: a rename that has no effect, or that lets one header
// of the sender be read as two.
func NewInput(scopeFrom []string, names map[string]string) (Input, error) {
	in := Input{scopeFrom: scopeFrom, names: make(map[string]string, len(names))}
	errs := checkScopeFrom(scopeFrom)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		to, known := names[name], strings.ToLower(name)
		if allowed := in.refuse(known, to); allowed != "" {
			errs = append(errs, &NameError{"topics.header_names", name + ": " + to, allowed})
			continue
		}
		in.names[known] = to
	}
	errs = append(errs, in.checkOneToOne()...)
	return in, errors.Join(errs...)
}

func checkScopeFrom(from []string) (errs []error) {
	allowed := fmt.Sprintf("write [%s], [%s], or both in the order in which they count", ScopeFromKey, ScopeFromHeader)
	for i, f := range from {
		if f != ScopeFromKey && f != ScopeFromHeader || slices.Contains(from[:i], f) {
			errs = append(errs, &NameError{"topics.scope_from", f, allowed})
		}
	}
	return errs
}

// refuse says what is wrong with one rename, or nothing.
func (in Input) refuse(name, to string) string {
	switch {
	case !slices.Contains(inputHeaders(), name):
		return "no header that the filter reads; left of the colon write " + strings.Join(inputHeaders(), ", ")
	case strings.TrimSpace(to) == "" || strings.TrimSpace(to) != to:
		return "right of the colon write the sender's header, without blanks around it"
	case Ours(to):
		return "right of the colon write a header of the sender's; those that begin with dedup- are the filter's own"
	case name == HeaderScope && !slices.Contains(in.scopeFrom, ScopeFromHeader):
		return "topics.scope_from does not name header, so this one is never read"
	default:
		return ""
	}
}

// checkOneToOne: a header of the sender's that counts as two of our own says one
// thing at least that was not meant. One of a transport may be two things: a
// Message-ID as the explicit key, one header for account and client.
func (in Input) checkOneToOne() (errs []error) {
	read := map[string]string{}
	for _, name := range ownHeaders() {
		to := strings.ToLower(in.Name(name))
		if other, taken := read[to]; taken {
			errs = append(errs, &NameError{"topics.header_names", name + ": " + in.Name(name), "is read as " + other + " already; one header cannot be two"})
		}
		read[to] = name
	}
	return errs
}

// Name is what the sender calls a header that the filter reads.
func (in Input) Name(ours string) string {
	if to, ok := in.names[ours]; ok {
		return to
	}
	return ours
}

// Header is the last value of a header that the filter knows by this name,
// under the name that senders give it; otherwise as Last.
func (in Input) Header(headers []kgo.RecordHeader, name string) (value []byte, ok bool) {
	return in.Nth(headers, name, 0)
}

// Nth is the value of such a header, counted from the last, which is 0.
func (in Input) Nth(headers []kgo.RecordHeader, name string, back int) (value []byte, ok bool) {
	return Nth(headers, in.Name(name), back)
}

// Scope is the text in which the record tells its scope: of the places that
// scope_from names, in its order, the first that says anything. A null or empty
// key, and a missing, null or empty header, say nothing. What says something
// decides, readable or not: a mistyped key must not fall through to a header
// that was meant for something else. The text is not checked (ParseScope), and
// nil where no place says anything.
func (in Input) Scope(rec *kgo.Record) []byte {
	if len(in.scopeFrom) == 0 {
		return rec.Key
	}
	for _, from := range in.scopeFrom {
		text := rec.Key
		if from == ScopeFromHeader {
			text, _ = in.Header(rec.Headers, HeaderScope)
		}
		if len(text) > 0 {
			return text
		}
	}
	return nil
}

// SourceService is the text of the last source-service header, as SourceService
// has it, under the name that senders give it.
func (in Input) SourceService(headers []kgo.RecordHeader) string {
	value, _ := in.Header(headers, HeaderSourceService)
	return sourceText(value)
}
