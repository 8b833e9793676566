package cold

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A pooler in transaction mode lends a server process per transaction. Whether
// one stands between us and PostgreSQL cannot be asked (its traits differ from
// maker to maker), but it can be provoked: it gives an idle process to whoever
// begins a transaction next.
const (
	probeRounds = 16
	probeBeside = 2 // transactions held open at once beside our connection
)

// requireOwnProcess tells whether the connection keeps a server process to
// itself. Between two statements of the connection, while it is idle, others
// begin transactions and hold them open:
//
//   - one of them is served by our process: it is lent out. With a pool of one
//     this is always so, and the transactions are ended before we ask again;
//   - none is, but our next statement is served by another process: ours was
//     lent to a stranger, or the pooler goes round.
//
// Where the pool is busy with others a round can miss both, so there are several,
// and each look after the slot asks for the process again (tenure.confirm).
func (s *Slots) requireOwnProcess(ctx context.Context, t *tenure) error {
	ctx, cancel := answerWithin(ctx)
	defer cancel()
	err := t.conn.QueryRow(ctx, `select pid, backend_start from pg_stat_activity where pid = pg_backend_pid()`).Scan(&t.pid, &t.since)
	if err != nil {
		return s.failed("asking for the server process of the slot's connection", err)
	}
	var others []*pgx.Conn
	defer func() {
		for _, c := range others {
			_ = c.Close(context.WithoutCancel(ctx))
		}
	}()
	for range probeBeside {
		c, err := s.connect(ctx)
		if err != nil {
			return s.failed("connecting beside the slot's connection", err)
		}
		others = append(others, c)
	}
	for range probeRounds {
		if err := s.probe(ctx, t, others); err != nil {
			return err
		}
	}
	return nil
}

// probe is one round.
func (s *Slots) probe(ctx context.Context, t *tenure, others []*pgx.Conn) error {
	for _, c := range others {
		tx, err := c.Begin(ctx)
		if err != nil {
			return s.failed("beginning a transaction beside the slot's connection", err)
		}
		defer func() { _ = tx.Rollback(ctx) }()
		var pid int
		if err := tx.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
			return s.failed("asking for the server process of another connection", err)
		}
		if pid == t.pid {
			return pooled(t.pid, pid)
		}
	}
	return t.confirm(ctx)
}

func pooled(ours, other int) error {
	if ours == other {
		return fmt.Errorf("%w (server process %d answered two connections)", ErrPooled, ours)
	}
	return fmt.Errorf("%w (one connection was answered by the server processes %d and %d)", ErrPooled, ours, other)
}
