package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStartToFirstRecord tells how long it takes from the process's start to the
// first committed clean record, with everything up and a record waiting. The
// program is built as a user's is, without the race detector.
func TestStartToFirstRecord(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "dedup")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/dedup").CombinedOutput()
	require.NoError(t, err, string(out))
	b := newBundle(t, setup{})
	sentUp := 0
	first := func(what string) *filter {
		b.produce(t, order("acme:edifact", fmt.Sprint(sentUp), 5))
		sentUp++
		k := b.track(t)
		k.await(t, k.all(b.books()[:sentUp-1])) // the reader stands at the end
		began := time.Now()
		f := b.launchProgram(t, program, 0, auto...)
		k.awaitCount(t, sentUp)
		t.Logf("start to first clean record, %s: %s", what, time.Since(began).Round(time.Millisecond))
		return f
	}
	f := first("new group")
	f.awaitReady(t)
	f.term(t)
	f = first("after a stop")
	f.awaitReady(t)
	f.kill(t)
	f = first("after kill -9")
	b.check(t)
	f.term(t)
}
