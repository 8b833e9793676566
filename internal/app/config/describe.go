package config

import (
	"net/url"
	"slices"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
	"dedupledger/topics"
)

// Key is what there is to know of one key of the configuration.
type Key struct {
	Path     string // kafka.group
	Env      string // DEDUP_KAFKA_GROUP
	Default  setting.Written
	Meaning  string // one or two sentences, Markdown as docs/configuration.md has it
	Required bool   // it has no default
	Secret   bool   // its value must not be shown
	Later    bool   // its feature comes with a later release: only the default is taken
}

// Keys are all keys but flows, in the order of docs/configuration.md.
func Keys() []Key {
	var all []Key
	means := meanings()
	for _, k := range (&Config{}).keys() {
		all = append(all, Key{
			Path: k.path, Env: k.env(), Default: k.parse(k.standard, setting.Place{}), Meaning: means[k.path],
			Required: slices.Contains(Required(), k.path), Secret: k.secret, Later: k.later,
		})
	}
	return all
}

// Value is what a key is set to.
type Value struct {
	Key
	Written setting.Written // of a default At is nowhere
	Hidden  bool            // Written lacks a secret that is set
}

// From is where the value comes from: "default", "dedup.yaml:3" or the name of
// an environment variable.
func (v Value) From() string {
	if v.Written.At == (setting.Place{}) {
		return "default"
	}
	return v.Written.At.String()
}

// Effective is a configuration with the place where each value comes from. It
// holds no secret.
type Effective struct {
	Values       []Value
	BuiltinRules bool
	Flows        []rules.Rule
	Set          *rules.Set // Flows, compiled
	Input        topics.Input
}

// Explain reads what Load does and tells where each value comes from. It
// demands no key: what is missing is shown as missing.
func Explain(path string, environ []string) (*Effective, []Warning, error) {
	l, warnings := read(path, environ, nil)
	if len(l.problems) > 0 {
		return nil, warnings, l.problems.Sorted()
	}
	set, err := l.config.Rules()
	if err != nil {
		return nil, warnings, err
	}
	input, err := l.config.Input()
	if err != nil {
		return nil, warnings, err
	}
	e := &Effective{BuiltinRules: l.config.BuiltinRules, Flows: l.config.Flows, Set: set, Input: input}
	for _, k := range Keys() {
		w, written := l.written[k.Path]
		if !written {
			w = k.Default
		}
		v := Value{Key: k, Written: w}
		if k.Secret {
			v.Written.Text, v.Hidden = withoutSecret(w.Text)
		}
		e.Values = append(e.Values, v)
	}
	return e, warnings, nil
}

// withoutSecret leaves of a URL all but passwords, which still tells which
// server is meant, and of anything else nothing.
func withoutSecret(text string) (shown string, hidden bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "", text != ""
	}
	if _, has := u.User.Password(); has {
		u.User, hidden = url.User(u.User.Username()), true
	}
	q := u.Query()
	for _, secret := range []string{"password", "sslpassword"} { // of libpq's parameters
		if q.Has(secret) {
			q.Del(secret)
			u.RawQuery, hidden = q.Encode(), true
		}
	}
	return u.String(), hidden
}
