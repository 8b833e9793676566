package importer

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
	"dedupledger/ledger"
	"dedupledger/topics"
	"dedupledger/topics/msgkey"
)

// Terms are what lines are read by.
type Terms struct {
	Name    string // of the file, in messages
	Rules   *rules.Set
	Window  time.Duration // of lines without one; 0: what the rules say
	Longest time.Duration // a window may be, at most rules.MaxWindow
}

// fault is what is wrong with a field.
type fault struct{ column, value, why string }

// line makes of fields what is entered. opaque: its key is none that an extractor
// makes.
func (t *Terms) line(f *fields) (l ledger.ImportLine, opaque bool, bad *fault) {
	name := strings.TrimSpace(f.Scope)
	scope, err := topics.ParseScope(name)
	if err != nil {
		return l, false, &fault{columnScope, f.Scope, "write tenant:flow, each 1 to 40 of letters, digits, . _ -"}
	}
	flow, known := t.Rules.Flow(name)
	if !known {
		return l, false, &fault{columnScope, f.Scope, "no rule speaks of this flow and builtin_rules is false: its records are INVALID " + rules.FlowUnknown}
	}
	key, code := msgkey.Explicit([]byte(f.Key))
	if code != "" {
		return l, false, &fault{columnKey, "", fmt.Sprintf("%s: write 1 to %d octets", code, msgkey.MaxExplicit)}
	}
	d := flow.Decide(key)
	l = ledger.ImportLine{Key: ledger.Key{Scope: d.LedgerScope, Key: key, Window: d.Window}, Flow: scope.Flow}
	if bad = t.window(f.Window, &l.Key.Window); bad != nil {
		return l, false, bad
	}
	if bad = hashOf(f.SHA256, &l.PayloadSHA256); bad != nil {
		return l, false, bad
	}
	l.FirstSeenAt, bad = firstSeen(f.First)
	return l, key != strings.Trim(f.Key, " \t\r\n"), bad
}

// window is the line's own, else that of the call, else that of the rules.
func (t *Terms) window(text string, into *time.Duration) *fault {
	text = strings.TrimSpace(text)
	if text == "" {
		if t.Window > 0 {
			*into = t.Window
		}
		return nil
	}
	w, err := setting.DurationWithin(text, rules.MinWindow, t.Longest)
	switch {
	case err != nil:
		return &fault{columnWindow, text, err.Error()}
	case w%time.Second != 0:
		return &fault{columnWindow, text, "write whole seconds"}
	}
	*into = w
	return nil
}

func hashOf(text string, into *[32]byte) *fault {
	text = strings.TrimSpace(text)
	if len(text) != hex.EncodedLen(len(into)) {
		return badHash(text)
	}
	if _, err := hex.Decode(into[:], []byte(text)); err != nil {
		return badHash(text)
	}
	return nil
}

// badHash has no way round: without the hash of the first payload nobody can tell
// a resend from a changed one.
func badHash(text string) *fault {
	return &fault{columnHash, text, "write the SHA-256 of the payload, 64 hex digits; without it a resend cannot be told from a changed one"}
}

const layoutDate = "2006-01-02"

func firstSeen(text string) (time.Time, *fault) {
	text = strings.TrimSpace(text)
	var at time.Time
	var err error
	switch {
	case len(text) == len(layoutDate):
		at, err = time.Parse(layoutDate, text)
	case len(text) > len(layoutDate) && text[len(layoutDate)] == ' ': // RFC 3339 §5.6 lets a blank stand for the T
		at, err = time.Parse(time.RFC3339Nano, text[:len(layoutDate)]+"T"+text[len(layoutDate)+1:])
	default:
		at, err = time.Parse(time.RFC3339Nano, text)
	}
	if at = at.UTC(); err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return time.Time{}, &fault{columnFirst, text, "write a time by RFC 3339, as in 2026-11-02T09:30:00Z, or a date, which is its first second in UTC" + epochGuess(text)}
	}
	return time.UnixMicro(at.UnixMicro()).UTC(), nil // PostgreSQL's own precision
}

// epochGuess tells what a number of seconds or milliseconds would be.
func epochGuess(text string) string {
	const seconds, milliseconds = 10, 13 // digits, from the years 2001 to 2286
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n < 0:
		return ""
	case len(text) == seconds:
		return "; " + text + " seconds since 1970 are " + time.Unix(n, 0).UTC().Format(time.RFC3339)
	case len(text) == milliseconds:
		return "; " + text + " milliseconds since 1970 are " + time.UnixMilli(n).UTC().Format(time.RFC3339Nano)
	}
	return ""
}
