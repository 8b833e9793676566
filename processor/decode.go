package processor

import (
	"crypto/sha256"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// Codes of records that cannot be judged, beside those of message-keys.
const (
	reasonScopeMalformed = "scope.malformed"
	reasonTooLarge       = topics.CodeRecordTooLarge
)

// decode makes a record's registration: scope from where the input tells it, key
// and hash by the flow's rule. What cannot be judged is INVALID with a closed code
// and goes on through the same steps.
func (s *session) decode(b *batch, it *item, rec *kgo.Record, o ledger.Origin) {
	r := it.reg
	*r = ledger.Registration{
		Origin:        o,
		Account:       ledger.UnreadableScope,
		Bytes:         int64(len(rec.Value)),
		PayloadSHA256: sha256.Sum256(rec.Value), // of a null value: the hash of the empty string
		HashMode:      ledger.HashRaw,
		SourceService: s.cfg.Input.SourceService(rec.Headers),
	}
	tenant := s.tenantOf(rec.Topic)
	scope, err := s.scope(s.cfg.Input.Scope(rec))
	forged := err == nil && tenant != "" && scope.Tenant != tenant
	switch {
	case forged:
		// Of the topic's tenant, in accounts and in dead-letter: who writes into
		// this topic must reach nothing of the tenant he names.
		r.Account = tenant + ":" + scope.Flow
	case err == nil:
		r.Account = scope.text
	}
	switch {
	case recordSize(rec) > s.cfg.MaxRecord:
		r.Reason = reasonTooLarge
	case err != nil:
		r.Reason = reasonScopeMalformed
	case forged:
		r.Reason = topics.CodeTenantMismatch
		it.observe = s.cfg.Keyer.Observes(topics.Scope{Tenant: tenant, Flow: scope.Flow})
	default:
		keyed := s.cfg.Keyer.Key(scope.Scope, rec.Value, func(name string, back int) ([]byte, bool) {
			return s.cfg.Input.Nth(rec.Headers, name, back)
		})
		it.observe, it.noPayload = keyed.Observe, keyed.NoPayload
		r.HashMode, r.CanonicalSHA256 = keyed.HashMode, keyed.CanonicalSHA256
		if keyed.Code != "" {
			r.Reason = keyed.Code
			break
		}
		r.Keys = b.key(keyed.Key, keyed.Aliases)
	}
}

// tenantOf is the tenant that records of a raw topic must have; "" for any.
func (s *session) tenantOf(raw string) string {
	if route := s.routes[raw]; route != nil {
		return route.Tenant
	}
	return ""
}

// scoped is a scope with its text.
type scoped struct {
	topics.Scope
	text string
}

// maxScopesKept bounds what a session remembers of scopes, which anybody who may
// write to a raw topic chooses.
const maxScopesKept = 1024

// scope reads the text of one. The records of a batch share few, whose text is
// made once.
func (s *session) scope(key []byte) (scoped, error) {
	if known, ok := s.scopes[string(key)]; ok { // looks up without making a string
		return known, nil
	}
	text := string(key)
	scope, err := topics.ParseScope(text)
	if err != nil {
		return scoped{}, err //nolint:wrapcheck // only that there is one counts
	}
	if s.scopes == nil || len(s.scopes) >= maxScopesKept {
		s.scopes = make(map[string]scoped)
	}
	s.scopes[text] = scoped{scope, text}
	return s.scopes[text], nil
}

// recordSize is what the record weighs uncompressed: key, value and headers.
func recordSize(rec *kgo.Record) int64 {
	n := len(rec.Key) + len(rec.Value)
	for i := range rec.Headers {
		n += len(rec.Headers[i].Key) + len(rec.Headers[i].Value)
	}
	return int64(n)
}
