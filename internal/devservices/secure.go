package devservices

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"dedupledger/internal/devservices/pki"
)

// Server certificates are for the name and the address under which tests reach
// services; Issue one for less where a test wants a wrong name.
func loopbackHosts() []string { return []string{"localhost", loopback} }

// IssueServer is a certificate for a service on this machine.
func IssueServer(a *pki.Authority) (pki.Pair, error) {
	pair, err := a.Issue(pki.Leaf{Name: "server", Hosts: loopbackHosts()})
	if err != nil {
		return pair, fmt.Errorf("for a service on loopback: %w", err)
	}
	return pair, nil
}

// StartSecureKafka starts a Kafka broker with a SASL_SSL listener and an
// authorizer that allows nothing unless an ACL does.
func (s *Services) StartSecureKafka(ctx context.Context, o KafkaSecurity) (*SecureKafka, error) {
	k, err := s.StartKafka(ctx, KafkaOptions{Advertised: o.AdvertisedPlain, secure: &o})
	return &SecureKafka{Kafka: k}, err
}

// StartSecureRedis starts a Redis server that takes TLS from everybody and plain
// connections from its administrator.
func (s *Services) StartSecureRedis(ctx context.Context, o RedisSecurity) (*SecureRedis, error) {
	folder, err := s.folder("redis")
	if err != nil {
		return nil, err
	}
	r, err := startSecureRedis(ctx, folder, o)
	if r != nil {
		s.onClose(r.Close)
	}
	return r, unavailable("redis", err)
}

// StartSecurePostgres starts a PostgreSQL server that takes TLS and a password
// from everybody and plain connections from its administrator and the owner.
func (s *Services) StartSecurePostgres(ctx context.Context, o PostgresSecurity, settings ...string) (*SecurePostgres, error) {
	binaries, err := postgresBinaries()
	if err != nil {
		return nil, unavailable("postgres", err)
	}
	folder, err := s.folder("postgres")
	if err != nil {
		return nil, err
	}
	p, err := startSecurePostgres(ctx, folder, binaries, o, settings)
	if p != nil {
		s.onClose(p.Close)
	}
	return p, err
}

// tlsFiles are the files that a server reads its certificates from.
type tlsFiles struct{ cert, key, clientCA string }

// writeTLS puts certificates where a server of the account can read them. An
// authority for clients that is none leaves clientCA empty.
func writeTLS(folder string, user *account, pair pki.Pair, clientCA []byte) (tlsFiles, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return tlsFiles{}, fmt.Errorf("making a folder for certificates: %w", err)
	}
	var f tlsFiles
	var err error
	if f.cert, f.key, err = pair.Write(folder, "server"); err != nil {
		return f, fmt.Errorf("for a server: %w", err)
	}
	if clientCA != nil {
		f.clientCA = filepath.Join(folder, "clients.crt")
		if err := pki.WriteFile(f.clientCA, clientCA); err != nil {
			return f, fmt.Errorf("for a server: %w", err)
		}
	}
	if err := user.own(folder); err != nil {
		return f, fmt.Errorf("giving certificates to the server's user: %w", err)
	}
	return f, nil
}
