package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"dedupledger/internal/app/config"
	"dedupledger/internal/importer"
	"dedupledger/internal/rules"
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
	l, err := openLedger(ctx, cfg, "dedup import", log)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	o.Rules, o.Longest, o.Ledger = set, LongestImported(cfg), l
	report, err := importer.Run(ctx, o)
	if err != nil {
		return report, ExplainPostgres(cfg.Postgres, err)
	}
	return report, nil
}
