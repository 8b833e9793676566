package config

import (
	"slices"
	"strings"

	"dedupledger/internal/setting"
)

// Warning is something a user should know of and nothing has to wait for.
type Warning struct {
	At   setting.Place
	Text string
}

func (w Warning) String() string { return w.At.String() + ": " + w.Text }

// Required are the keys without a default.
func Required() []string { return []string{"kafka.brokers", "redis.addrs", "postgres.url"} }

// Default is the configuration with every key at its default.
func Default() *Config {
	c := &Config{}
	for _, k := range c.keys() {
		if k.shape == setting.Scalar || k.standard != "" {
			_ = k.set(k.parse(k.standard, setting.Place{})) // a test holds every default to be allowed
		}
	}
	return c
}

// Load reads the file (path "" for none) and over it the environment, given as
// os.Environ gives it, and checks the whole. required names the keys that must
// be set, all of Required if none is named: a command that opens one store asks
// for that one alone. The error is setting.Problems, everything at once; no
// value of a secret is in it.
func Load(path string, environ []string, required ...string) (*Config, []Warning, error) {
	if len(required) == 0 {
		required = Required()
	}
	l, warnings := read(path, environ, required)
	if len(l.problems) > 0 {
		return nil, warnings, l.problems.Sorted()
	}
	return l.config, warnings, nil
}

// read is Load with what it found out on the way.
func read(path string, environ, required []string) (*loader, []Warning) {
	c := Default()
	c.Places = map[string]setting.Place{}
	l := &loader{config: c, keys: c.keys(), places: c.Places, written: map[string]setting.Written{}}
	if path != "" {
		l.fromFile(path)
	}
	warnings := l.fromEnvironment(environ)
	// Of a file that could not be read nobody knows what it sets.
	if !slices.ContainsFunc(l.problems, func(p setting.Problem) bool { return p.Path == "" }) {
		l.require(required, path)
	}
	l.required = required
	l.check()
	return l, warnings
}

type loader struct {
	config   *Config
	keys     []key
	places   map[string]setting.Place   // of every key that was written
	written  map[string]setting.Written // likewise; what counts
	required []string                   // tells which stores the command opens
	problems setting.Problems
}

func (l *loader) fromFile(path string) {
	f := readFile(path, l.keys)
	l.problems = append(l.problems, f.problems...)
	l.config.Flows = f.flows
	for i := range l.keys {
		if w, ok := f.values[l.keys[i].path]; ok {
			l.set(&l.keys[i], w)
		}
	}
}

// fromEnvironment takes what is there for known keys and warns of what looks
// meant for this program but is not: Kubernetes makes variables of the names of
// services, so they cannot be errors. Values are not repeated.
func (l *loader) fromEnvironment(environ []string) []Warning {
	var warnings []Warning
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		at := setting.Place{Name: name}
		i := slices.IndexFunc(l.keys, func(k key) bool { return k.env() == name })
		switch {
		case i >= 0:
			l.set(&l.keys[i], l.keys[i].parse(value, at))
		case name == "DEDUP_FLOWS":
			warnings = append(warnings, Warning{at, "not read: flows come from the file only"})
		case strings.HasPrefix(name, "DEDUP_") && !ofAnother(name):
			warnings = append(warnings, Warning{at, "not read: no key has this name"})
		}
	}
	return warnings
}

// ofAnother are variables that are no keys but belong to this program: flags of
// the command line, and the services of the test suite.
func ofAnother(name string) bool {
	return strings.HasPrefix(name, "DEDUP_TEST_") ||
		slices.Contains([]string{"DEDUP_CONFIG", "DEDUP_ACTOR", "DEDUP_SERVER", "DEDUP_TOKEN_FILE"}, name)
}

func (l *loader) set(k *key, w setting.Written) {
	l.places[k.path], l.written[k.path] = w.At, w
	err := k.set(w)
	if err == nil {
		return
	}
	p := setting.Problem{At: w.At, Path: k.path, Value: w.Quoted(), Why: err.Error()}
	if k.secret && p.Value != "" {
		p.Value = "***"
	}
	l.problems = append(l.problems, p)
}

func (l *loader) require(paths []string, file string) {
	for _, k := range l.keys {
		if !slices.Contains(paths, k.path) || l.isSet(k.path) {
			continue
		}
		at, written := l.places[k.path]
		if !written {
			at = setting.Place{Name: file}
		}
		if slices.ContainsFunc(l.problems, func(p setting.Problem) bool { return p.Path == k.path }) {
			continue // written, but wrong: that is said already
		}
		l.problems = append(l.problems, setting.Problem{
			At: at, Path: k.path, Why: "must be set, here or in " + k.env(),
		})
	}
}

func (l *loader) isSet(path string) bool {
	switch path {
	case "kafka.brokers":
		return len(l.config.Kafka.Brokers) > 0
	case "redis.addrs":
		return len(l.config.Redis.Addrs) > 0
	default:
		return !l.config.Postgres.URL.Empty()
	}
}
