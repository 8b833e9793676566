package main

import (
	"context"
	"fmt"
	"path/filepath"

	"dedupledger/internal/devservices"
	"dedupledger/internal/devservices/pki"
)

// secure are the services of phase tls: TLS and a login to all three, SCRAM to
// Kafka, an ACL user of Redis, verify-full with a client certificate to
// PostgreSQL. Kafka is the one of the other phases, too, by its port without
// TLS, so that both read the same topic of the same broker.
type secure struct {
	kafka    *devservices.SecureKafka
	redis    *devservices.SecureRedis
	postgres *devservices.SecurePostgres
	dir      string
}

const (
	secureUser     = "dedup"
	securePassword = "bench-secret"
)

func (s *stage) startSecure(ctx context.Context) error {
	say("starting services with TLS")
	servers, err := pki.NewAuthority("servers")
	if err != nil {
		return err //nolint:wrapcheck // a sentence already
	}
	clients, err := pki.NewAuthority("clients")
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	server, err := devservices.IssueServer(servers)
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	client, err := clients.Issue(pki.Leaf{Name: devservices.RoleApp})
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	t := &secure{dir: s.dir}
	if _, _, err := client.Write(s.dir, "client"); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	for name, content := range map[string][]byte{"ca.crt": servers.PEM, "password": []byte(securePassword)} {
		if err := pki.WriteFile(t.file(name), content); err != nil {
			return err //nolint:wrapcheck // likewise
		}
	}
	if t.kafka, err = s.services.StartSecureKafka(ctx, devservices.KafkaSecurity{
		Certificate: server, SuperUsers: []string{secureUser},
		Users: []devservices.KafkaUser{{Name: secureUser, Password: securePassword, Mechanism: devservices.MechanismScramSHA512}},
	}); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	if t.redis, err = s.services.StartSecureRedis(ctx, devservices.RedisSecurity{
		Certificate: server,
		Users:       []devservices.RedisUser{{Name: secureUser, Password: securePassword, Rules: "~bench:* +evalsha +eval +get +set +info"}},
	}); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	if t.postgres, err = s.services.StartSecurePostgres(ctx, devservices.PostgresSecurity{Certificate: server, ClientCA: clients.PEM}, postgresMemory()...); err != nil {
		return err //nolint:wrapcheck // likewise
	}
	s.secure, s.services.KafkaBrokers = t, []string{t.kafka.Addr()}
	return nil
}

func (t *secure) file(name string) string { return filepath.Join(t.dir, name) }

// environ is what the filter's configuration needs beside names.
func (t *secure) environ(ctx context.Context, db *devservices.Database) ([]string, error) {
	if err := t.postgres.SetPassword(ctx, devservices.RoleApp, securePassword); err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	url, err := devservices.SecureURL(db.AppURL, devservices.RoleApp, "sslmode", "verify-full", "sslrootcert", t.file("ca.crt"),
		"sslcert", t.file("client.crt"), "sslkey", t.file("client.key"))
	if err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	return []string{
		"DEDUP_KAFKA_BROKERS=" + t.kafka.SecureAddr(), "DEDUP_KAFKA_TLS_ENABLED=true", "DEDUP_KAFKA_TLS_CA_FILE=" + t.file("ca.crt"),
		"DEDUP_KAFKA_SASL_MECHANISM=SCRAM-SHA-512", "DEDUP_KAFKA_SASL_USERNAME=" + secureUser, "DEDUP_KAFKA_SASL_PASSWORD_FILE=" + t.file("password"),
		"DEDUP_REDIS_ADDRS=" + t.redis.SecureAddr(), "DEDUP_REDIS_TLS_ENABLED=true", "DEDUP_REDIS_TLS_CA_FILE=" + t.file("ca.crt"),
		"DEDUP_REDIS_USERNAME=" + secureUser, "DEDUP_REDIS_PASSWORD_FILE=" + t.file("password"),
		"DEDUP_POSTGRES_URL=" + url, "DEDUP_POSTGRES_PASSWORD_FILE=" + t.file("password"),
	}, nil
}

// overTLS is the filter with TLS to all three.
func (s *stage) overTLS(ctx context.Context, n int) (figures, error) {
	set, err := s.prepare(ctx, fmt.Sprintf("tls-%d", n), s.secure.postgres.CreateDatabase)
	if err != nil {
		return figures{}, err
	}
	defer s.dropTopics(context.WithoutCancel(ctx), set.outputs...)
	defer s.drop(ctx, set.db)
	env, err := s.secure.environ(ctx, set.db)
	if err != nil {
		return figures{}, err
	}
	f, err := s.drainWith(ctx, set.group, s.binary, []string{"run", "-c", set.config}, env, set.log)
	if err != nil {
		return figures{}, err
	}
	return f, s.checkAccounts(ctx, set.db, s.o.messages)
}
