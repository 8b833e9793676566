package laws

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// DefaultWindow is the built-in rule's for keys without a format.
const DefaultWindow = 30 * 24 * time.Hour

// Place is a record's place.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

func (p Place) String() string { return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset) }

// PlaceOf is the place of a record that was produced or read.
func PlaceOf(r *kgo.Record) Place { return Place{r.Topic, r.Partition, r.Offset} }

// ParsePlace reads topic/partition/offset.
func ParsePlace(s string) (Place, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return Place{}, fmt.Errorf("%q is no place", s)
	}
	partition, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return Place{}, fmt.Errorf("%q is no place: %w", s, err)
	}
	offset, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Place{}, fmt.Errorf("%q is no place: %w", s, err)
	}
	return Place{parts[0], int32(partition), offset}, nil
}

// Message is a record to produce and what is expected of it.
type Message struct {
	Topic     int    // which of the raw topics
	Partition int32  // 0-based; ByKey: from the record key
	Key       string // tenant:flow; NoKey: no record key at all
	Value     []byte // nil stays null
	Headers   []kgo.RecordHeader
	Time      time.Time // zero: now
	Want      Want
}

// ByKey lets the record key choose the partition, as producers do.
const ByKey int32 = -1

// NoKey makes a record without a key.
const NoKey = "\x00none"

// Want is what the checker expects, from the sender's own knowledge.
type Want struct {
	Account string        // tenant:flow it is counted under; "": the record key, or Unreadable
	Scope   string        // ledger scope; "": the account
	Key     string        // dedup key
	Aliases []string      // further keys
	Window  time.Duration // of the key; 0: DefaultWindow
	Code    string        // INVALID with this code; "": valid
	Observe bool          // its flow only observes: nothing goes elsewhere than to clean
}

// Sent is a committed raw record.
type Sent struct {
	Place Place
	Message
	Raw time.Time // record timestamp
	At  time.Time // before it was produced
}

// Unreadable is the account of records whose scope cannot be read.
const Unreadable = "?:?"

// Account of the record: tenant:flow.
func (s *Sent) Account() string {
	switch {
	case s.Want.Account != "":
		return s.Want.Account
	case s.Want.Code == "scope.malformed":
		return Unreadable
	default:
		return s.Key
	}
}

// LedgerScope of the record.
func (s *Sent) LedgerScope() string {
	if s.Want.Scope != "" {
		return s.Want.Scope
	}
	return s.Account()
}

// keys of the record in its ledger scope: the primary key, then the aliases.
func (s *Sent) keys() []scopedKey {
	all := []scopedKey{{s.LedgerScope(), s.Want.Key}}
	for _, alias := range s.Want.Aliases {
		all = append(all, scopedKey{s.LedgerScope(), alias})
	}
	return all
}

// Window of the record's keys.
func (s *Sent) Window() time.Duration {
	if s.Want.Window != 0 {
		return s.Want.Window
	}
	return DefaultWindow
}

// Header is the value of the last header of a name.
func Header(r *kgo.Record, name string) string {
	for _, h := range slices.Backward(r.Headers) {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
