package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/pki"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// pairFiles writes a certificate of the clients' authority.
func (s *secured) pairFiles(t *testing.T, name string, l pki.Leaf) (cert, key string) {
	t.Helper()
	pair, err := s.clients.Issue(l)
	require.NoError(t, err)
	cert, key, err = pair.Write(s.dir, name)
	require.NoError(t, err)
	return cert, key
}

// TestSecuredCommands: every command that connects takes TLS and its login.
func TestSecuredCommands(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	b := newBundle(t, setup{Kafka: s.kafka.Addr(), Redis: s.redis.Addr(), Postgres: s.postgres.Postgres, Unprepared: true})
	s.setPasswords(t)
	cert, key := s.pairFiles(t, "owner", pki.Leaf{Name: devservices.RoleOwner})
	url, err := devservices.SecureURL(b.db.AppURL, devservices.RoleOwner, "sslmode", "verify-full", "sslrootcert", s.file("ca.crt"), "sslcert", cert, "sslkey", key)
	require.NoError(t, err)
	owner := []string{"DEDUP_POSTGRES_URL=" + url, "DEDUP_POSTGRES_PASSWORD_FILE=" + s.file("postgres")}
	b.command(t, owner, "migrate", "up")
	require.Contains(t, b.command(t, owner, "migrate", "status"), "applied")
	b.command(t, s.kafkaEnv(), append([]string{"topics", "ensure"}, b.raw...)...)

	r := b.try(t, append(owner, "DEDUP_POSTGRES_PASSWORD_FILE="+s.file("redis")), "migrate", "up")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "PostgreSQL refuses the login")
	r = b.try(t, append(s.kafkaEnv(), "DEDUP_KAFKA_SASL_PASSWORD_FILE="+s.file("redis")), "topics", "ensure")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `Kafka refuses the login of "dedup" by SCRAM-SHA-512`)

	for mechanism, user := range map[string]string{"PLAIN": "plain", "SCRAM-SHA-256": "short"} {
		s.write(t, user, []byte(extraPassword))
		b.command(t, append(s.kafkaEnv(), "DEDUP_KAFKA_SASL_MECHANISM="+mechanism, "DEDUP_KAFKA_SASL_USERNAME="+user,
			"DEDUP_KAFKA_SASL_PASSWORD_FILE="+s.file(user)), "topics", "ensure")
	}
	f := b.start(t, 0, s.env(t, b)...)
	b.produce(t, orders("acme:edifact", 0, 20)...)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
	s.requireNoSecret(t, f)
}

