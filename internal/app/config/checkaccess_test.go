package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/app/config"
	"dedupledger/internal/devservices/pki"
)

// issued are the files of an authority and of a certificate it signed.
type issued struct{ ca, cert, key, password, empty string }

func issue(t *testing.T) issued {
	t.Helper()
	dir := t.TempDir()
	i := issued{ca: filepath.Join(dir, "ca.crt"), password: filepath.Join(dir, "password"), empty: filepath.Join(dir, "empty")}
	a, err := pki.NewAuthority("ours")
	require.NoError(t, err)
	require.NoError(t, pki.WriteFile(i.ca, a.PEM))
	pair, err := a.Issue(pki.Leaf{Name: "dedup"})
	require.NoError(t, err)
	i.cert, i.key, err = pair.Write(dir, "dedup")
	require.NoError(t, err)
	require.NoError(t, pki.WriteFile(i.password, []byte("hunter2\n")))
	require.NoError(t, pki.WriteFile(i.empty, nil))
	return i
}

func TestAccess(t *testing.T) {
	t.Parallel()
	i := issue(t)
	c, _, err := config.Load("", required(
		"DEDUP_KAFKA_TLS_ENABLED=true", "DEDUP_KAFKA_TLS_CA_FILE="+i.ca, "DEDUP_KAFKA_TLS_CERT_FILE="+i.cert, "DEDUP_KAFKA_TLS_KEY_FILE="+i.key,
		"DEDUP_KAFKA_TLS_SERVER_NAME=kafka.example", "DEDUP_KAFKA_SASL_MECHANISM=SCRAM-SHA-512", "DEDUP_KAFKA_SASL_USERNAME=dedup",
		"DEDUP_KAFKA_SASL_PASSWORD_FILE="+i.password,
		"DEDUP_REDIS_TLS_ENABLED=true", "DEDUP_REDIS_TLS_CA_FILE="+i.ca,
		"DEDUP_POSTGRES_URL=postgres://u@h/d?sslmode=verify-full&sslrootcert="+i.ca+"&sslcert="+i.cert+"&sslkey="+i.key,
	))
	require.NoError(t, err)
	require.Equal(t, i.ca, c.Kafka.TLS.CAFile)
	require.Equal(t, "kafka.example", c.Kafka.TLS.ServerName)
	require.Equal(t, config.ScramSHA512, c.Kafka.SASL.Mechanism)
	password, err := c.Kafka.SASL.Password.Read()
	require.NoError(t, err)
	require.Equal(t, "hunter2", password.Reveal())
	require.True(t, c.Redis.TLS.Enabled)
}

