package topics

import (
	"fmt"
	"io"
	"strings"

	"dedupledger/topics/acl"
)

// Report is what Ensure did, or would do, and found.
type Report struct {
	DryRun     bool
	CheckOnly  bool
	Pattern    string     // topics.raw
	Created    []NewTopic // in the order of creation
	Present    []NewTopic // that were there, without settings
	Mismatches []Mismatch
	Settings   map[string]map[string]string // by topic, of a check: those that could be read
	Unread     acl.Rights                   // of a partial check: what it lacked to see or compare topics

	brokers   int           // of the cluster
	principal acl.Principal // who asks
}

// NewTopic is a topic with what it was, or would be, created with.
type NewTopic struct {
	Name        string
	Partitions  int32
	Replication int
	Settings    map[string]string
	Repair      string // of one that is missing: the command that makes it
}

func (t NewTopic) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d partitions, replication %d", t.Name, t.Partitions, t.Replication)
	for _, key := range settingOrder {
		if v, ok := t.Settings[key]; ok {
			fmt.Fprintf(&b, ", %s=%s", key, v)
		}
	}
	return b.String()
}

// Print writes the report for people: a line per topic, then a line per
// mismatch with its repair below.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	created := "created      "
	present := "unchanged    "
	if r.CheckOnly {
		present = "there        "
	}
	if r.DryRun {
		created = "would create "
	}
	for _, t := range r.Created {
		if r.CheckOnly {
			fmt.Fprintf(&b, "missing      %s\n             repair: %s\n", t.Name, t.Repair)
			continue
		}
		b.WriteString(created + t.String() + "\n")
	}
	for _, t := range r.Present {
		b.WriteString(present + t.String() + "\n")
	}
	if len(r.Created)+len(r.Present) == 0 {
		fmt.Fprintf(&b, "no raw topic named, and none exists that matches %s: nothing to do\n", r.Pattern)
	}
	for _, m := range r.Mismatches {
		fmt.Fprintf(&b, "mismatch     %s: %s\n             repair: %s\n", m.Topic, m.Text, m.Repair)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
