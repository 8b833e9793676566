package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"dedupledger/internal/access"
	"dedupledger/internal/app/config"
	"dedupledger/ledger"
	"dedupledger/ledger/cold"
	"dedupledger/migrations"
)

const (
	kafkaDial = 10 * time.Second
	redisDial = time.Second
)

// When a broker is lost every request to it fails until the others have elected
// leaders and coordinators, after broker.session.timeout.ms and then some. The
// defaults of the client (a look at the metadata every 5 s, a wait that doubles to
// 5 s) let it find out seconds later, one thing after the other:
//
//	the metadata is read right before the election, and names the dead leader
//	5 s later it names the new one; the outputs are produced
//	the offsets go to the coordinator that was; asked again after 1, 2, 4, 5 s
//
// Kafka's own clients ask again after 100 ms, doubling to 1 s (KIP-580).
const (
	retryLeast  = 100 * time.Millisecond
	retryMost   = time.Second
	metadataAge = time.Second // at least, until it is read again
	// tries of a request: more than fit into the client's 30 s, which bound it.
	tries = 100
)

// retryAfter is the wait before a request is sent for the nth time more, with
// jitter.
func retryAfter(n int) time.Duration {
	wait := min(retryLeast<<min(max(n-1, 0), 8), retryMost)
	return wait - rand.N(wait/5) //nolint:gosec // jitter
}

// KafkaOptions are what every Kafka client of the program needs: where the
// brokers are, TLS and the login. Files are read for each connection.
func KafkaOptions(k config.Kafka) []kgo.Opt {
	d := &net.Dialer{Timeout: kafkaDial}
	opts := []kgo.Opt{
		kgo.SeedBrokers(k.Brokers...),
		kgo.MetadataMinAge(metadataAge),
		kgo.RetryBackoffFn(retryAfter),
		kgo.RequestRetries(tries),
		kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := k.TLS.Dial(ctx, d, network, addr)
			if err != nil {
				return nil, err //nolint:wrapcheck // the client looks into it
			}
			// Not all at once: they were opened at once.
			return access.NewAging(conn, k.ConnectionLifetime-rand.N(k.ConnectionLifetime/10), time.Now), nil //nolint:gosec // jitter
		}),
	}
	if k.SASL.Mechanism != "" {
		opts = append(opts, kgo.SASL(mechanism(k.SASL)))
	}
	return opts
}

// mechanism reads the password for each authentication, repeated ones (KIP-368)
// included.
func mechanism(s config.SASL) sasl.Mechanism {
	switch s.Mechanism {
	case config.Plain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := s.Password.Reveal()
			return plain.Auth{User: s.Username, Pass: password}, err
		})
	case config.ScramSHA256:
		return scram.Sha256(scramAuth(s))
	default:
		return scram.Sha512(scramAuth(s))
	}
}

func scramAuth(s config.SASL) func(context.Context) (scram.Auth, error) {
	return func(context.Context) (scram.Auth, error) {
		password, err := s.Password.Reveal()
		return scram.Auth{User: s.Username, Pass: password}, err
	}
}

// ExplainKafka gives an error of a Kafka client its sentence.
func ExplainKafka(k config.Kafka, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return &access.Refusal{Sentence: fmt.Sprintf("Kafka refuses the login of %q by %s: check kafka.sasl.username and its password (kafka.sasl.password_file)",
			k.SASL.Username, k.SASL.Mechanism), Err: err}
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return &access.Refusal{Sentence: fmt.Sprintf("Kafka does not offer %s on this port: set kafka.sasl.mechanism to one that it does", k.SASL.Mechanism), Err: err}
	case errors.Is(err, kerr.IllegalSaslState):
		return &access.Refusal{Sentence: "Kafka wants no login, or another one, on this port: check kafka.sasl.mechanism and the port in kafka.brokers", Err: err}
	}
	return access.Service{
		Name: "Kafka", TLS: k.TLS, Switch: "kafka.tls.enabled", CA: "kafka.tls.ca_file",
		Cert: "kafka.tls.cert_file", ServerName: "kafka.tls.server_name",
	}.Explain(err)
}

// ExplainPostgres gives an error of a connection to PostgreSQL its sentence.
func ExplainPostgres(p config.Postgres, err error) error {
	if why, said := cold.Refused(err); why != "" {
		return &access.Refusal{Sentence: why, Err: said}
	}
	if errors.Is(err, ledger.ErrSchema) {
		return err // it has its sentence
	}
	if errors.Is(err, migrations.ErrNoTLS) {
		return &access.Refusal{Sentence: "PostgreSQL does not speak TLS: set ssl in postgresql.conf, or write sslmode=disable in postgres.url", Err: err}
	}
	files, urlErr := access.PostgresTLS(p.URL.Reveal())
	if urlErr != nil {
		return err
	}
	return access.Service{
		Name: "PostgreSQL", TLS: files, Switch: "sslmode in postgres.url", CA: "sslrootcert in postgres.url", Cert: "sslcert in postgres.url",
	}.Explain(err)
}

// explainRedis gives an error of a connection to Redis its sentence, or "". Redis
// never stops the filter, so there is no more to it than the words.
func explainRedis(r config.Redis, err error) string {
	if redis.IsAuthError(err) {
		return fmt.Sprintf("Redis refuses the login of %q: check redis.username and redis.password_file", r.Username)
	}
	explained := access.Service{
		Name: "Redis", TLS: r.TLS, Switch: "redis.tls.enabled", CA: "redis.tls.ca_file", Cert: "redis.tls.cert_file",
	}.Explain(err)
	if why, ok := errors.AsType[*access.Refusal](explained); ok {
		return why.Sentence
	}
	return ""
}

// refused reports whether waiting does not help.
func refused(err error) bool {
	r, ok := errors.AsType[*access.Refusal](err)
	return ok && !r.Mends
}

// kafkaOptions are KafkaOptions of a client that the filter watches.
func (a *app) kafkaOptions() []kgo.Opt {
	return append(KafkaOptions(a.Config.Kafka), kgo.WithHooks(a.admission))
}

// postgresFiles says which file of postgres.url cannot be used.
func (a *app) postgresFiles() error {
	files, err := access.PostgresTLS(a.Config.Postgres.URL.Reveal())
	if err != nil || !files.Enabled {
		return err
	}
	return files.Check() //nolint:wrapcheck // it names the file
}

// passwordOf is nil where the URL has its own password, or none.
func passwordOf(p access.Password) func() (string, error) {
	if p.File == "" {
		return nil
	}
	return p.Reveal
}
