package integration

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/pki"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

const (
	secureUser    = "dedup"
	extraPassword = "kafka-secret-extra" // of Kafka's users plain and short
	// redisRules are what the filter needs of Redis.
	redisRules = "~dedup:* resetchannels +evalsha +eval +get +set +info"
)

// secured are services with TLS and users, and the files by which a filter gets
// in. The tests themselves use the administrators' ways.
type secured struct {
	kafka    *devservices.SecureKafka
	redis    *devservices.SecureRedis
	postgres *devservices.SecurePostgres

	authority, clients *pki.Authority
	dir                string
	passwords          map[string]string // by service, as the servers have it
}

// kafkaUser with its present password.
func (s *secured) kafkaUser() devservices.KafkaUser {
	return devservices.KafkaUser{Name: secureUser, Password: s.passwords["kafka"], Mechanism: devservices.MechanismScramSHA512}
}

func (s *secured) redisUser() devservices.RedisUser {
	return devservices.RedisUser{Name: secureUser, Password: s.passwords["redis"], Rules: redisRules}
}

func (s *secured) file(name string) string { return filepath.Join(s.dir, name) }

func (s *secured) write(t *testing.T, name string, content ...[]byte) {
	t.Helper()
	var all []byte
	for _, c := range content {
		all = append(all, c...)
	}
	require.NoError(t, pki.WriteFile(s.file(name), all))
}

// writeClient issues the filter's certificate for PostgreSQL.
func (s *secured) writeClient(t *testing.T) {
	t.Helper()
	pair, err := s.clients.Issue(pki.Leaf{Name: devservices.RoleApp})
	require.NoError(t, err)
	_, _, err = pair.Write(s.dir, "client")
	require.NoError(t, err)
}

func (s *secured) server(t *testing.T) pki.Pair {
	t.Helper()
	pair, err := devservices.IssueServer(s.authority)
	require.NoError(t, err)
	return pair
}

func newAuthority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority(name)
	require.NoError(t, err)
	return a
}

// startSecured starts all three at once.
func startSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{
		authority: newAuthority(t, "services"), clients: newAuthority(t, "clients"), dir: t.TempDir(),
		passwords: map[string]string{"kafka": "kafka-secret-1", "redis": "redis-secret-1", "postgres": "postgres-secret-1"},
	}
	s.write(t, "ca.crt", s.authority.PEM)
	s.writeClient(t)
	for service, password := range s.passwords {
		s.write(t, service, []byte(password+"\n"))
	}
	security := devservices.KafkaSecurity{
		Certificate: s.server(t), ClientCA: s.clients.PEM, SuperUsers: []string{secureUser, "plain", "short"},
		Users: []devservices.KafkaUser{
			s.kafkaUser(),
			{Name: "plain", Password: extraPassword, Mechanism: devservices.MechanismPlain},
			{Name: "short", Password: extraPassword, Mechanism: devservices.MechanismScramSHA256},
		},
	}
	certificate, errs := s.server(t), make([]error, 3)
	ctx := t.Context()
	var wg sync.WaitGroup
	wg.Go(func() { s.kafka, errs[0] = shared.services.StartSecureKafka(ctx, security) })
	wg.Go(func() {
		s.redis, errs[1] = shared.services.StartSecureRedis(ctx, devservices.RedisSecurity{
			Certificate: certificate, Users: []devservices.RedisUser{s.redisUser()},
		})
	})
	wg.Go(func() {
		s.postgres, errs[2] = shared.services.StartSecurePostgres(ctx, devservices.PostgresSecurity{
			Certificate: certificate, ClientCA: s.clients.PEM,
		})
	})
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		require.NoError(t, s.kafka.Close())
		require.NoError(t, s.redis.Close())
		require.NoError(t, s.postgres.Close())
	})
	return s
}

// bundle is one whose own clients are the administrators'.
func (s *secured) bundle(t *testing.T) *bundle {
	t.Helper()
	b := newBundle(t, setup{Kafka: s.kafka.Addr(), Redis: s.redis.Addr(), Postgres: s.postgres.Postgres})
	s.setPasswords(t)
	return b
}

