package devservices

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"dedupledger/internal/devservices/pki"
)

// PostgresSecurity says how a secure PostgreSQL is set up.
type PostgresSecurity struct {
	Certificate pki.Pair
	// ClientCA (PEM) signs client certificates; set: who has none is refused,
	// and so is one whose common name is not the role's.
	ClientCA []byte
}

// SecurePostgres is a PostgreSQL server that demands TLS and a password
// (SCRAM-SHA-256) of every role. Without TLS the superuser and dedup_owner are
// trusted, for what a test does beside the filter; URL is such a one.
type SecurePostgres struct {
	*Postgres
	files tlsFiles
}

func startSecurePostgres(ctx context.Context, folder, binaries string, o PostgresSecurity, settings []string) (*SecurePostgres, error) {
	user, err := postgresAccount()
	if err != nil {
		return nil, err
	}
	p := &SecurePostgres{}
	tls := filepath.Join(folder, "tls")
	if p.files, err = writeTLS(tls, user, o.Certificate, o.ClientCA); err != nil {
		return nil, err
	}
	rules := filepath.Join(tls, "pg_hba.conf")
	// The server opens it as its own user, before the clients it is about.
	if err := os.WriteFile(rules, []byte(hostRules(o.ClientCA != nil)), 0o644); err != nil {
		return nil, fmt.Errorf("writing PostgreSQL's host rules: %w", err)
	}
	if err := user.own(tls); err != nil {
		return nil, fmt.Errorf("giving host rules to PostgreSQL's user: %w", err)
	}
	ours := []string{
		"ssl=on", "ssl_cert_file=" + p.files.cert, "ssl_key_file=" + p.files.key,
		"hba_file=" + rules, "password_encryption=scram-sha-256",
	}
	if p.files.clientCA != "" {
		ours = append(ours, "ssl_ca_file="+p.files.clientCA)
	}
	p.Postgres, err = startPostgres(ctx, folder, binaries, append(ours, settings...))
	if p.Postgres == nil {
		return nil, err
	}
	return p, err
}

func hostRules(clientCertificate bool) string {
	password := "hostssl all all " + loopback + "/32 scram-sha-256"
	if clientCertificate {
		password += " clientcert=verify-full"
	}
	return "hostnossl all postgres " + loopback + "/32 trust\n" +
		"hostnossl all " + RoleOwner + " " + loopback + "/32 trust\n" + password + "\n"
}

// SecureURL is a URL of ours, of any role, with other parameters for TLS
// ("sslmode", "verify-full", "sslrootcert", FILE, …) and without a password.
func SecureURL(plain, role string, parameters ...string) (string, error) {
	u, err := url.Parse(plain)
	if err != nil {
		return "", fmt.Errorf("reading the URL of PostgreSQL: %w", err)
	}
	u.User = url.User(role)
	q := u.Query()
	for i := 0; i+1 < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// SetPassword gives a role, which CreateDatabase has made, another password.
// Connections that are open stay so.
func (p *SecurePostgres) SetPassword(ctx context.Context, role, password string) error {
	literal := "'" + strings.ReplaceAll(password, "'", "''") + "'"
	return p.asAdmin(ctx, "setting the password of "+role, "alter role "+pgx.Identifier{role}.Sanitize()+" password "+literal)
}

// Disconnect cuts off the connections of a role.
func (p *SecurePostgres) Disconnect(ctx context.Context, role string) error {
	return p.asAdmin(ctx, "cutting off "+role, "select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", role)
}

// SetCertificate gives the server another certificate, and another authority
// for its clients unless that is nil; connections that are open keep the old.
func (p *SecurePostgres) SetCertificate(ctx context.Context, pair pki.Pair, clientCA []byte) error {
	if _, err := writeTLS(filepath.Dir(p.files.cert), p.user, pair, clientCA); err != nil {
		return err
	}
	return p.asAdmin(ctx, "loading another certificate", "select pg_reload_conf()")
}

func (p *SecurePostgres) asAdmin(ctx context.Context, what, sql string, args ...any) error {
	c, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if _, err := c.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("PostgreSQL: %s: %w", what, err)
	}
	return nil
}
