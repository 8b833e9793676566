package laws

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// OrderKept checks: the clean records of one raw partition lie in the same partition of
// clean, in the order of raw.
func OrderKept(o *Observation) (faults []error) {
	last := map[Place]*Output{} // raw topic and partition, offset 0
	for _, out := range o.Outputs {
		if out.Kind != Clean || o.Sent[out.Origin] == nil {
			continue
		}
		if out.Record.Partition != out.Origin.Partition {
			faults = append(faults, fmt.Errorf("order: %s lies in %s, another partition", out.Origin, out))
		}
		from := Place{Topic: out.Origin.Topic, Partition: out.Origin.Partition}
		if before := last[from]; before != nil && before.Origin.Offset >= out.Origin.Offset {
			faults = append(faults, fmt.Errorf("order: %s (%s) lies behind %s (%s)", out.Origin, out, before.Origin, before))
		}
		last[from] = out
	}
	return faults
}

// Untouched checks: record key, value, foreign headers in their order with repeats and
// nulls, and timestamp are those of raw.
func Untouched(o *Observation) (faults []error) {
	for _, out := range o.Outputs {
		s := o.Sent[out.Origin]
		if s == nil {
			continue
		}
		for _, err := range differences(out, s) {
			faults = append(faults, fmt.Errorf("untouched: %s in %s: %w", out.Origin, out, err))
		}
	}
	return faults
}

func differences(out *Output, s *Sent) (faults []error) {
	r := out.Record
	key := []byte(s.Key)
	if s.Key == NoKey {
		key = nil
	}
	if !same(r.Key, key) {
		faults = append(faults, fmt.Errorf("record key %q, sent %q", r.Key, key))
	}
	switch Header(r, "dedup-payload") {
	case "":
		if !same(r.Value, s.Value) {
			faults = append(faults, fmt.Errorf("value of %d bytes (nil: %v), sent %d (nil: %v)", len(r.Value), r.Value == nil, len(s.Value), s.Value == nil))
		}
	default:
		if len(r.Value) != 0 {
			faults = append(faults, fmt.Errorf("says that its value is missing, but has %d bytes", len(r.Value)))
		}
		if got := Header(r, "dedup-payload-bytes"); got != strconv.Itoa(len(s.Value)) {
			faults = append(faults, fmt.Errorf("says that its value had %s bytes, sent %d", got, len(s.Value)))
		}
	}
	if got, want := foreign(r.Headers), foreign(s.Headers); !slices.EqualFunc(got, want, sameHeader) {
		faults = append(faults, fmt.Errorf("foreign headers %v, sent %v", got, want))
	}
	// A reference may have been refused with its own time (ARCHITECTURE §5).
	if Header(r, "dedup-payload") != "reference" && !r.Timestamp.Equal(s.Raw) {
		faults = append(faults, fmt.Errorf("timestamp %s, sent %s", r.Timestamp, s.Raw))
	}
	return faults
}

// same bytes, where null is not empty.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func sameHeader(a, b kgo.RecordHeader) bool { return a.Key == b.Key && same(a.Value, b.Value) }

func foreign(headers []kgo.RecordHeader) (left []kgo.RecordHeader) {
	for _, h := range headers {
		if !isOurs(h.Key) {
			left = append(left, h)
		}
	}
	return left
}

func isOurs(name string) bool { return strings.HasPrefix(strings.ToLower(name), "dedup-") }

// allowed are the filter's headers by output topic (README.md).
var allowed = map[Kind]string{
	Clean: " dedup-key dedup-scope dedup-id dedup-status dedup-origin dedup-first-seen-at dedup-expires-at dedup-payload-sha256" +
		" dedup-reason dedup-matched dedup-aliases dedup-replay-id ",
	Duplicates: " dedup-key dedup-scope dedup-status dedup-origin dedup-first-seen-at dedup-expires-at dedup-first-origin dedup-first-id" +
		" dedup-first-payload-sha256 dedup-payload-sha256 dedup-retry-count dedup-reason dedup-matched dedup-aliases dedup-payload dedup-payload-bytes ",
	DeadLetter: " dedup-key dedup-scope dedup-status dedup-origin dedup-payload-sha256 dedup-reason dedup-payload dedup-payload-bytes ",
}

// required are those that are never missing.
var required = map[Kind][]string{
	Clean:      {"dedup-key", "dedup-scope", "dedup-id", "dedup-first-seen-at", "dedup-expires-at"},
	Duplicates: {"dedup-key", "dedup-scope", "dedup-first-seen-at", "dedup-expires-at", "dedup-first-payload-sha256", "dedup-retry-count"},
	DeadLetter: {"dedup-reason"},
}

// OurHeaders checks: no incoming dedup-* header comes through; ours are those of the
// table, each once, bounded and true.
func OurHeaders(o *Observation) (faults []error) {
	for _, out := range o.Outputs {
		s := o.Sent[out.Origin]
		if s == nil {
			continue
		}
		for _, err := range headerFaults(o, out, s) {
			faults = append(faults, fmt.Errorf("headers of %s (from %s): %w", out, out.Origin, err))
		}
	}
	return faults
}

// maxOurHeaders is their bound, names and values together (README.md).
const maxOurHeaders = 1024

// maxWithAliases is that of a record with aliases.
const maxWithAliases = 1280

func headerFaults(o *Observation, out *Output, s *Sent) (faults []error) {
	seen := map[string]bool{}
	size := 0
	for _, h := range out.Record.Headers {
		if !isOurs(h.Key) {
			continue
		}
		if !strings.Contains(allowed[out.Kind], " "+h.Key+" ") {
			faults = append(faults, fmt.Errorf("%s does not belong in %s", h.Key, out.Kind))
		}
		if seen[h.Key] {
			faults = append(faults, fmt.Errorf("%s is there twice", h.Key))
		}
		seen[h.Key] = true
		size += len(h.Key) + len(h.Value)
	}
	needs := required[out.Kind]
	if out.Kind == Clean && out.Status() == "INVALID" { // only observed: it has no row, and may have no key
		needs = []string{"dedup-scope", "dedup-id", "dedup-reason"}
	}
	for _, name := range needs {
		if !seen[name] {
			faults = append(faults, fmt.Errorf("%s is missing", name))
		}
	}
	most := maxOurHeaders
	if len(s.Want.Aliases) > 0 || seen["dedup-matched"] {
		most = maxWithAliases
	}
	if size >= most {
		faults = append(faults, fmt.Errorf("ours take %d bytes", size))
	}
	if got := strings.Fields(Header(out.Record, "dedup-aliases")); (out.Kind == Clean || len(got) > 0) && !slices.Equal(got, s.Want.Aliases) {
		faults = append(faults, fmt.Errorf("dedup-aliases %q, wanted %q", got, s.Want.Aliases))
	}
	sum := sha256.Sum256(s.Value)
	if got, want := Header(out.Record, "dedup-payload-sha256"), hex.EncodeToString(sum[:]); got != want {
		faults = append(faults, fmt.Errorf("dedup-payload-sha256 %q, wanted %q", got, want))
	}
	if got := Header(out.Record, "dedup-scope"); seen["dedup-scope"] && got != s.Account() {
		faults = append(faults, fmt.Errorf("dedup-scope %q, wanted %q", got, s.Account()))
	}
	if got, want := Header(out.Record, "dedup-id"), o.IDOf(out.Origin); out.Kind == Clean && got != want {
		faults = append(faults, fmt.Errorf("dedup-id %q, wanted %q", got, want))
	}
	return faults
}