// setPasswords is for roles that a bundle has made.
func (s *secured) setPasswords(t *testing.T) {
	t.Helper()
	for _, role := range []string{devservices.RoleApp, devservices.RoleOwner, devservices.RoleRead} {
		require.NoError(t, s.postgres.SetPassword(t.Context(), role, s.passwords["postgres"]))
	}
}

// env is how a filter gets in by TLS and its users.
func (s *secured) env(t *testing.T, b *bundle) []string {
	t.Helper()
	return append(append(s.kafkaEnv(), s.redisEnv()...), s.postgresEnv(t, b, devservices.RoleApp)...)
}

func (s *secured) kafkaEnv() []string {
	return []string{
		"DEDUP_KAFKA_BROKERS=" + s.kafka.SecureAddr(), "DEDUP_KAFKA_TLS_ENABLED=true", "DEDUP_KAFKA_TLS_CA_FILE=" + s.file("ca.crt"),
		"DEDUP_KAFKA_SASL_MECHANISM=SCRAM-SHA-512", "DEDUP_KAFKA_SASL_USERNAME=" + secureUser, "DEDUP_KAFKA_SASL_PASSWORD_FILE=" + s.file("kafka"),
	}
}

func (s *secured) redisEnv() []string {
	return []string{
		"DEDUP_REDIS_ADDRS=" + s.redis.SecureAddr(), "DEDUP_REDIS_TLS_ENABLED=true", "DEDUP_REDIS_TLS_CA_FILE=" + s.file("ca.crt"),
		"DEDUP_REDIS_USERNAME=" + secureUser, "DEDUP_REDIS_PASSWORD_FILE=" + s.file("redis"),
	}
}

func (s *secured) postgresEnv(t *testing.T, b *bundle, role string) []string {
	t.Helper()
	url, err := devservices.SecureURL(b.db.AppURL, role, "sslmode", "verify-full", "sslrootcert", s.file("ca.crt"),
		"sslcert", s.file("client.crt"), "sslkey", s.file("client.key"))
	require.NoError(t, err)
	return []string{"DEDUP_POSTGRES_URL=" + url, "DEDUP_POSTGRES_PASSWORD_FILE=" + s.file("postgres")}
}

