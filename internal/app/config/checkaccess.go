package config

import (
	"errors"
	"net/url"
	"slices"

	"dedupledger/internal/access"
)

// SASL mechanisms, as Kafka names them.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

func saslMechanism(path string, into *string) key {
	return text(path, into, "", func(s string) error {
		if s != "" && !slices.Contains([]string{Plain, ScramSHA256, ScramSHA512}, s) {
			return errors.New(`write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; "" for no login`)
		}
		return nil
	})
}

// checkAccess reads every file of a certificate: a mistake is told at once, with
// its key, and not by a connection that fails.
func (l *loader) checkAccess() {
	l.checkTLS("kafka.brokers", "kafka.tls", l.config.Kafka.TLS)
	l.checkTLS("redis.addrs", "redis.tls", l.config.Redis.TLS)
	l.checkSASL()
	l.checkPostgresTLS()
}

func (l *loader) checkTLS(store, path string, t access.TLS) {
	for _, set := range []struct{ key, value string }{
		{path + ".ca_file", t.CAFile},
		{path + ".cert_file", t.CertFile},
		{path + ".key_file", t.KeyFile},
		{path + ".server_name", t.ServerName},
	} {
		if set.value != "" && !t.Enabled && l.ok(path+".enabled") {
			l.report(set.key, set.key, set.value, "set beside "+path+".enabled: false; set that to true, or leave this out")
		}
	}
	if !t.Enabled {
		return
	}
	if t.CertFile != "" && t.KeyFile == "" {
		l.report(path+".cert_file", path+".cert_file", t.CertFile, "needs its key in "+path+".key_file")
	}
	if t.KeyFile != "" && t.CertFile == "" {
		l.report(path+".key_file", path+".key_file", t.KeyFile, "needs its certificate in "+path+".cert_file")
	}
	if !l.opens(store) {
		return
	}
	if err := t.CheckCA(); err != nil {
		l.report(path+".ca_file", path+".ca_file", t.CAFile, err.Error())
	}
	if err := t.CheckPair(); err != nil {
		l.report(path+".cert_file", path+".cert_file", t.CertFile, err.Error())
	}
}

func (l *loader) checkSASL() {
	const mechanism, username = "kafka.sasl.mechanism", "kafka.sasl.username"
	s := l.config.Kafka.SASL
	hasPassword := !s.Password.Inline.Empty() || s.Password.File != ""
	if !l.ok(mechanism) {
		return
	}
	if s.Mechanism == "" {
		if s.Username != "" {
			l.report(username, username, s.Username, "set without kafka.sasl.mechanism; write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 there")
		}
		if hasPassword {
			l.report("kafka.sasl.password", "kafka.sasl.password_file", "", "set without kafka.sasl.mechanism; write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 there")
		}
		return
	}
	if s.Username == "" {
		l.report(mechanism, mechanism, s.Mechanism, "needs "+username)
	}
	if !hasPassword && l.ok("kafka.sasl.password_file", "kafka.sasl.password") {
		l.report(mechanism, mechanism, s.Mechanism, "needs kafka.sasl.password_file or kafka.sasl.password")
	}
}

// checkPostgresTLS looks at the parameters of the URL that the driver would find
// fault with without saying which. None of them is a secret.
func (l *loader) checkPostgresTLS() {
	const path = "postgres.url"
	u, err := url.Parse(l.config.Postgres.URL.Reveal())
	if err != nil || !l.ok(path) {
		return
	}
	wrong := func(why string) { l.report(path, path, "", why) }
	q := u.Query()
	if mode := q.Get("sslmode"); mode != "" && !slices.Contains([]string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}, mode) {
		wrong("sslmode=" + mode + ": write disable, allow, prefer, require, verify-ca or verify-full")
		return
	}
	t, err := access.PostgresTLS(l.config.Postgres.URL.Reveal())
	if err != nil {
		return
	}
	switch {
	case !t.Enabled && (t.CAFile != "" || t.CertFile != "" || t.KeyFile != ""):
		wrong("sslrootcert, sslcert or sslkey is set beside sslmode=disable: write sslmode=verify-full, or leave them out")
		return
	case t.CertFile != "" && t.KeyFile == "":
		wrong("sslcert=" + t.CertFile + " needs its key in sslkey")
		return
	case t.KeyFile != "" && t.CertFile == "":
		wrong("sslkey=" + t.KeyFile + " needs its certificate in sslcert")
		return
	}
	if !t.Enabled || !l.opens(path) {
		return
	}
	if err := t.CheckCA(); err != nil {
		wrong("sslrootcert: " + err.Error())
	}
	if err := t.CheckPair(); err != nil && q.Get("sslpassword") == "" {
		wrong("sslcert and sslkey: " + err.Error())
	}
}