// TestAccessRefused: each way in which a store refuses us ends the start with one
// sentence that names the thing and the repair, or is waited for with the same
// sentence. Nothing is consumed meanwhile.
func TestAccessRefused(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	b := s.bundle(t)
	other := newAuthority(t, "other")
	s.write(t, "other.crt", other.PEM)
	s.write(t, "wrong", []byte("wrong"))
	expired, expiredKey := s.pairFiles(t, "expired", pki.Leaf{Name: devservices.RoleApp, Expired: true})
	pg := func(role string, parameters ...string) string {
		url, err := devservices.SecureURL(b.db.AppURL, role, append([]string{
			"sslmode", "verify-full", "sslrootcert", s.file("ca.crt"), "sslcert", s.file("client.crt"), "sslkey", s.file("client.key"),
		}, parameters...)...)
		require.NoError(t, err)
		return "DEDUP_POSTGRES_URL=" + url
	}
	ends := func(name string, env []string, sentences ...string) {
		t.Run(name, func(t *testing.T) {
			b.requireFailure(t, append(s.env(t, b), env...), sentences...)
		})
	}
	waits := func(name string, env []string, sentence string) {
		t.Run(name, func(t *testing.T) {
			f := b.launch(t, 0, append(s.env(t, b), env...)...)
			f.awaitReason(t, sentence)
			f.awaitLog(t, sentence)
			f.term(t)
		})
	}
	ends("kafka, wrong authority", []string{"DEDUP_KAFKA_TLS_CA_FILE=" + s.file("other.crt")},
		"Kafka's certificate is signed by no authority in "+s.file("other.crt"), "kafka.tls.ca_file")
	ends("kafka, wrong name", []string{"DEDUP_KAFKA_TLS_SERVER_NAME=kafka.example"},
		"Kafka's certificate is for localhost, 127.0.0.1 and not for kafka.example", "kafka.tls.server_name")
	ends("kafka, wrong password", []string{"DEDUP_KAFKA_SASL_PASSWORD_FILE=" + s.file("wrong")}, `Kafka refuses the login of "dedup" by SCRAM-SHA-512`, "kafka.sasl.password_file")
	ends("kafka, unknown user", []string{"DEDUP_KAFKA_SASL_USERNAME=nobody"}, `Kafka refuses the login of "nobody"`)
	ends("kafka, expired certificate of ours", []string{"DEDUP_KAFKA_TLS_CERT_FILE=" + expired, "DEDUP_KAFKA_TLS_KEY_FILE=" + expiredKey},
		"our certificate in "+expired, "expired on", "kafka.tls.cert_file")
	ends("kafka, no TLS to a TLS port", []string{"DEDUP_KAFKA_TLS_ENABLED=false", "DEDUP_KAFKA_TLS_CA_FILE="},
		"Kafka expects TLS on this port", "kafka.tls.enabled")
	waits("kafka, TLS to a port without", []string{"DEDUP_KAFKA_BROKERS=" + s.kafka.Addr()}, "Kafka closes each new connection")
	waits("kafka, no login", []string{"DEDUP_KAFKA_SASL_MECHANISM=", "DEDUP_KAFKA_SASL_USERNAME=", "DEDUP_KAFKA_SASL_PASSWORD_FILE="}, "Kafka closes each new connection")

	ends("postgres, wrong authority", []string{pg(devservices.RoleApp, "sslrootcert", s.file("other.crt"))},
		"PostgreSQL's certificate is signed by no authority in "+s.file("other.crt"), "sslrootcert in postgres.url")
	ends("postgres, wrong password", []string{"DEDUP_POSTGRES_PASSWORD_FILE=" + s.file("wrong")}, "PostgreSQL refuses the login", "postgres.password_file")
	ends("postgres, another's certificate", []string{pg(devservices.RoleRead)}, "PostgreSQL refuses the login", "common name")
	ends("postgres, no certificate", []string{pg(devservices.RoleApp, "sslcert", "", "sslkey", "")}, "PostgreSQL refuses the login before it looks at a password", "sslcert")
	ends("postgres, no TLS", []string{pg(devservices.RoleApp, "sslmode", "disable", "sslrootcert", "", "sslcert", "", "sslkey", "")},
		"PostgreSQL refuses the login before it looks at a password", "pg_hba.conf")
	ends("postgres, expired certificate of ours", []string{pg(devservices.RoleApp, "sslcert", expired, "sslkey", expiredKey)},
		"our certificate in "+expired, "sslcert in postgres.url")
	ends("postgres, a server without TLS", []string{"DEDUP_POSTGRES_URL=" + plainPostgres(t, s)}, "PostgreSQL does not speak TLS", "sslmode=disable")

	pair, err := s.authority.Issue(pki.Leaf{Name: "server", Hosts: []string{"localhost", "127.0.0.1"}, Expired: true})
	require.NoError(t, err)
	require.NoError(t, s.kafka.SetCertificate(t.Context(), pair))
	until(t, "Kafka's new certificate", func(ctx context.Context) (bool, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", s.kafka.SecureAddr())
		if err != nil {
			return false, err
		}
		defer conn.Close()
		return time.Now().After(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].NotAfter), nil
	})
	ends("kafka, expired", nil, "Kafka's certificate is valid from", "give the server a new one")
	require.NoError(t, s.postgres.SetCertificate(t.Context(), pair, nil))
	until(t, "PostgreSQL's new certificate", func(ctx context.Context) (bool, error) {
		_, url, _ := strings.Cut(pg(devservices.RoleApp), "=")
		_, err := pgx.Connect(ctx, url)
		return errors.As(err, new(x509.CertificateInvalidError)), nil
	})
	ends("postgres, expired", nil, "PostgreSQL's certificate is valid from", "give the server a new one")
	require.Zero(t, ask[int](t, b, `select count(*) from dedup_position`), "nothing was consumed")

	for _, command := range []string{"up", "status", "plan"} {
		r := b.try(t, []string{"DEDUP_POSTGRES_URL=" + plainPostgres(t, s)}, "migrate", command)
		r.requireSentence(t, "PostgreSQL does not speak TLS: set ssl in postgresql.conf, or write sslmode=disable in postgres.url")
	}
}