func (s *secured) redisAdmin(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(s.redis.AdminOptions())
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// requireNoSecret looks for passwords in what a filter wrote.
func (s *secured) requireNoSecret(t *testing.T, f *filter) {
	t.Helper()
	log, err := os.ReadFile(f.log)
	require.NoError(t, err)
	for _, password := range s.passwords {
		stem, _, _ := strings.Cut(password, "-secret")
		require.NotContains(t, string(log), stem+"-secret")
	}
}

// TestConnectionsAge: connections to Kafka and PostgreSQL give way to new ones
// all the time, and nobody notices: no session is built anew, no transaction
// comes again.
func TestConnectionsAge(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	b := newBundle(t, setup{})
	f := b.start(t, 0, "DEDUP_KAFKA_CONNECTION_LIFETIME=1s", "DEDUP_POSTGRES_POOL_LIFETIME=1s", "DEDUP_PROCESSOR_BATCH_RECORDS=100")
	l := b.startLoad(t, rng, "a", 8)
	opened := func() float64 {
		n, err := f.metric(t.Context(), "kafka_connects_total")
		require.NoError(t, err)
		return n
	}
	began := opened()
	for opened() < began+60 {
		l.passMore(t, 100)
	}
	l.end(t)
	b.check(t)
	rebuilt, err := f.metric(t.Context(), "dedup_session_rebuilds_total")
	require.NoError(t, err)
	require.Zero(t, rebuilt)
	log, err := os.ReadFile(f.log)
	require.NoError(t, err)
	require.NotContains(t, string(log), "was not committed")
	f.term(t)
	b.checkStopped(t)
}

// TestSecretsRotated: under load every secret is replaced, on the servers and in
// the files, in the order of docs/operations.md. Connections age and are cut. The
// filter is never restarted, loses nothing and doubles nothing.
func TestSecretsRotated(t *testing.T) {
	t.Parallel()
	rng := seeded(t)
	s := startSecured(t)
	b := s.bundle(t)
	f := b.start(t, 0, append(s.env(t, b), patient, "DEDUP_REDIS_CIRCUIT_ERRORS=1", "DEDUP_REDIS_CIRCUIT_OPEN=200ms",
		"DEDUP_KAFKA_CONNECTION_LIFETIME=1s", "DEDUP_POSTGRES_POOL_LIFETIME=1s", "DEDUP_PROCESSOR_BATCH_RECORDS=100")...)
	facts := s.redisAdmin(t)
	l := b.startLoad(t, rng, "r", 8)
	l.passMore(t, 200)

	s.rotateAuthority(t)
	f.awaitReady(t)
	l.passMore(t, 300)
	s.rotatePasswords(t, f, l)
	s.cut(t)
	l.passMore(t, 300)

	require.NoError(t, facts.FlushAll(t.Context()).Err())
	l.passMore(t, 300)
	b.awaitFacts(t, facts, 1)
	f.awaitReady(t)
	l.end(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
	s.requireNoSecret(t, f)
}

// rotateAuthority replaces who signs the certificates of the services and of the
// filter: first both are trusted, then certificates change, then the old one is
// trusted no more.
func (s *secured) rotateAuthority(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	old, oldClients := s.authority, s.clients
	s.authority, s.clients = newAuthority(t, "services, next"), newAuthority(t, "clients, next")
	s.write(t, "ca.crt", old.PEM, s.authority.PEM)
	certificate := s.server(t)
	require.NoError(t, s.kafka.SetCertificate(ctx, certificate))
	require.NoError(t, s.redis.SetCertificate(ctx, certificate))
	require.NoError(t, s.postgres.SetCertificate(ctx, certificate, append(append([]byte{}, oldClients.PEM...), s.clients.PEM...)))
	s.writeClient(t)
	s.write(t, "ca.crt", s.authority.PEM)
}

// rotatePasswords replaces all three. Kafka knows one password of a user at a
// time: until the file has the new one new connections are refused, and the
// filter says so.
func (s *secured) rotatePasswords(t *testing.T, f *filter, l *load) {
	t.Helper()
	ctx := t.Context()
	for service := range s.passwords {
		s.passwords[service] = service + "-secret-2"
	}
	require.NoError(t, s.kafka.SetUser(ctx, s.kafkaUser()))
	f.awaitReason(t, "Kafka refuses the login of")
	// Half a file, as a careless tool leaves it for a moment.
	require.NoError(t, os.WriteFile(s.file("kafka"), nil, 0o600))
	f.awaitReason(t, "password file "+s.file("kafka")+": empty")
	s.write(t, "kafka", []byte(s.passwords["kafka"]))
	f.awaitReady(t)
	l.passMore(t, 300)

	require.NoError(t, s.redis.SetUser(ctx, s.redisUser()))
	require.NoError(t, s.redis.Disconnect(ctx, secureUser))
	l.passMore(t, 300)
	s.write(t, "redis", []byte(s.passwords["redis"]))

	require.NoError(t, s.postgres.SetPassword(ctx, devservices.RoleApp, s.passwords["postgres"]))
	require.NoError(t, s.postgres.Disconnect(ctx, devservices.RoleApp))
	f.awaitReason(t, "PostgreSQL refuses the login")
	s.write(t, "postgres", []byte(s.passwords["postgres"]))
	f.awaitReady(t)
}

// cut ends every connection that was opened with what is not valid any more;
// those to Kafka are a second old by then.
func (s *secured) cut(t *testing.T) {
	t.Helper()
	require.NoError(t, s.redis.Disconnect(t.Context(), secureUser))
	require.NoError(t, s.postgres.Disconnect(t.Context(), devservices.RoleApp))
}
