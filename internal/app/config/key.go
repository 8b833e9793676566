package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dedupledger/internal/setting"
)

// key is one key of the configuration.
type key struct {
	path  string        // kafka.rebalance_timeout
	shape setting.Shape // Scalar, List or Map
	// standard is the default as the documentation writes it; lists and maps
	// as the environment does.
	standard string
	secret   bool // the value must not be shown
	later    bool // of a feature that does not exist yet: only the default is taken
	set      func(setting.Written) error
}

// env is the name of the key's environment variable.
func (k *key) env() string {
	return "DEDUP_" + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// parse gives text the key's shape, as the environment writes lists (a,b) and
// maps (k=v,k=v).
func (k *key) parse(text string, at setting.Place) setting.Written {
	w := setting.Written{At: at, Shape: k.shape, Text: text}
	if k.shape == setting.Scalar {
		return w
	}
	w.Text = ""
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		switch {
		case text == "":
		case k.shape == setting.List:
			w.Items = append(w.Items, item)
		default:
			name, value, _ := strings.Cut(item, "=")
			w.Pairs = with(w.Pairs, name, value)
		}
	}
	return w
}

func with(m map[string]string, name, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[name] = value
	return m
}

func scalar(path, standard string, set func(text string) error) key {
	return key{path: path, shape: setting.Scalar, standard: standard, set: func(w setting.Written) error {
		text, err := w.AsText()
		if err != nil {
			return err
		}
		return set(text)
	}}
}

// keep stores a value that was read without an error.
func keep[T any](into *T, value T, err error) error {
	if err == nil {
		*into = value
	}
	return err
}

func text(path string, into *string, standard string, check func(string) error) key {
	return scalar(path, standard, func(s string) error { return keep(into, s, check(s)) })
}

func choice(path string, into *string, standard string, allowed ...string) key {
	return text(path, into, standard, func(s string) error {
		if !slices.Contains(allowed, s) {
			return errors.New("write " + oneOf(allowed))
		}
		return nil
	})
}

func flag(path string, into *bool, standard string) key {
	return key{path: path, shape: setting.Scalar, standard: standard, set: func(w setting.Written) error {
		b, err := w.AsBool()
		return keep(into, b, err)
	}}
}

func whole[T int | int16 | int32](path string, into *T, standard string, least, most T) key {
	return scalar(path, standard, func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return fmt.Errorf("write a whole number, %d to %d", least, most)
		}
		*into = T(n)
		return nil
	})
}

func size[T int32 | int64](path string, into *T, standard string, least, most T) key {
	return scalar(path, standard, func(s string) error {
		n, err := setting.SizeWithin(s, int64(least), int64(most))
		return keep(into, T(n), err)
	})
}

func duration(path string, into *time.Duration, standard string, least, most time.Duration) key {
	return scalar(path, standard, func(s string) error {
		d, err := setting.DurationWithin(s, least, most)
		return keep(into, d, err)
	})
}

func list(path string, into *[]string, check func(string) error) key {
	return key{path: path, shape: setting.List, set: func(w setting.Written) error {
		items, err := w.AsList()
		for i := range items {
			if err == nil {
				err = check(items[i])
			}
		}
		return keep(into, items, err)
	}}
}

// some is a list that cannot be empty; what its items may be is checked with
// other settings.
func some(path string, into *[]string, standard string) key {
	return key{path: path, shape: setting.List, standard: standard, set: func(w setting.Written) error {
		items, err := w.AsList()
		if err == nil && len(items) == 0 {
			err = errors.New("an empty list; leave the key out for [" + standard + "]")
		}
		return keep(into, items, err)
	}}
}

// pairs is a map, checked with other settings.
func pairs(path string, into *map[string]string) key {
	return key{path: path, shape: setting.Map, set: func(w setting.Written) error {
		m, err := w.AsMap()
		return keep(into, m, err)
	}}
}

func secret(path string, into *setting.Secret, check func(string) error) key {
	k := scalar(path, "", func(s string) error { return keep(into, setting.NewSecret(s), check(s)) })
	k.secret = true
	return k
}

// later is a key whose feature does not exist yet. Its default is accepted, so
// that a file with every key at its default is one this release takes.
func later(shape setting.Shape, path, standard string) key {
	k := key{path: path, shape: shape, standard: standard, later: true}
	k.secret = strings.HasSuffix(path, "password") || strings.HasSuffix(path, "url")
	k.set = func(w setting.Written) error {
		want := k.parse(standard, w.At)
		if w.Shape == shape && w.Text == want.Text && slices.Equal(w.Items, want.Items) && maps.Equal(w.Pairs, want.Pairs) {
			return nil
		}
		return notYet(standard)
	}
	return k
}

func notYet(standard string) error {
	if standard == "" {
		return errors.New("comes with a later release; leave it unset")
	}
	return errors.New("comes with a later release; leave it at " + standard)
}

// oneOf writes "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
