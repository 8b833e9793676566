package hot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"dedupledger/ledger"
)

const (
	// tombstoneMargin lets a tombstone outlive every fact of its row. Both ends
	// are early by what their own way to Redis took, which differs; without the
	// margin a fact that comes late could find the tombstone gone and live for
	// those milliseconds.
	tombstoneMargin = time.Minute
	// horizon is how far ahead of Postgres a first-seen may lie and still be
	// believed: clocks differ after a failover, but not by that.
	horizon = time.Hour
)

// write is one fact on its way.
type write struct {
	fact  *ledger.Fact
	key   string
	value []byte
	px    int64 // milliseconds
}

// Remember tells Redis of a batch in one pipeline and returns what contradicts
// it. now is the clock of a registration of the batch; facts that expire before
// they would arrive are left out.
//
// The error says that some facts were not taken and wraps the first reason; the
// others were. It is no statement about any message. It is ledger.ErrOver where all
// were left out, and nothing was sent.
func (h *Hot) Remember(ctx context.Context, now ledger.Clock, facts []ledger.Fact) ([]ledger.Witness, error) {
	elapsed := now.Elapsed(h.now())
	writes, bad := h.writes(now, elapsed, facts)
	if len(writes) == 0 {
		return nil, cmp.Or(bad, ledger.ErrOver)
	}
	probe, ok := h.circuit.allow()
	if !ok {
		return nil, ErrCircuitOpen
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout+time.Duration(len(writes))*perFact)
	defer cancel()
	run := run{hot: h, latest: now.Postgres.Add(elapsed + horizon).UnixMicro()}
	run.all(ctx, writes)
	h.circuit.done(ctx, probe, run.verdict(len(writes)))
	return run.witnesses, errors.Join(bad, run.err(len(writes)))
}

// writes encodes what is still worth sending. A fact that cannot be encoded is
// an error of its own and keeps none of the others back.
func (h *Hot) writes(now ledger.Clock, elapsed time.Duration, facts []ledger.Fact) ([]write, error) {
	out := make([]write, 0, len(facts))
	values := make([]byte, 0, valueSize*len(facts)) // never grows: each value is a part of it
	var bad, err error
	for i := range facts {
		px := ttl(&facts[i], now, elapsed, h.cap)
		if px <= 0 {
			continue
		}
		start := len(values)
		if values, err = encode(values, &facts[i]); err != nil {
			bad = err
			continue
		}
		out = append(out, write{
			fact: &facts[i], value: values[start:], px: px,
			key: keyOf(h.base, facts[i].Scope, facts[i].Key),
		})
	}
	return out, bad
}

// ttl is what is left of the row's window in whole milliseconds, rounded down. The
// elapsed time is taken off the cap as well: a fact that waited must not reach
// beyond the tombstone of a row that was closed meanwhile.
func ttl(f *ledger.Fact, now ledger.Clock, elapsed, limit time.Duration) int64 {
	left := f.ExpiresAt.Sub(now.Postgres)
	if limit > 0 {
		left = min(left, limit)
	}
	left -= elapsed
	if left < time.Millisecond {
		return 0
	}
	if f.Closed {
		left += tombstoneMargin
	}
	return left.Milliseconds()
}

// run is one Remember: its outcome, command by command.
type run struct {
	hot       *Hot
	latest    int64 // highest first-seen that can be true, microseconds
	witnesses []ledger.Witness
	failed    int
	first     error
}

// all sends the script by its hash, and its source for what a node answered that
// it does not know it: after a restart, a failover, SCRIPT FLUSH, and in a
// Cluster for each node on its own.
func (r *run) all(ctx context.Context, writes []write) {
	unknown := r.pipeline(ctx, writes, "evalsha", r.hot.script.Hash())
	if len(unknown) == 0 {
		return
	}
	still := r.pipeline(ctx, unknown, "eval", rememberSource)
	r.fail(len(still), redis.ErrNoScript)
}

// keyAt is where the key stands in a call of the script.
const keyAt = 3

// pipeline returns the writes whose node does not know the script. Each
// command's own error counts: Exec's is only the first of them. The commands are
// made here, and not by the client's EvalSha, for the memory: its arguments
// would be copied twice, and boxed anew for each fact.
func (r *run) pipeline(ctx context.Context, writes []write, call, script string) (unknown []write) {
	pipe := r.hot.client.Pipeline()
	cmds := make([]*redis.Cmd, len(writes))
	var name, what, keys, latest any = call, script, 1, r.latest
	args := make([]any, 0, 7*len(writes))
	for i := range writes {
		w := &writes[i]
		start := len(args)
		args = append(args, name, what, keys, w.key, w.value, &w.px, latest)
		cmds[i] = redis.NewCmd(ctx, args[start:len(args):len(args)]...)
		cmds[i].SetFirstKeyPos(keyAt)
		_ = pipe.Process(ctx, cmds[i]) // it only queues
	}
	_, failed := pipe.Exec(ctx)
	for i, cmd := range cmds {
		was, err := cmd.Text()
		if err != nil && cmd.Err() == nil && failed != nil {
			err = failed // never sent: the connection's login was refused, and only Exec says so
		}
		switch {
		case err == nil:
			r.compare(writes[i].fact, was)
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			unknown = append(unknown, writes[i])
		default:
			r.fail(1, err)
		}
	}
	return unknown
}

func (r *run) fail(n int, err error) {
	if n > 0 && r.first == nil {
		r.first = err
	}
	r.failed += n
}

// compare looks for a witness: a fact of another origin that was live when
// Postgres said it had no row. One with a later first-seen is none: it belongs
// to a row made after ours had expired, whose fact overtook ours.
func (r *run) compare(now *ledger.Fact, value string) {
	if !now.Inserted || now.Closed {
		return
	}
	was, ours := decode([]byte(value))
	if !ours || was.Closed || was.Origin == Short(now.Origin) {
		return
	}
	if was.FirstSeenAt.After(now.FirstSeenAt) || !was.ExpiresAt.After(now.FirstSeenAt) {
		return
	}
	r.witnesses = append(r.witnesses, ledger.Witness{Fact: *now, Was: was.Origin, WasSeen: was.FirstSeenAt})
}

// verdict is what the circuit is told: a Redis that takes a part, such as a
// Cluster with one node down, is used on.
func (r *run) verdict(total int) error {
	if r.failed < total {
		return nil
	}
	return r.first
}

func (r *run) err(total int) error {
	if r.failed == 0 {
		return nil
	}
	return fmt.Errorf("remember %d of %d facts in Redis: %w", r.failed, total, r.first)
}

// Get reads the fact of a key; false says that Redis knows none. The caller
// compares ExpiresAt with Postgres's clock and asks Postgres where Closed is
// set. The fact's origin is as Short makes it.
func (h *Hot) Get(ctx context.Context, scope, key string) (ledger.Fact, bool, error) {
	probe, ok := h.circuit.allow()
	if !ok {
		return ledger.Fact{}, false, ErrCircuitOpen
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	value, err := h.client.Get(ctx, keyOf(h.base, scope, key)).Bytes()
	if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE") {
		value, err = nil, nil // absent, or foreign
	}
	h.circuit.done(ctx, probe, err)
	if err != nil {
		return ledger.Fact{}, false, fmt.Errorf("get a fact from Redis: %w", err)
	}
	f, ours := decode(value)
	if !ours {
		return ledger.Fact{}, false, nil
	}
	f.Scope, f.Key = scope, key
	return f, true, nil
}