// TestAccessFaults: each is one line with key, value and what is allowed, and no
// line holds a secret.
func TestAccessFaults(t *testing.T) {
	t.Parallel()
	i := issue(t)
	other := issue(t)
	half := filepath.Join(t.TempDir(), "half.crt")
	text, err := os.ReadFile(i.ca)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(half, text[:len(text)/2], 0o600))
	on, onRedis := "DEDUP_KAFKA_TLS_ENABLED=true", "DEDUP_REDIS_TLS_ENABLED=true"
	scram, user, password := "DEDUP_KAFKA_SASL_MECHANISM=SCRAM-SHA-256", "DEDUP_KAFKA_SASL_USERNAME=dedup", "DEDUP_KAFKA_SASL_PASSWORD=hunter2"
	postgres := "DEDUP_POSTGRES_URL=postgres://u:hunter2@h/d?"
	for want, env := range map[string][]string{
		`kafka.tls.cert_file: "` + i.cert + `": needs its key in kafka.tls.key_file`:                           {on, "DEDUP_KAFKA_TLS_CERT_FILE=" + i.cert},
		`kafka.tls.key_file: "` + i.key + `": needs its certificate in kafka.tls.cert_file`:                    {on, "DEDUP_KAFKA_TLS_KEY_FILE=" + i.key},
		`kafka.tls.ca_file: "/none": CA file /none: no such file or directory`:                                 {on, "DEDUP_KAFKA_TLS_CA_FILE=/none"},
		`kafka.tls.ca_file: "` + half + `": CA file ` + half + `: holds no certificate`:                        {on, "DEDUP_KAFKA_TLS_CA_FILE=" + half},
		`kafka.tls.cert_file: "` + i.cert + `": certificate file ` + i.cert + `: with key file`:                {on, "DEDUP_KAFKA_TLS_CERT_FILE=" + i.cert, "DEDUP_KAFKA_TLS_KEY_FILE=" + other.key},
		`kafka.tls.cert_file: "` + i.cert + `": key file ` + i.ca + `: holds no private key`:                   {on, "DEDUP_KAFKA_TLS_CERT_FILE=" + i.cert, "DEDUP_KAFKA_TLS_KEY_FILE=" + i.ca},
		`kafka.tls.server_name: "k": set beside kafka.tls.enabled: false; set that to true, or leave this out`: {"DEDUP_KAFKA_TLS_SERVER_NAME=k"},
		`redis.tls.ca_file: "` + i.ca + `": set beside redis.tls.enabled: false`:                               {"DEDUP_REDIS_TLS_CA_FILE=" + i.ca},
		`redis.tls.cert_file: "` + i.cert + `": needs its key in redis.tls.key_file`:                           {onRedis, "DEDUP_REDIS_TLS_CERT_FILE=" + i.cert},
		`kafka.tls.enabled: "yes": write true or false`:                                                        {"DEDUP_KAFKA_TLS_ENABLED=yes", "DEDUP_KAFKA_TLS_CA_FILE=" + i.ca},
		`kafka.sasl.mechanism: "GSSAPI": write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; "" for no login`:         {"DEDUP_KAFKA_SASL_MECHANISM=GSSAPI"},
		`kafka.sasl.mechanism: "SCRAM-SHA-256": needs kafka.sasl.username`:                                     {scram, password},
		`kafka.sasl.mechanism: "SCRAM-SHA-256": needs kafka.sasl.password_file or kafka.sasl.password`:         {scram, user},
		`kafka.sasl.username: "dedup": set without kafka.sasl.mechanism`:                                       {user},
		`kafka.sasl.password: set without kafka.sasl.mechanism`:                                                {password},
		`kafka.sasl.password_file: set beside kafka.sasl.password; write one of them`:                          {scram, user, password, "DEDUP_KAFKA_SASL_PASSWORD_FILE=" + i.password},
		`kafka.sasl.password_file: password file ` + i.empty + `: empty`:                                       {scram, user, "DEDUP_KAFKA_SASL_PASSWORD_FILE=" + i.empty},
		`postgres.url: sslmode=full: write disable, allow, prefer, require, verify-ca or verify-full`:          {postgres + "sslmode=full"},
		`postgres.url: sslcert=` + i.cert + ` needs its key in sslkey`:                                         {postgres + "sslcert=" + i.cert},
		`postgres.url: sslkey=` + i.key + ` needs its certificate in sslcert`:                                  {postgres + "sslkey=" + i.key},
		`postgres.url: sslrootcert: CA file /none: no such file or directory`:                                  {postgres + "sslmode=verify-full&sslrootcert=/none"},
		`postgres.url: sslcert and sslkey: certificate file ` + i.cert + `: with key file`:                     {postgres + "sslcert=" + i.cert + "&sslkey=" + other.key},
		`postgres.url: sslrootcert, sslcert or sslkey is set beside sslmode=disable`:                           {postgres + "sslmode=disable&sslrootcert=" + i.ca},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, _, err := config.Load("", required(env...))
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "\n", "one fault, one line")
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// TestFilesOfAnotherStore: a command that opens PostgreSQL alone needs no file of
// Kafka's or Redis's.
func TestFilesOfAnotherStore(t *testing.T) {
	t.Parallel()
	env := required("DEDUP_KAFKA_TLS_ENABLED=true", "DEDUP_KAFKA_TLS_CA_FILE=/none", "DEDUP_REDIS_PASSWORD_FILE=/none")
	_, _, err := config.Load("", env, "postgres.url")
	require.NoError(t, err)
	_, _, err = config.Load("", env)
	require.ErrorContains(t, err, "kafka.tls.ca_file")
	require.ErrorContains(t, err, "redis.password_file")
}
