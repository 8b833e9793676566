package migrations

import (
	"context"
	"fmt"
	"io"
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
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
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

// planHead stands before the plan: what runs it by another way than Up leaves a
// schema that this program takes for none.
const planHead = "-- To be read. Only `dedup migrate up` also records in dedup_migration what it applied.\n"

// Plan writes the SQL that Up would run, in order, and runs nothing.
func Plan(ctx context.Context, url string, w io.Writer) error {
	states, err := Status(ctx, url)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, planHead); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	for _, s := range states {
		if s.Applied {
			continue
		}
		if _, err := fmt.Fprintf(w, "-- %s\n%s\n", s.Name, s.SQL); err != nil {
			return fmt.Errorf("writing the plan: %w", err)
		}
	}
	if _, err := fmt.Fprintf(w, "-- after every run\n%s", after); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

func sqlFiles() (fs.FS, error) {
	sub, err := fs.Sub(files, "sql")
	if err != nil {
		return nil, fmt.Errorf("opening the embedded migrations: %w", err)
	}
	return sub, nil
}
