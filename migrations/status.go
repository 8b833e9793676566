package migrations

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

// State is one migration and whether it was applied.
type State struct {
	Source
	Applied bool
}

// Status lists all migrations in order. It changes nothing.
func Status(ctx context.Context, url string) ([]State, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("asking PostgreSQL for its schema: %w", Brief(err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	have, err := current(ctx, conn)
	if err != nil {
		return nil, err
	}
	all, err := sources()
	if err != nil {
		return nil, err
	}
	states := make([]State, len(all))
	for i, s := range all {
		states[i] = State{Source: s, Applied: s.Version <= have}
	}
	return states, nil
}

func sqlFiles() (fs.FS, error) {
	sub, err := fs.Sub(files, "sql")
	if err != nil {
		return nil, fmt.Errorf("opening the embedded migrations: %w", err)
	}
	return sub, nil
}
