package devservices

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"dedupledger/internal/devservices/pki"
)

// issuers are an authority for servers and one for clients.
type issuers struct {
	servers, clients *pki.Authority
	server, client   pki.Pair
	folder           string
	caFile           string
	certFile         string
	keyFile          string
}

func newIssuers(t *testing.T, client string) *issuers {
	t.Helper()
	i := &issuers{folder: t.TempDir()}
	var err error
	i.servers, err = pki.NewAuthority("servers")
	require.NoError(t, err)
	i.clients, err = pki.NewAuthority("clients")
	require.NoError(t, err)
	i.server, err = IssueServer(i.servers)
	require.NoError(t, err)
	i.client, err = i.clients.Issue(pki.Leaf{Name: client})
	require.NoError(t, err)
	i.caFile = filepath.Join(i.folder, "ca.crt")
	require.NoError(t, pki.WriteFile(i.caFile, i.servers.PEM))
	i.certFile, i.keyFile, err = i.client.Write(i.folder, "client")
	require.NoError(t, err)
	return i
}

func (i *issuers) tls(t *testing.T, certificate bool) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	require.True(t, c.RootCAs.AppendCertsFromPEM(i.servers.PEM))
	if certificate {
		pair, err := tls.X509KeyPair(i.client.Certificate, i.client.Key)
		require.NoError(t, err)
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

func TestSecureKafka(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	i := newIssuers(t, "client")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	s := &Services{temp: folder(t), opts: Options{Root: root}}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	k, err := s.StartSecureKafka(ctx, KafkaSecurity{
		Certificate: i.server, ClientCA: i.clients.PEM, RequireClientCertificate: true,
		Users: []KafkaUser{
			{"plain", "secret-plain", MechanismPlain},
			{"short", "secret-256", MechanismScramSHA256},
			{"long", "secret-512", MechanismScramSHA512},
		},
		SuperUsers: []string{"short"},
	})
	require.NoError(t, err)

	list := func(mechanism sasl.Mechanism, certificate bool) error {
		c, err := kgo.NewClient(kgo.SeedBrokers(k.SecureAddr()), kgo.DialTLSConfig(i.tls(t, certificate)), kgo.SASL(mechanism), kgo.RequestRetries(0))
		require.NoError(t, err)
		defer c.Close()
		answer, err := kadm.NewClient(c).CreateTopic(ctx, 1, 1, nil, "t")
		return errors.Join(err, answer.Err)
	}
	short := func(password string) sasl.Mechanism {
		return scram.Auth{User: "short", Pass: password}.AsSha256Mechanism()
	}
	require.NoError(t, list(short("secret-256"), true))
	require.Error(t, list(short("secret-256"), false), "no client certificate")
	require.ErrorIs(t, list(short("wrong"), true), kerr.SaslAuthenticationFailed)
	for _, m := range []sasl.Mechanism{
		plain.Auth{User: "plain", Pass: "secret-plain"}.AsMechanism(), scram.Auth{User: "long", Pass: "secret-512"}.AsSha512Mechanism(),
	} {
		require.ErrorIs(t, list(m, true), kerr.TopicAuthorizationFailed, "known, and nothing is allowed without an ACL")
	}

	require.NoError(t, k.SetUser(ctx, KafkaUser{"short", "another", MechanismScramSHA256}))
	until(t, func() bool { return errors.Is(list(short("another"), true), kerr.TopicAlreadyExists) })
	require.ErrorIs(t, list(short("secret-256"), true), kerr.SaslAuthenticationFailed)

	renewed, err := IssueServer(i.clients)
	require.NoError(t, err)
	require.NoError(t, k.SetCertificate(ctx, renewed))
	until(t, func() bool { return errors.As(list(short("another"), true), new(x509.UnknownAuthorityError)) })
}

func TestSecureRedis(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	i := newIssuers(t, "client")
	s := &Services{temp: folder(t)}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r, err := s.StartSecureRedis(ctx, RedisSecurity{
		Certificate: i.server, ClientCA: i.clients.PEM,
		Users: []RedisUser{{"filter", "secret", "~dedup:* +get +set +client"}},
	})
	require.NoError(t, err)

	set := func(user, password, key string, certificate bool) error {
		c := redis.NewClient(&redis.Options{
			Addr: r.SecureAddr(), Username: user, Password: password, TLSConfig: i.tls(t, certificate),
			MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, Protocol: 2,
		})
		defer c.Close()
		return c.Set(ctx, key, "1", 0).Err()
	}
	require.NoError(t, set("filter", "secret", "dedup:a", true))
	require.ErrorContains(t, set("filter", "secret", "other", true), "NOPERM")
	require.ErrorContains(t, set("filter", "wrong", "dedup:a", true), "WRONGPASS")
	require.ErrorContains(t, set("", "", "dedup:a", true), "NOAUTH")
	require.Error(t, set("filter", "secret", "dedup:a", false), "no client certificate")

	require.NoError(t, r.SetUser(ctx, RedisUser{"filter", "another", "~* +set"}))
	require.NoError(t, set("filter", "another", "other", true))
	require.NoError(t, r.Disconnect(ctx, "filter"))

	renewed, err := IssueServer(i.clients)
	require.NoError(t, err)
	require.NoError(t, r.SetCertificate(ctx, renewed))
	require.ErrorAs(t, set("filter", "another", "other", true), new(x509.UnknownAuthorityError))
}

func TestSecurePostgres(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	i := newIssuers(t, RoleApp)
	s := &Services{temp: folder(t)}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	p, err := s.StartSecurePostgres(ctx, PostgresSecurity{Certificate: i.server, ClientCA: i.clients.PEM}, "max_connections=20")
	require.NoError(t, err)
	d, err := p.CreateDatabase(ctx, "d")
	require.NoError(t, err)
	require.NoError(t, p.SetPassword(ctx, RoleApp, "secret"))
	require.NoError(t, p.SetPassword(ctx, RoleOwner, "secret"))
	require.Equal(t, RoleOwner, ask(t, d.OwnerURL, "select current_user::text"))

	connect := func(role, password string, parameters ...string) error {
		text, err := SecureURL(d.AppURL, role, append([]string{"sslmode", "verify-full", "sslrootcert", i.caFile}, parameters...)...)
		require.NoError(t, err)
		u, err := url.Parse(text)
		require.NoError(t, err)
		u.User = url.UserPassword(role, password)
		c, err := pgx.Connect(ctx, u.String())
		if err != nil {
			return err
		}
		return errors.Join(c.Ping(ctx), c.Close(context.WithoutCancel(ctx)))
	}
	cert := []string{"sslcert", i.certFile, "sslkey", i.keyFile}
	require.NoError(t, connect(RoleApp, "secret", cert...))
	refused := func(code string, err error) {
		t.Helper()
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg)
		require.Equal(t, code, pg.Code, err)
	}
	refused("28P01", connect(RoleApp, "wrong", cert...))
	refused("28000", connect(RoleApp, "secret"))
	// PostgreSQL blames the password where the certificate is another role's.
	refused("28P01", connect(RoleOwner, "secret", cert...))
	refused("28000", connect(RoleApp, "secret", "sslmode", "disable"))

	require.NoError(t, p.SetPassword(ctx, RoleApp, "another"))
	require.NoError(t, connect(RoleApp, "another", cert...))
	require.NoError(t, p.Disconnect(ctx, RoleApp))

	renewed, err := IssueServer(i.clients)
	require.NoError(t, err)
	require.NoError(t, p.SetCertificate(ctx, renewed, nil))
	until(t, func() bool { return errors.As(connect(RoleApp, "another", cert...), new(x509.UnknownAuthorityError)) })
}

// until asks until it is true: Kafka and PostgreSQL load what is new after
// they have answered.
func until(t *testing.T, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	require.NoError(t, poll(ctx, func() (bool, error) { return is(), nil }))
}
