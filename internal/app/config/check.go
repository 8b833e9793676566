package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"dedupledger/internal/access"
	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
	"dedupledger/topics"
)

// check compares settings with each other. A setting that is wrong by itself
// is left out: to hold its default against another would report what nobody
// wrote.
func (l *loader) check() {
	l.checkTimeouts()
	l.checkListeners()
	l.checkConnections()
	l.checkPasswords()
	l.checkAccess()
	l.checkTopics()
	l.checkCopies()
	l.checkRules()
}

// ok reports whether nothing is wrong with these settings so far.
func (l *loader) ok(paths ...string) bool {
	return !slices.ContainsFunc(l.problems, func(p setting.Problem) bool { return slices.Contains(paths, p.Path) })
}

// report blames the first of two settings, or the second if only that one was
// written.
func (l *loader) report(path, other, value, why string) {
	at, written := l.places[path]
	if !written {
		at = l.places[other]
	}
	if value != "" {
		value = strconv.Quote(value)
	}
	l.problems = append(l.problems, setting.Problem{At: at, Path: path, Value: value, Why: why})
}

// below demands that one duration is shorter than another.
func (l *loader) below(path string, d time.Duration, other string, limit time.Duration, because string) {
	if d >= limit && l.ok(path, other) {
		l.report(path, other, setting.FormatDuration(d),
			fmt.Sprintf("must be below %s (%s): %s", other, setting.FormatDuration(limit), because))
	}
}

func (l *loader) checkTimeouts() {
	k, p := &l.config.Kafka, &l.config.Postgres
	l.below("kafka.rebalance_timeout", k.RebalanceTimeout, "kafka.transaction_timeout", k.TransactionTimeout,
		"or a working process is fenced in a rebalance")
	l.below("postgres.lock_timeout", p.LockTimeout, "postgres.statement_timeout", p.StatementTimeout,
		"or it never ends a wait")
}

// checkListeners: two listeners cannot share a port. Port 0 is a free one each.
func (l *loader) checkListeners() {
	h := &l.config.HTTP
	host, port, err := net.SplitHostPort(h.Listen)
	opsHost, opsPort, opsErr := net.SplitHostPort(h.OpsListen)
	if err != nil || opsErr != nil || port != opsPort || port == "0" || !l.ok("http.listen", "http.ops_listen") {
		return
	}
	if host == opsHost || anyHost(host) || anyHost(opsHost) {
		l.report("http.ops_listen", "http.listen", h.OpsListen,
			fmt.Sprintf(`the port of http.listen (%s); write another one, "" to serve all at http.listen, or http.listen: ""`, h.Listen))
	}
}

func anyHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }

// checkConnections: each session holds one connection, the maintenance of
// months and the look at held partitions need two more.
func (l *loader) checkConnections() {
	sessions, most := l.config.Processor.Sessions, l.config.Postgres.Pool.Max
	if most < sessions+2 && l.ok("postgres.pool.max", "processor.sessions") {
		l.report("postgres.pool.max", "processor.sessions", strconv.Itoa(most),
			fmt.Sprintf("must be at least processor.sessions + 2 (%d)", sessions+2))
	}
}

func (l *loader) checkPasswords() {
	c := l.config
	if !c.Kafka.SASL.Password.Inline.Empty() && c.Kafka.SASL.Password.File != "" {
		l.report("kafka.sasl.password_file", "kafka.sasl.password", "", "set beside kafka.sasl.password; write one of them")
	}
	if !c.Redis.Password.Inline.Empty() && c.Redis.Password.File != "" {
		l.report("redis.password_file", "redis.password", "", "set beside redis.password; write one of them")
	}
	if u, err := url.Parse(c.Postgres.URL.Reveal()); err == nil && c.Postgres.Password.File != "" {
		if _, inURL := u.User.Password(); inURL {
			l.report("postgres.password_file", "postgres.url", "", "set beside a password in postgres.url; write one of them")
		}
	}
	l.checkPasswordFile("kafka.brokers", "kafka.sasl.password_file", c.Kafka.SASL.Password)
	l.checkPasswordFile("redis.addrs", "redis.password_file", c.Redis.Password)
	l.checkPasswordFile("postgres.url", "postgres.password_file", c.Postgres.Password)
}

// opens reports whether the command opens the store that the key names: files of
// another one need not be there, as in a job that migrates.
func (l *loader) opens(store string) bool { return slices.Contains(l.required, store) }

func (l *loader) checkPasswordFile(store, path string, p access.Password) {
	if p.File == "" || !l.opens(store) {
		return
	}
	if _, err := p.Read(); err != nil {
		l.report(path, path, "", err.Error())
	}
}

// checkCopies: which repeat of its row a redelivered record is, its sighting
// tells; later ones are only counted.
func (l *loader) checkCopies() {
	copies, kept := l.config.Duplicates.PayloadCopies, l.config.Sightings.KeepPerKey
	if copies > kept && l.ok("duplicates.payload_copies", "sightings.keep_per_key") {
		l.report("duplicates.payload_copies", "sightings.keep_per_key", strconv.Itoa(copies),
			fmt.Sprintf("must be at most sightings.keep_per_key (%d), by which repeats are told apart", kept))
	}
}

// checkTopics asks the package that will use the names.
func (l *loader) checkTopics() {
	_, err := l.config.Router()
	_, inputErr := l.config.Input()
	before := loader{problems: l.problems}
	for _, fault := range append(joined(err), joined(inputErr)...) {
		name := &topics.NameError{Field: "topics.raw", Allowed: fault.Error()}
		errors.As(fault, &name)
		other := name.Field
		if name.Field == "topics.clean" {
			other = "topics.raw" // the written one, where topics.clean has its default
		}
		if before.ok(name.Field) {
			l.report(name.Field, other, name.Value, name.Allowed)
		}
	}
}

// joined takes an errors.Join apart.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

func (l *loader) checkRules() {
	set, err := l.config.Rules()
	if faults, ok := errors.AsType[setting.Problems](err); ok {
		l.problems = append(l.problems, faults...)
	}
	if err == nil {
		_, longest := set.Windows()
		l.checkMonths(longest)
	}
}

// checkMonths: a month is dropped when `keep` whole months lie between it and
// the current one. Its last row must have left its window by then.
func (l *loader) checkMonths(longest rules.Setting[time.Duration]) {
	kept := l.config.Months.Shortest()
	if longest.Value <= kept || !l.ok("months.keep") {
		return
	}
	at := l.places["months.keep"]
	if at == (setting.Place{}) {
		at = longest.At
	}
	l.problems = append(l.problems, setting.Problem{
		At: at, Path: "months.keep", Value: strconv.Quote(strconv.Itoa(l.config.Months.Keep)),
		Why: fmt.Sprintf("keeps %s online, but the longest window is %s (%s)",
			setting.FormatDuration(kept), setting.FormatDuration(longest.Value), longest.At),
	})
}

// Shortest is the least time that months.keep months in a row take: how long a
// row is there at least.
func (m Months) Shortest() time.Duration {
	shortest := time.Duration(0)
	for start := range 12 {
		from := time.Date(2001, time.Month(start+1), 1, 0, 0, 0, 0, time.UTC)
		if d := from.AddDate(0, m.Keep, 0).Sub(from); start == 0 || d < shortest {
			shortest = d
		}
	}
	return shortest
}
