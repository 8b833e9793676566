package app

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/app/config"
)

// TestAdmission: what holds is the last word of each broker; a broker that is
// away is no refusal, and a refusal that nobody repeats is forgotten.
func TestAdmission(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	k := config.Kafka{SASL: config.SASL{Mechanism: config.ScramSHA256, Username: "dedup"}}
	a := newAdmission(func(err error) error { return ExplainKafka(k, err) }, slog.New(slog.DiscardHandler))
	a.now = func() time.Time { return now }
	one, two := kgo.BrokerMetadata{Host: "one", Port: 9093}, kgo.BrokerMetadata{Host: "two", Port: 9093}
	tell := func(b kgo.BrokerMetadata, err error) { a.OnBrokerConnect(b, 0, nil, err) }

	tell(one, &net.OpError{Op: "dial", Err: net.ErrClosed})
	require.Empty(t, a.why())
	tell(one, kerr.SaslAuthenticationFailed)
	tell(two, kerr.SaslAuthenticationFailed)
	require.Regexp(t, `^one:9093: Kafka refuses the login of "dedup" by SCRAM-SHA-256: .*; two:9093: Kafka refuses`, a.why())
	tell(one, nil)
	require.Regexp(t, `^two:9093: Kafka refuses`, a.why())
	now = now.Add(admissionKept + 1)
	require.Empty(t, a.why())
}
