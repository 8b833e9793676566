package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"dedupledger/internal/devservices"
)

// learn is how fast a filter reads its own outputs back: it drains the topic,
// then PostgreSQL is put back to the moment before the first record, and it is
// started again (ARCHITECTURE §4: learning).
func (s *stage) learn(ctx context.Context, n int) (figures, error) {
	set, err := s.prepare(ctx, "learn-"+strconv.Itoa(n), s.create)
	if err != nil {
		return figures{}, err
	}
	defer s.dropTopics(context.WithoutCancel(ctx), set.outputs...)
	defer s.drop(ctx, set.db)
	backup := pgx.Identifier{set.db.Name + "_backup"}.Sanitize()
	now := pgx.Identifier{set.db.Name}.Sanitize()
	if err := s.sql(ctx, "create database "+backup+" owner "+devservices.RoleOwner+" template "+now); err != nil {
		return figures{}, err
	}
	run := []string{"run", "-c", set.config}
	if _, err := s.drainWith(ctx, set.group, s.binary, run, nil, set.log); err != nil {
		return figures{}, err
	}
	for _, q := range []string{"drop database " + now + " with (force)", "alter database " + backup + " rename to " + now} {
		if err := s.sql(ctx, q); err != nil {
			return figures{}, err
		}
	}
	s.checkpoint(ctx)
	c, err := pgx.Connect(ctx, set.db.AdminURL)
	if err != nil {
		return figures{}, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	f, err := s.watched(ctx, decidedIn(c), s.binary, run, nil, set.log)
	if err != nil {
		return figures{}, err
	}
	return f, s.checkAccounts(ctx, set.db, s.o.messages)
}

// decidedIn counts what the ledger has decided: raw is produced without
// transactions, so the positions add up to a count.
func decidedIn(c *pgx.Conn) func(context.Context) int64 {
	return func(ctx context.Context) int64 {
		var sum int64
		if err := c.QueryRow(ctx, "select coalesce(sum(d_offset), 0)::bigint from dedup_position").Scan(&sum); err != nil {
			return 0
		}
		return sum
	}
}

func (s *stage) sql(ctx context.Context, q string) error {
	return s.onPostgres(ctx, func(c *pgx.Conn) error {
		if _, err := c.Exec(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
		return nil
	})
}
