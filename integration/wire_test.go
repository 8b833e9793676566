package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// orderKept: the clean records of one raw partition lie in the same partition of
// clean, in the order of raw.
func orderKept(o *observation) (faults []error) {
	last := map[place]*output{} // raw topic and partition, offset 0
	for _, out := range o.outputs {
		if out.kind != clean || o.sent[out.origin] == nil {
			continue
		}
		if out.record.Partition != out.origin.partition {
			faults = append(faults, fmt.Errorf("order: %s lies in %s, another partition", out.origin, out))
		}
		from := place{topic: out.origin.topic, partition: out.origin.partition}
		if before := last[from]; before != nil && before.origin.offset >= out.origin.offset {
			faults = append(faults, fmt.Errorf("order: %s (%s) lies behind %s (%s)", out.origin, out, before.origin, before))
		}
		last[from] = out
	}
	return faults
}

// untouched: record key, value, foreign headers in their order with repeats and
// nulls, and timestamp are those of raw.
func untouched(o *observation) (faults []error) {
	for _, out := range o.outputs {
		s := o.sent[out.origin]
		if s == nil {
			continue
		}
		for _, err := range differences(out, s) {
			faults = append(faults, fmt.Errorf("untouched: %s in %s: %w", out.origin, out, err))
		}
	}
	return faults
}

func differences(out *output, s *sent) (faults []error) {
	r := out.record
	key := []byte(s.Key)
	if s.Key == noKey {
		key = nil
	}
	if !same(r.Key, key) {
		faults = append(faults, fmt.Errorf("record key %q, sent %q", r.Key, key))
	}
	switch header(r, "dedup-payload") {
	case "":
		if !same(r.Value, s.Value) {
			faults = append(faults, fmt.Errorf("value of %d bytes (nil: %v), sent %d (nil: %v)", len(r.Value), r.Value == nil, len(s.Value), s.Value == nil))
		}
	default:
		if len(r.Value) != 0 {
			faults = append(faults, fmt.Errorf("says that its value is missing, but has %d bytes", len(r.Value)))
		}
	}
	if got, want := foreign(r.Headers), foreign(s.Headers); !slices.EqualFunc(got, want, sameHeader) {
		faults = append(faults, fmt.Errorf("foreign headers %v, sent %v", got, want))
	}
	// A reference may have been refused with its own time (ARCHITECTURE §5).
	if header(r, "dedup-payload") != "reference" && !r.Timestamp.Equal(s.raw) {
		faults = append(faults, fmt.Errorf("timestamp %s, sent %s", r.Timestamp, s.raw))
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
var allowed = map[kind]string{
	clean: " dedup-key dedup-scope dedup-id dedup-status dedup-origin dedup-first-seen-at dedup-expires-at dedup-payload-sha256" +
		" dedup-reason dedup-matched dedup-aliases dedup-replay-id ",
	duplicates: " dedup-key dedup-scope dedup-status dedup-origin dedup-first-seen-at dedup-expires-at dedup-first-origin dedup-first-id" +
		" dedup-first-payload-sha256 dedup-payload-sha256 dedup-retry-count dedup-reason dedup-matched dedup-aliases dedup-payload ",
	deadLetter: " dedup-key dedup-scope dedup-status dedup-origin dedup-payload-sha256 dedup-reason dedup-payload ",
}

// required are those that are never missing.
var required = map[kind][]string{
	clean:      {"dedup-key", "dedup-scope", "dedup-id", "dedup-first-seen-at", "dedup-expires-at"},
	duplicates: {"dedup-key", "dedup-scope", "dedup-first-seen-at", "dedup-expires-at", "dedup-first-payload-sha256", "dedup-retry-count"},
	deadLetter: {"dedup-reason"},
}

// ourHeaders: no incoming dedup-* header comes through; ours are those of the
// table, each once, bounded and true.
func ourHeaders(o *observation) (faults []error) {
	for _, out := range o.outputs {
		s := o.sent[out.origin]
		if s == nil {
			continue
		}
		for _, err := range headerFaults(o, out, s) {
			faults = append(faults, fmt.Errorf("headers of %s (from %s): %w", out, out.origin, err))
		}
	}
	return faults
}

// maxOurHeaders is their bound, names and values together (README.md).
const maxOurHeaders = 1024

func headerFaults(o *observation, out *output, s *sent) (faults []error) {
	seen := map[string]bool{}
	size := 0
	for _, h := range out.record.Headers {
		if !isOurs(h.Key) {
			continue
		}
		if !strings.Contains(allowed[out.kind], " "+h.Key+" ") {
			faults = append(faults, fmt.Errorf("%s does not belong in %s", h.Key, out.kind))
		}
		if seen[h.Key] {
			faults = append(faults, fmt.Errorf("%s is there twice", h.Key))
		}
		seen[h.Key] = true
		size += len(h.Key) + len(h.Value)
	}
	for _, name := range required[out.kind] {
		if !seen[name] {
			faults = append(faults, fmt.Errorf("%s is missing", name))
		}
	}
	if size >= maxOurHeaders {
		faults = append(faults, fmt.Errorf("ours take %d bytes", size))
	}
	sum := sha256.Sum256(s.Value)
	if got, want := header(out.record, "dedup-payload-sha256"), hex.EncodeToString(sum[:]); got != want {
		faults = append(faults, fmt.Errorf("dedup-payload-sha256 %q, wanted %q", got, want))
	}
	if got := header(out.record, "dedup-scope"); seen["dedup-scope"] && got != s.account() {
		faults = append(faults, fmt.Errorf("dedup-scope %q, wanted %q", got, s.account()))
	}
	if got, want := header(out.record, "dedup-id"), o.idOf(out.origin); out.kind == clean && got != want {
		faults = append(faults, fmt.Errorf("dedup-id %q, wanted %q", got, want))
	}
	return faults
}
