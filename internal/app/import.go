package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"dedupledger/internal/app/config"
	"dedupledger/internal/importer"
	"dedupledger/internal/rules"
	"dedupledger/ledger"
	"dedupledger/ledger/cold"
)

// LongestImported is the longest window that `dedup import` takes: the row's month
// is there until it ends.
func LongestImported(cfg *config.Config) time.Duration {
	return min(rules.MaxWindow, cfg.Months.Shortest())
}

// Import enters what o.In holds, by the rules of the configuration. The report is nil
// where nothing was begun.
func Import(ctx context.Context, cfg *config.Config, o *importer.Order, log *slog.Logger) (*importer.Report, error) {
	set, err := cfg.Rules()
	if err != nil {
		return nil, fmt.Errorf("compiling the rules: %w", err)
	}
	ours, err := newMaking(cfg, set)
	if err != nil {
		return nil, err
	}
	l, err := openLedger(ctx, cfg, "dedup import", log)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	held := &ruled{Ledger: l, making: &ours, dryRun: o.DryRun}
	if err := held.look(ctx); err != nil {
		return nil, ExplainPostgres(cfg.Postgres, err)
	}
	o.Rules, o.Longest, o.Ledger = set, LongestImported(cfg), held
	report, err := importer.Run(ctx, o)
	if err != nil {
		return report, ExplainPostgres(cfg.Postgres, err)
	}
	return report, nil
}

// ruled is the ledger as long as the rules that make keys are the active ones, as
// for the filter: keys by other rules would be in a ledger scope, and of a form, in
// which the filter does not look. On an empty ledger they become the active ones;
// else the filter that comes next would find keys that nobody knows the rules of.
type ruled struct {
	*cold.Ledger
	making *making
	dryRun bool
	looked time.Time
}

// Import looks at the rules first, every few seconds: others may be made active
// while a long file is read.
func (r *ruled) Import(ctx context.Context, in *ledger.Import) ([]ledger.Imported, error) {
	if time.Since(r.looked) > rulesEvery {
		if err := r.look(ctx); err != nil {
			return nil, err
		}
	}
	return r.Ledger.Import(ctx, in) //nolint:wrapcheck // it stands for the ledger
}

func (r *ruled) look(ctx context.Context) error {
	active, err := r.ActiveRules(ctx)
	if err == nil && active.Empty {
		if r.dryRun {
			return nil
		}
		active, err = r.FirstRules(ctx, r.making.rules(), false)
	}
	if err != nil {
		return fmt.Errorf("looking which rules are active: %w", err)
	}
	if why := r.making.refused(&active); why != "" {
		return errors.New("not importing: " + why)
	}
	r.looked = time.Now()
	return nil
}
