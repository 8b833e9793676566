package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"dedupledger/internal/app/config"
	"dedupledger/internal/rules"
	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// ActivateOptions are what `dedup config activate` is asked for.
type ActivateOptions struct {
	Config *config.Config
	Actor  string
	Reason string
	DryRun bool
	// Say is told how far long work is.
	Say func(format string, args ...any)
}

// Activation tells what activating came to, or would come to.
type Activation struct {
	Fingerprint string      `json:"fingerprint"`
	Was         string      `json:"was,omitempty"` // the active one until now; "" where none was
	Activated   bool        `json:"activated"`
	Differences []string    `json:"differences,omitempty"`
	Live        int64       `json:"liveKeys"` // in the whole ledger
	Lost        int64       `json:"lost"`     // of these: not found by the new rules
	Unsure      int64       `json:"unsure"`   // may get another key first
	Groups      []LostGroup `json:"groups,omitempty"`
	dryRun      bool        // only shown
}

// LostGroup are live keys that have most in common and are not found, or may not be.
type LostGroup struct {
	Scope  string `json:"ledgerScope"`
	Flow   string `json:"flow"`
	Scheme string `json:"scheme"`
	Count  int64  `json:"count"`
	Fate   string `json:"fate"` // lost, unsure
	Why    string `json:"why"`
}

// Activate makes the configuration's rules the active ones, and tells first how
// many live keys they do not find any more.
func Activate(ctx context.Context, o ActivateOptions) (*Activation, error) {
	set, err := o.Config.Rules()
	if err != nil {
		return nil, fmt.Errorf("compiling the rules: %w", err)
	}
	ours, err := newMaking(o.Config, set)
	if err != nil {
		return nil, err
	}
	a := &app{Options: Options{Config: o.Config, Log: NewLogger(io.Discard, o.Config.Log)}}
	c := a.coldConfig("dedup config activate")
	c.MaxConns, c.RequireSyncStandby = settleConns, false
	l, err := cold.Open(ctx, c)
	if err != nil {
		return nil, ExplainPostgres(o.Config.Postgres, err)
	}
	defer l.Close()
	out, err := activate(ctx, l, set, &ours, o)
	if err != nil {
		return nil, ExplainPostgres(o.Config.Postgres, err)
	}
	return out, nil
}

func activate(ctx context.Context, l *cold.Ledger, set *rules.Set, ours *making, o ActivateOptions) (*Activation, error) {
	active, err := l.ActiveRules(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the active rules: %w", err)
	}
	out := &Activation{Fingerprint: ours.fingerprint, Was: active.Fingerprint, dryRun: o.DryRun}
	if active.Fingerprint == ours.fingerprint {
		return out, nil // a second time changes nothing
	}
	var was *rules.Set
	if active.Text != nil {
		if out.Differences, err = ours.differences(&active); err != nil {
			return nil, err
		}
		theirs, err := rules.ParseMaking(active.Text)
		if err == nil {
			was, _ = theirs.Rules() // nil: of another version; then nobody knows what made the keys
		}
	}
	keys, err := l.LiveKeys(ctx, func(month time.Time) { o.Say("reading the live keys of %s", month.Format("2006-01")) })
	if err != nil {
		return nil, fmt.Errorf("counting live keys: %w", err)
	}
	out.count(set, was, keys)
	if o.DryRun {
		return out, nil
	}
	act := ledger.Action{Actor: o.Actor, Kind: "config.activate", Place: ours.fingerprint, Reason: o.Reason, Detail: out}
	if err := l.ActivateRules(ctx, act, active.Fingerprint, ours.rules()); err != nil {
		return nil, fmt.Errorf("activating the rules: %w", err)
	}
	out.Activated = true
	return out, nil
}

func (a *Activation) count(set, was *rules.Set, keys []ledger.LiveKeys) {
	for _, k := range keys {
		a.Live += k.Count
		fate, why := set.Fate(was, k)
		g := LostGroup{Scope: k.Scope, Flow: k.Flow, Scheme: k.Scheme, Count: k.Count, Why: why}
		switch fate {
		case rules.Lost:
			a.Lost += k.Count
			g.Fate = "lost"
		case rules.Unsure:
			a.Unsure += k.Count
			g.Fate = "unsure"
		default:
			continue
		}
		a.Groups = append(a.Groups, g)
	}
	slices.SortFunc(a.Groups, func(x, y LostGroup) int {
		return cmp.Or(cmp.Compare(x.Fate, y.Fate), cmp.Compare(y.Count, x.Count), cmp.Compare(x.Scope, y.Scope), cmp.Compare(x.Flow, y.Flow), cmp.Compare(x.Scheme, y.Scheme))
	})
}

// shownGroups are printed; all are in the JSON.
const shownGroups = 20

// Print tells it as text.
func (a *Activation) Print(w io.Writer) error {
	if a.Was == a.Fingerprint {
		_, err := fmt.Fprintf(w, "the rules of this configuration (fingerprint %s) are the active ones\n", a.Fingerprint)
		return err //nolint:wrapcheck // wrapped by the caller
	}
	was := a.Was
	if was == "" {
		was = "none"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) // Flush has the error of all
	_, _ = fmt.Fprintf(t, "fingerprint %s, active until now: %s\n", a.Fingerprint, was)
	for _, d := range a.Differences {
		_, _ = fmt.Fprintf(t, "  %s\n", d)
	}
	_, _ = fmt.Fprintf(t, "%d live keys: %d will not be found by these rules, %d may get another key first\n", a.Live, a.Lost, a.Unsure)
	for _, g := range a.Groups[:min(len(a.Groups), shownGroups)] {
		_, _ = fmt.Fprintf(t, "  %s\t%d\t%s\tflow %s\t%s:\t%s\n", g.Fate, g.Count, g.Scope, g.Flow, g.Scheme, g.Why)
	}
	if more := len(a.Groups) - shownGroups; more > 0 {
		_, _ = fmt.Fprintf(t, "  and %d more lines; -o json has all\n", more)
	}
	if len(a.Groups) > 0 {
		_, _ = fmt.Fprintln(t, "A resend of what is not found is NEW. Counted by ledger scope, flow and scheme, for a row holds no message: keys that\n"+
			"senders give in dedup-key are found whatever is said here, and rules with `key` were not looked into for each key.")
	}
	if a.dryRun {
		_, _ = fmt.Fprintln(t, "dry run: nothing was changed")
	} else {
		_, _ = fmt.Fprintln(t, "active now; processes with other rules stop filtering within seconds, those with these begin")
	}
	return t.Flush() //nolint:wrapcheck // wrapped by the caller
}
