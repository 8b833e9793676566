package hot

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	errDown  = errors.New("down")
	errLogin = errors.New("login refused")
)

type circuitBundle struct {
	*circuit
	clock time.Time
	log   lines
}

func setupCircuit(t *testing.T) *circuitBundle {
	t.Helper()
	b := &circuitBundle{clock: time.Unix(1_700_000_000, 0)}
	b.circuit = &circuit{
		cfg: Circuit{Errors: 3, Open: 2 * time.Second},
		now: func() time.Time { return b.clock },
		log: logTo(&b.log),

		explain: func(err error) string {
			if errors.Is(err, errLogin) {
				return "check the login"
			}
			return ""
		},
	}
	return b
}

func (b *circuitBundle) call(t *testing.T, err error) {
	t.Helper()
	probe, ok := b.allow()
	require.True(t, ok)
	b.done(t.Context(), probe, err)
}

func (b *circuitBundle) open(t *testing.T) {
	t.Helper()
	for range b.cfg.Errors {
		b.call(t, errDown)
	}
	require.True(t, b.isOpen())
}

func TestCircuitOpensAfterErrorsInARow(t *testing.T) {
	t.Parallel()
	b := setupCircuit(t)
	b.call(t, errDown)
	b.call(t, errDown)
	b.call(t, nil)
	b.call(t, errDown)
	b.call(t, context.Canceled) // the caller's doing
	b.call(t, errDown)
	require.False(t, b.isOpen())
	b.call(t, errDown)
	require.True(t, b.isOpen())
	_, ok := b.allow()
	require.False(t, ok)
}

func TestCircuitLetsOneProbeThrough(t *testing.T) {
	t.Parallel()
	b := setupCircuit(t)
	b.open(t)
	b.clock = b.clock.Add(b.cfg.Open - 1)
	_, ok := b.allow()
	require.False(t, ok)
	b.clock = b.clock.Add(1)
	probe, ok := b.allow()
	require.True(t, ok)
	require.True(t, probe)
	_, ok = b.allow()
	require.False(t, ok, "a second call while the probe is out")
	b.done(t.Context(), probe, errDown)
	_, ok = b.allow()
	require.False(t, ok)
	b.clock = b.clock.Add(b.cfg.Open)
	b.call(t, nil)
	require.False(t, b.isOpen())
}

func TestCircuitLogsOnceEachWay(t *testing.T) {
	t.Parallel()
	b := setupCircuit(t)
	b.open(t)
	for range 4 {
		b.clock = b.clock.Add(b.cfg.Open)
		b.call(t, errDown)
	}
	b.clock = b.clock.Add(b.cfg.Open)
	b.call(t, nil)
	b.call(t, nil)
	require.Equal(t, []string{"WARN Redis does not answer; going on without it", "INFO Redis answers again"}, b.log.all())
}

// A refusal that has a sentence is told with it, once, also where it comes after
// another trouble.
func TestCircuitTellsTheSentence(t *testing.T) {
	t.Parallel()
	b := setupCircuit(t)
	b.open(t)
	require.Equal(t, "down", b.trouble())
	for range 3 {
		b.clock = b.clock.Add(b.cfg.Open)
		b.call(t, errLogin)
	}
	require.Equal(t, "refused: check the login", b.trouble())
	b.clock = b.clock.Add(b.cfg.Open)
	b.call(t, nil)
	require.Empty(t, b.trouble())
	require.Equal(t, []string{
		"WARN Redis does not answer; going on without it", "WARN Redis refuses the connection; going on without it", "INFO Redis answers again",
	}, b.log.all())
}

// A call begun before the circuit opened ends while the probe is out.
func TestCircuitIgnoresStragglers(t *testing.T) {
	t.Parallel()
	b := setupCircuit(t)
	straggler, ok := b.allow()
	require.True(t, ok)
	b.open(t)
	b.clock = b.clock.Add(b.cfg.Open)
	probe, ok := b.allow()
	require.True(t, ok)
	b.done(t.Context(), straggler, nil)
	require.True(t, b.isOpen())
	b.done(t.Context(), probe, nil)
	require.False(t, b.isOpen())
}

func TestCancelledProbeIsNoAnswer(t *testing.T) {
	t.Parallel()
	b := setupCircuit(t)
	b.open(t)
	b.clock = b.clock.Add(b.cfg.Open)
	b.call(t, context.Canceled)
	require.True(t, b.isOpen())
	b.call(t, nil)
	require.False(t, b.isOpen())
}
