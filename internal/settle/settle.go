package settle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// Ledger is what the commands need of PostgreSQL.
type Ledger interface {
	ID() uuid.UUID
	Standings(ctx context.Context) ([]ledger.Standing, error)
	// Settle is ledger.ErrClaimLost where a partition was taken since.
	Settle(ctx context.Context, a ledger.Action, changes []ledger.Change) error
	Orphans(ctx context.Context, of ledger.Partition, in ledger.Range) ([]ledger.Orphan, error)
}

// Stores are what the commands work on.
type Stores struct {
	Ledger Ledger
	Client *kgo.Client
	Kafka  []kgo.Opt // of clients that read outputs
	Router *topics.Router
	Group  string // kafka.group
}

// Order is what all commands are given.
type Order struct {
	Actor, Reason string
	DryRun        bool
}

// Report is what was done, or would be.
type Report struct {
	DryRun bool `json:"dryRun"`
	// Done is false where there was nothing left to do.
	Done bool   `json:"done"`
	Acts []Act  `json:"acts"`
	Note string `json:"note,omitempty"`
}

// Act is one partition's share.
type Act struct {
	Partition string   `json:"partition"` // raw topic/partition
	Text      string   `json:"text"`
	Orphans   []Orphan `json:"orphans,omitempty"`
}

// Orphan is a message that was decided and never committed: its next copy is
// NEW. Copies are those that came meanwhile and are in duplicates, by their raw
// places.
type Orphan struct {
	Scope  string   `json:"scope"`
	Key    string   `json:"key"`
	Place  string   `json:"place"`
	Copies []string `json:"copies"`
}

// Print writes it for people.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	for _, a := range r.Acts {
		fmt.Fprintf(&b, "%s: %s\n", a.Partition, a.Text)
		for _, o := range a.Orphans {
			fmt.Fprintf(&b, "  orphan %s %s of %s: the next copy is NEW", o.Scope, o.Key, o.Place)
			if len(o.Copies) > 0 {
				fmt.Fprintf(&b, "; in duplicates: %s", strings.Join(o.Copies, ", "))
			}
			b.WriteString("\n")
		}
	}
	switch {
	case !r.Done && r.Note == "":
		b.WriteString("already done: nothing was changed\n")
	case r.Note != "":
		b.WriteString(r.Note + "\n")
	case r.DryRun:
		b.WriteString("dry run: nothing was changed\n")
	}
	_, err := io.WriteString(w, b.String())
	return err //nolint:wrapcheck // the caller says what for
}

// plan is what a command has found.
type plan struct {
	place   string
	acts    []Act
	changes []ledger.Change
	detail  map[string]any
	note    string
}

func (p *plan) say(of ledger.Standing, text string, args ...any) {
	p.acts = append(p.acts, Act{Partition: placeOf(of), Text: fmt.Sprintf(text, args...)})
}

func placeOf(s ledger.Standing) string { return fmt.Sprintf("%s/%d", s.Topic, s.Partition.Partition) }

// tries bounds how often a command looks again where a session has taken the
// partition in between: one that is held is looked at every 10 seconds.
const tries = 3

// carryOut looks, and does it. look is called again where a partition was taken
// meanwhile: it then refuses, or finds that it is held again.
func (s *Stores) carryOut(ctx context.Context, kind string, o Order, look func(context.Context) (*plan, error)) (*Report, error) {
	for try := 1; ; try++ {
		p, err := look(ctx)
		if err != nil {
			return nil, err
		}
		r := &Report{DryRun: o.DryRun, Done: len(p.changes) > 0, Acts: p.acts, Note: p.note}
		if o.DryRun || !r.Done {
			return r, nil
		}
		err = s.Ledger.Settle(ctx, ledger.Action{Actor: o.Actor, Kind: kind, Place: p.place, Reason: o.Reason, Detail: p.detail}, p.changes)
		switch {
		case errors.Is(err, ledger.ErrClaimLost) && try < tries:
			continue
		case errors.Is(err, ledger.ErrClaimLost):
			return nil, fmt.Errorf("%s: a filter takes the partition again and again: stop the filters of the group, or try once more", p.place)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", p.place, err)
		}
		return r, nil
	}
}

// refuse is the one sentence of a refusal.
func refuse(of ledger.Standing, text string, args ...any) error {
	return fmt.Errorf("%s: %s", placeOf(of), fmt.Sprintf(text, args...))
}

func (s *Stores) admin() *kadm.Client { return kadm.NewClient(s.Client) }

// orphans lists what a gap makes orphans. Where nothing was decided behind its
// beginning there is none, and the ledger is not read.
func (s *Stores) orphans(ctx context.Context, of ledger.Standing, gap ledger.Range) ([]Orphan, error) {
	if !gap.From.Less(of.D) {
		return nil, nil
	}
	rows, err := s.Ledger.Orphans(ctx, of.Partition, gap)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", placeOf(of), err)
	}
	names, err := s.topicNames(ctx)
	if err != nil {
		return nil, err
	}
	names[of.Partition.Topic] = of.Topic
	place := func(o ledger.Origin) string {
		name := names[o.Topic]
		if name == "" {
			name = o.Topic.String()
		}
		return topics.Place{Topic: name, Partition: o.Partition, Offset: o.Offset}.String()
	}
	all := make([]Orphan, 0, len(rows))
	for _, r := range rows {
		one := Orphan{Scope: r.Scope, Key: r.Key, Place: place(r.Origin), Copies: []string{}}
		for _, c := range r.Copies {
			one.Copies = append(one.Copies, place(c))
		}
		all = append(all, one)
	}
	return all, nil
}

// orphansDetail is what dedup_action keeps of them.
func orphansDetail(all []Orphan) map[string]any {
	copies := []string{}
	for _, o := range all {
		copies = append(copies, o.Copies...)
	}
	return map[string]any{"orphans": len(all), "copies": copies}
}
