package setting

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Day is 24 hours and Year 365 days: configuration knows no calendar.
const (
	Day  = 24 * time.Hour
	Year = 365 * Day
)

var errNotDuration = errors.New("not a duration")

// durationUnits are what may be written, and the words people write instead.
var durationUnits = []struct {
	unit  string
	scale time.Duration
	words []string
}{
	{"ms", time.Millisecond, []string{"msec", "msecs", "millisecond", "milliseconds"}},
	{"s", time.Second, []string{"sec", "secs", "second", "seconds"}},
	{"m", time.Minute, []string{"min", "mins", "minute", "minutes"}},
	{"h", time.Hour, []string{"hr", "hrs", "hour", "hours"}},
	{"d", Day, []string{"day", "days"}},
	{"y", Year, []string{"yr", "yrs", "year", "years"}},
}

// Duration reads a whole number and a unit: 500ms 30s 15m 12h 7d 10y. "0"
// needs no unit. The error says what was probably meant.
func Duration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	number, unit := splitNumber(text)
	for _, u := range durationUnits {
		if u.unit == unit {
			if d, ok := scaled(number, u.scale); ok {
				return d, nil
			}
		}
	}
	if meant := guessDuration(text); meant != "" {
		return 0, fmt.Errorf("%w; write %s", errNotDuration, meant)
	}
	return 0, fmt.Errorf("%w; write a number with ms, s, m, h, d or y", errNotDuration)
}

// DurationWithin is Duration with bounds, which its error names.
func DurationWithin(text string, least, most time.Duration) (time.Duration, error) {
	d, err := Duration(text)
	if err != nil {
		return 0, fmt.Errorf("%w (%s to %s)", err, FormatDuration(least), FormatDuration(most))
	}
	if d < least || d > most {
		return 0, fmt.Errorf("out of range; write %s to %s", FormatDuration(least), FormatDuration(most))
	}
	return d, nil
}

// FormatDuration writes d as Duration reads it, in the largest unit below a
// year that leaves no rest.
func FormatDuration(d time.Duration) string {
	for _, u := range []int{4, 3, 2, 1, 0} {
		if unit := durationUnits[u]; d != 0 && d%unit.scale == 0 {
			return strconv.FormatInt(int64(d/unit.scale), 10) + unit.unit
		}
	}
	if d == 0 {
		return "0"
	}
	return d.String()
}

// guessDuration knows "60 days", "2 weeks" and Go's "1h30m"; "" if in doubt.
func guessDuration(text string) string {
	number, word := splitNumber(strings.TrimSpace(text))
	word = strings.ToLower(strings.TrimSpace(word))
	if n, ok := scaled(number, 7*Day); ok && (word == "w" || word == "week" || word == "weeks") {
		return FormatDuration(n)
	}
	for _, u := range durationUnits {
		for _, w := range append([]string{u.unit}, u.words...) {
			if _, ok := scaled(number, u.scale); ok && w == word {
				return strings.TrimLeft(number, "0") + u.unit
			}
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d%time.Millisecond != 0 {
		return ""
	}
	return FormatDuration(d)
}

// splitNumber cuts text behind its leading digits.
func splitNumber(text string) (number, rest string) {
	i := 0
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	return text[:i], text[i:]
}

// scaled is number × scale, unless that is no number, zero or too large.
func scaled(number string, scale time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n == 0 || n > math.MaxInt64/int64(scale) {
		return 0, false
	}
	return time.Duration(n) * scale, true
}
