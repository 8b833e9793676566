package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dedupledger/integration/laws"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// seeded is a source of randomness whose seed is printed, so that what went
// wrong once can be tried again.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// traffic is what a hub sees: n messages of a few flows, a fifth of them
// resends, some of those changed, and a broken one now and then. Keys carry the
// name, so that two calls share none.
func traffic(rng *rand.Rand, name string, n int) (messages []message) {
	for i := range n {
		scope := fmt.Sprintf("t%d:edifact", rng.IntN(6))
		which, quantity := i, 5
		switch draw := rng.IntN(100); {
		case draw < 16 && i > 0:
			which = rng.IntN(i)
		case draw < 20 && i > 0:
			which, quantity = rng.IntN(i), 6
		case draw < 21:
			messages = append(messages, cutOrder(scope, fmt.Sprintf("%sx%d", name, i)))
			continue
		}
		// A key belongs to the flow it was first sent in, most of the time.
		if rng.IntN(10) > 0 {
			scope = fmt.Sprintf("t%d:edifact", which%6)
		}
		messages = append(messages, order(scope, fmt.Sprintf("%s%d", name, which), quantity))
	}
	return messages
}

// markers are a message for every partition, so that its owner has something to
// commit.
func (b *bundle) markers(name string) (messages []message) {
	for p := range b.partitions {
		m := keyed("mark:er", fmt.Sprintf("%s-%d", name, p), []byte(name))
		m.Partition = int32(p)
		messages = append(messages, m)
	}
	return messages
}

// createTopic makes a topic with settings of its own before `topics ensure`,
// which changes none that is there.
func (b *bundle) createTopic(t *testing.T, name string, settings map[string]string) {
	t.Helper()
	configs := map[string]*string{}
	for k, v := range settings {
		configs[k] = new(v)
	}
	_, err := b.admin.CreateTopic(t.Context(), int32(b.partitions), 1, configs, name)
	require.NoError(t, err)
}

// until asks until it is true; what is for the message.
func until(t *testing.T, what string, is func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), outputsWithin, errors.New("waited too long: "+what))
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		yes, err := is(ctx)
		if ctx.Err() != nil {
			require.NoError(t, errors.Join(context.Cause(ctx), err))
		}
		if err == nil && yes {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

// awaitSQL waits until a query answers true.
func (b *bundle) awaitSQL(t *testing.T, q string, args ...any) {
	t.Helper()
	until(t, q, func(ctx context.Context) (yes bool, err error) {
		return yes, b.query(ctx, q, func(r pgx.Rows) error { return r.Scan(&yes) }, args...)
	})
}

// ask answers a query of one row.
func ask[T any](t *testing.T, b *bundle, q string, args ...any) (answer T) {
	t.Helper()
	require.NoError(t, b.query(t.Context(), q, func(r pgx.Rows) error { return r.Scan(&answer) }, args...))
	return answer
}

// asOwner runs SQL as the schema's owner.
func (b *bundle) asOwner(t *testing.T, sql string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), b.db.OwnerURL)
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	_, err = c.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// statuses counts the outputs by status.
func (b *bundle) statuses(t *testing.T) map[string]int {
	t.Helper()
	o, err := b.observe(t.Context())
	require.NoError(t, err)
	n := map[string]int{}
	for _, out := range o.Outputs {
		n[out.Status()]++
	}
	return n
}

// outputOf is the output of the nth record sent.
func (b *bundle) outputOf(t *testing.T, n int) *output {
	t.Helper()
	o, err := b.observe(t.Context())
	require.NoError(t, err)
	at := b.books()[n].Place
	for _, out := range o.Outputs {
		if out.Origin == at {
			return out
		}
	}
	require.FailNow(t, "no output", "of %s", at)
	return nil
}

// awaitLog waits until the filter has logged a text.
func (f *filter) awaitLog(t *testing.T, text string) {
	t.Helper()
	until(t, "log: "+text, func(context.Context) (bool, error) {
		log, err := os.ReadFile(f.log)
		return bytes.Contains(log, []byte(text)), err
	})
}

// awaitReason waits until /readyz is red and its body holds the text.
func (f *filter) awaitReason(t *testing.T, text string) {
	t.Helper()
	last := ""
	f.await(t, readyWithin, func() string { return fmt.Sprintf("/readyz does not say %q: %s", text, last) }, func() bool {
		code, body, err := f.get(t.Context(), "/readyz")
		last = fmt.Sprintf("%d %s", code, strings.TrimSpace(body))
		return err == nil && code == 503 && strings.Contains(body, text)
	})
	t.Log(last)
}

// ends waits until the filter has ended by itself.
func (f *filter) ends(t *testing.T) (code int, log string) {
	t.Helper()
	select {
	case <-f.child.Done():
	case <-time.After(commandWithin):
		require.FailNow(t, "the filter did not end")
	}
	text, err := os.ReadFile(f.log)
	require.NoError(t, err)
	return f.child.ExitCode(), string(text)
}

func withHeader(m message, key string, value []byte) message {
	m.Headers = append(m.Headers, kgo.RecordHeader{Key: key, Value: value})
	return m
}

// awaitPartitions waits until the filter consumes so many raw partitions.
func (f *filter) awaitPartitions(t *testing.T, n int) {
	t.Helper()
	last := ""
	f.await(t, readyWithin, func() string { return fmt.Sprintf("not %d partitions: %s", n, last) }, func() bool {
		_, body, err := f.get(t.Context(), "/readyz")
		last = body
		var r struct{ Running []string }
		return err == nil && json.Unmarshal([]byte(body), &r) == nil && len(r.Running) == n
	})
}

// judgeUnordered is check, once everything has its output, where outputs go by key, not by partition: the
// order of a raw partition is then kept per key only.
func (b *bundle) judgeUnordered(t *testing.T) {
	t.Helper()
	o, err := b.observe(t.Context())
	require.NoError(t, err)
	require.Empty(t, slices.Concat(laws.LawOne(o), laws.LawTwo(o), laws.NothingLost(o), laws.Verdicts(o), laws.Repeats(o), laws.Untouched(o), laws.OurHeaders(o), laws.HoursClose(o)))
}

// text is the whole log.
func (f *filter) text(t *testing.T) string {
	t.Helper()
	log, err := os.ReadFile(f.log)
	require.NoError(t, err)
	return string(log)
}
