package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
)

func anything(string) error { return nil }

// address is host:port; an IPv6 host stands in brackets.
func address(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || !isPort(port) || strings.ContainsAny(s, " /@") {
		return errors.New("write host:port")
	}
	return nil
}

// listenAddress may leave the host out, or be empty.
func listenAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if s != "" && (err != nil || !isPort(port) || strings.ContainsAny(s, " /@")) {
		return errors.New(`write host:port or :port; "" for none`)
	}
	return nil
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// groupName leaves room for the slot and the session in the transactional id.
func groupName(s string) error {
	const most = 200
	if s == "" || len(s) > most || !printable(s) {
		return errors.New("write 1 to 200 printable characters without blanks")
	}
	return nil
}

// redisPrefix has no braces: in a Cluster they would put every fact into one
// hash slot.
func redisPrefix(s string) error {
	const most = 64
	if len(s) > most || !printable(s) || strings.ContainsAny(s, "{}") {
		return errors.New("write at most 64 printable characters without blanks and braces")
	}
	return nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// postgresURL takes care not to repeat the value: it may hold a password.
func postgresURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || strings.Trim(u.Path, "/") == "" {
		return errors.New("write postgres://user@host:5432/database")
	}
	return nil
}

// operatorTopic keeps its default until the operator's verbs come; the name is
// taken already, so no other topic may have it.
func operatorTopic(path string, into *string) key {
	const standard = "dedup-operator"
	k := text(path, into, standard, func(s string) error {
		if s != standard {
			return notYet(standard)
		}
		return nil
	})
	k.later = true
	return k
}

// ttlCap is a duration that may also be 0, for none.
func ttlCap(path string, into *time.Duration) key {
	return scalar(path, "0", func(s string) error {
		if s == "0" {
			*into = 0
			return nil
		}
		d, err := setting.DurationWithin(s, time.Second, rules.MaxWindow)
		if err != nil {
			return fmt.Errorf("%w, or 0 for none", err)
		}
		*into = d
		return nil
	})
}

// level reads the four names and no other spelling that slog would take.
func level(path string, into *slog.Level) key {
	return scalar(path, "info", func(s string) error {
		levels := map[string]slog.Level{
			"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
		}
		l, ok := levels[s]
		if !ok {
			return errors.New("write debug, info, warn or error")
		}
		*into = l
		return nil
	})
}
