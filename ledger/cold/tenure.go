package cold

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"dedupledger/ledger"
)

// tenure is a slot held by the advisory lock of a connection.
type tenure struct {
	conn  *pgx.Conn
	slot  int
	pid   int       // of the server process
	since time.Time // that process's start, by PostgreSQL's clock: pids come again

	gone    sync.Once
	lost    chan struct{}
	stop    context.CancelFunc // ends the watching
	watched chan struct{}      // closed when it has ended
}

func (t *tenure) lose() { t.gone.Do(func() { close(t.lost) }) }

func (t *tenure) end() {
	t.stop()
	<-t.watched
}

// confirm asks on the connection itself, which is then known to live. Its
// deadline is its own: an answer that is not waited for would end it.
func (t *tenure) confirm(ctx context.Context) error {
	ctx, cancel := answerWithin(ctx)
	defer cancel()
	var pid int
	if err := t.conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return classify("looking after the slot's lock", err)
	}
	if pid != t.pid {
		return pooled(t.pid, pid)
	}
	return nil
}

func answerWithin(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), slotAnswer, errors.New("no answer within "+slotAnswer.String()))
}

// open takes a slot on a new connection: that of before where it is free, else
// the lowest; never but.
func (s *Slots) open(ctx context.Context, before *tenure, but int) (*tenure, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, s.failed("connecting for the slot's lock", err)
	}
	t := &tenure{conn: conn, lost: make(chan struct{}), watched: make(chan struct{})}
	if err := s.settle(ctx, t, before, but); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return t, nil
}

func (s *Slots) settle(ctx context.Context, t, before *tenure, but int) error {
	if err := s.requireOwnProcess(ctx, t); err != nil {
		return err
	}
	first := noSlot
	if before != nil && before.slot != but {
		first = before.slot
		if err := t.endZombie(ctx, before); err != nil {
			return s.failed("ending the connection that held the slot", err)
		}
	}
	if err := s.lockLowest(ctx, t, first, but); err != nil {
		return err
	}
	if err := t.introduce(ctx); err != nil {
		return s.failed("setting the keepalives of the slot's connection", err)
	}
	return nil
}

// failed is classify; of a first connection a refused login is a mistake.
func (s *Slots) failed(attempt string, err error) error {
	if s.held == nil {
		return atStart(attempt, err)
	}
	return classify(attempt, err)
}

// connect makes a connection as the pool does, but none of the pool's.
func (s *Slots) connect(ctx context.Context) (*pgx.Conn, error) {
	pool, err := poolConfig(s.config)
	if err != nil {
		return nil, err
	}
	config := pool.ConnConfig.Copy()
	// Whether a statement prepared before is known behind a pooler is not ours
	// to find out here.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if pool.BeforeConnect != nil {
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config) //nolint:wrapcheck // the callers say what for
}

// endZombie ends the server process of a connection that we have given up. The
// server may not have noticed: it stood still, our question ran into its limit,
// we closed; it goes on and has first our new connection, then our end of the
// old one to read. Without this the slot would be found taken, by ourselves, and
// all sessions rebuilt under another.
func (t *tenure) endZombie(ctx context.Context, old *tenure) error {
	_, err := t.conn.Exec(ctx, `select pg_terminate_backend(pid, $3) from pg_stat_activity
		where pid = $1 and backend_start = $2 and usename = current_user`,
		old.pid, old.since, zombieTimeout.Milliseconds())
	return err //nolint:wrapcheck // the caller says what for
}

// lockLowest tries one slot after the other.
func (s *Slots) lockLowest(ctx context.Context, t *tenure, first, but int) error {
	for n := range inOrder(first, but) {
		var ours bool
		if err := t.conn.QueryRow(ctx, "select pg_try_advisory_lock($1, $2)", s.class, n).Scan(&ours); err != nil {
			return s.failed("taking the lock of slot "+strconv.Itoa(n), err)
		}
		if ours {
			t.slot = n
			return nil
		}
	}
	return fmt.Errorf("taking a slot: %w: all of 0 to %d are taken", ledger.ErrUnavailable, maxSlot)
}

// inOrder are the slots from 0 upward, first before all others, but never.
func inOrder(first, but int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if first != noSlot && !yield(first) {
			return
		}
		for n := range maxSlot + 1 {
			if n != first && n != but && !yield(n) {
				return
			}
		}
	}
}

// introduce names the connection and makes the server notice the death of our
// machine, which without settings of its own takes two hours (tcp_keepalives_idle
// of Linux): within 10 + 3 × 5 seconds the lock is free. Not sent at start-up,
// where PgBouncer refuses what it does not know; and not before it is sure that
// the server process is ours, or the settings would be left to strangers.
func (t *tenure) introduce(ctx context.Context) error {
	_, err := t.conn.Exec(ctx, `select set_config('application_name', $1, false), set_config('tcp_keepalives_idle', '10', false),
		set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false),
		set_config('tcp_user_timeout', '25000', false)`, fmt.Sprintf("dedup slot %d lock", t.slot))
	return err //nolint:wrapcheck // the caller says what for
}
