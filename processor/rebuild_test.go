package processor

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A group that refuses the session each time is no outage: the sessions are not
// rebuilt for ever. The process ends and says why.
func TestEndlessRebuildsEndTheProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var joins atomic.Int32
	b.cluster.ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		joins.Add(1)
		resp, _ := r.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = kerr.InconsistentGroupProtocol.Code
		return resp, nil, true
	})
	p := New(b.config())
	err := p.Run(t.Context())
	require.ErrorIs(t, err, kerr.InconsistentGroupProtocol)
	require.ErrorContains(t, err, "session 0 was rebuilt 10 times in 5m0s")
	require.Greater(t, joins.Load(), int32(maxRebuilds))
}

// The wait between two rebuilds does not keep a stop waiting.
func TestAStopInterruptsTheBackOff(t *testing.T) {
	t.Parallel()
	s := &session{proc: &Processor{}, failures: 20, cfg: &Config{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.backOff(ctx)
	for range 100 {
		require.LessOrEqual(t, s.nextWait(), retryMax)
	}
	s.failures = 0
	first := s.nextWait()
	require.GreaterOrEqual(t, first, retryMin/2)
	require.Less(t, first, retryMin)
}