// plainPostgres is the run's own server, which has no TLS, as one with TLS would
// be named.
func plainPostgres(t *testing.T, s *secured) string {
	t.Helper()
	url, err := devservices.SecureURL(shared.services.PostgresURL, devservices.RoleApp, "sslmode", "verify-full", "sslrootcert", s.file("ca.crt"))
	require.NoError(t, err)
	return url
}

// TestRedisAccessRefused: the filter works without Redis, and says why it does.
func TestRedisAccessRefused(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t, "services")
	certificate, err := devservices.IssueServer(authority)
	require.NoError(t, err)
	user := devservices.RedisUser{Name: secureUser, Password: "redis-secret", Rules: redisRules}
	r, err := shared.services.StartSecureRedis(t.Context(), devservices.RedisSecurity{Certificate: certificate, Users: []devservices.RedisUser{user}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	dir := t.TempDir()
	right, wrong := filepath.Join(dir, "right.crt"), filepath.Join(dir, "wrong.crt")
	require.NoError(t, pki.WriteFile(right, authority.PEM))
	require.NoError(t, pki.WriteFile(wrong, newAuthority(t, "other").PEM))
	b := newBundle(t, setup{})
	for name, c := range map[string]struct {
		env      []string
		sentence string
	}{
		"wrong authority": {[]string{"DEDUP_REDIS_TLS_ENABLED=true", "DEDUP_REDIS_TLS_CA_FILE=" + wrong, "DEDUP_REDIS_PASSWORD=redis-secret"}, "Redis's certificate is signed by no authority in " + wrong},
		"wrong password":  {[]string{"DEDUP_REDIS_TLS_ENABLED=true", "DEDUP_REDIS_TLS_CA_FILE=" + right, "DEDUP_REDIS_PASSWORD=wrong"}, `Redis refuses the login of \"dedup\"`},
		"no TLS":          {[]string{"DEDUP_REDIS_PASSWORD=redis-secret"}, "Redis closes each new connection"},
	} {
		t.Run(name, func(t *testing.T) {
			f := b.start(t, 0, append(c.env, "DEDUP_REDIS_ADDRS="+r.SecureAddr(), "DEDUP_REDIS_USERNAME="+secureUser, "DEDUP_REDIS_CIRCUIT_ERRORS=1")...)
			b.produce(t, orders("acme:edifact", len(b.books()), 5)...)
			b.awaitOutputs(t)
			until(t, c.sentence, func(ctx context.Context) (bool, error) {
				code, body, err := f.get(ctx, "/readyz")
				return code == 200 && strings.Contains(body, c.sentence), err
			})
			f.awaitLog(t, "Redis refuses the connection; going on without it")
			f.term(t)
		})
	}
	b.check(t)
	b.checkStopped(t)
}

// TestReauthentication: a broker that demands it (KIP-368) is told the password of
// now, on connections that stay.
func TestReauthentication(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	s := &secured{authority: newAuthority(t, "services"), dir: t.TempDir(), passwords: map[string]string{"kafka": "kafka-secret-1"}}
	s.write(t, "ca.crt", s.authority.PEM)
	s.write(t, "kafka", []byte(s.passwords["kafka"]))
	var err error
	s.kafka, err = shared.services.StartSecureKafka(t.Context(), devservices.KafkaSecurity{
		Certificate: s.server(t), Users: []devservices.KafkaUser{s.kafkaUser()}, SuperUsers: []string{secureUser}, Reauthenticate: 2 * time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.kafka.Close()) })
	b := newBundle(t, setup{Kafka: s.kafka.Addr()})
	f := b.start(t, 0, append(s.kafkaEnv(), "DEDUP_PROCESSOR_BATCH_RECORDS=100")...)
	l := b.startLoad(t, rng, "k", 8)
	l.passMore(t, 300)
	s.passwords["kafka"] = "kafka-secret-2"
	require.NoError(t, s.kafka.SetUser(t.Context(), s.kafkaUser()))
	f.awaitReason(t, "Kafka refuses the login of")
	s.write(t, "kafka", []byte(s.passwords["kafka"]))
	f.awaitReady(t)
	l.passMore(t, 300)
	l.end(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
