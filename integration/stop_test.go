package integration

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// given is what deploy/kubernetes gives a filter for its stop.
type given struct {
	grace string        // processor.shutdown_grace
	until time.Duration // SIGKILL comes then
}

func kubernetes(t *testing.T) (g given) {
	t.Helper()
	var config struct{ Data map[string]string }
	read(t, "../deploy/kubernetes/configmap.yaml", &config)
	var dedup struct {
		Processor struct {
			Grace string `yaml:"shutdown_grace"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(config.Data["dedup.yaml"]), &dedup))
	var set struct {
		Spec struct {
			Template struct {
				Spec struct {
					Seconds int `yaml:"terminationGracePeriodSeconds"`
				}
			}
		}
	}
	read(t, "../deploy/kubernetes/statefulset.yaml", &set)
	g = given{dedup.Processor.Grace, time.Duration(set.Spec.Template.Spec.Seconds) * time.Second}
	require.NotEmpty(t, g.grace)
	require.NotZero(t, g.until)
	return g
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.NewDecoder(bytes.NewReader(text)).Decode(into))
}

// terms sends SIGTERM and says how long the filter took to end.
func (f *filter) terms(t *testing.T) (took time.Duration) {
	t.Helper()
	began := time.Now()
	require.NoError(t, f.child.Stop(t.Context()))
	return time.Since(began)
}

// TestStopWithinKubernetesGrace: under load, with the grace of the manifests,
// the filter ends by itself before Kubernetes would end it; and so it does when
// PostgreSQL never answers the batch in hand, which is then given up and judged
// by the next process.
// Fault card: F04.
func TestStopWithinKubernetesGrace(t *testing.T) {
	t.Parallel()
	g := kubernetes(t)
	grace, err := time.ParseDuration(g.grace)
	require.NoError(t, err)
	b := newBundle(t, setup{})
	l := b.startLoad(t, seeded(t), "stop", 20)
	f := b.start(t, 0, "DEDUP_PROCESSOR_SHUTDOWN_GRACE="+g.grace)
	l.passMore(t, 1000)
	require.Less(t, f.terms(t), grace, "the batch in hand is finished")
	require.Zero(t, f.child.ExitCode())

	// A stranger holds the scopes: each registration waits. The grace is shorter,
	// the time behind it that of the manifests.
	const short = 3 * time.Second
	f = b.start(t, 0, "DEDUP_PROCESSOR_SHUTDOWN_GRACE=3s")
	l.passMore(t, 500)
	release := b.holdScopes(t)
	l.allowed.Add(1000) // so there is a batch in hand
	f.awaitMetric(t, "dedup_oldest_unprocessed_seconds", nil, func(age float64) bool { return age > 0 })
	require.Less(t, f.terms(t), short+g.until-grace, "what cannot be finished is given up")
	release()
	l.end(t)
	f = b.start(t, 0)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// holdScopes locks all scopes as a registration does, until it is told to let
// go.
func (b *bundle) holdScopes(t *testing.T) (release func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, b.db.OwnerURL)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(ctx) })
	_, err = c.Exec(ctx, "begin; lock table dedup_scope in access exclusive mode")
	require.NoError(t, err)
	return func() {
		_, err := c.Exec(ctx, "rollback")
		require.NoError(t, err)
	}
}
