package app

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"syscall"
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

// TestAdmissionIsToldOnce: a proxy takes connections for a broker that is away and
// closes them; each try fails from another port, and that is nothing new.
func TestAdmissionIsToldOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := newAdmission(func(err error) error { return ExplainKafka(config.Kafka{}, err) }, slog.New(slog.NewTextHandler(&log, nil)))
	tell := func(err error) { a.OnBrokerConnect(kgo.BrokerMetadata{Host: "one", Port: 9092}, 0, nil, err) }
	told := func() int { return strings.Count(log.String(), "a connection to Kafka was refused") }
	for port := range 5 {
		tell(&net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port + 1}, Err: syscall.ECONNRESET})
	}
	require.Equal(t, 1, told())
	require.Contains(t, a.why(), "read tcp :5: ", "the last word")
	tell(kerr.SaslAuthenticationFailed)
	require.Equal(t, 2, told(), "another reason is told")
	tell(nil)
	tell(kerr.SaslAuthenticationFailed)
	require.Equal(t, 3, told(), "and the same again, after a connection")
}
