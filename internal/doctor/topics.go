package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dedupledger/topics"
	"dedupledger/topics/acl"
)

const areaTopics = "topics"

// JudgeTopics tells what `dedup topics check` finds. who may be granted what the
// look itself lacked.
func JudgeTopics(r *topics.Report, isRaw func(string) bool, who acl.Principal) (fs Findings) {
	for _, t := range r.Created {
		text := "%s is missing: partitions that need it are held"
		if isRaw(t.Name) {
			text = "%s is missing"
		}
		fs.add(Fail, areaTopics, t.Repair, text, t.Name)
	}
	for _, m := range r.Mismatches {
		fs.add(Fail, areaTopics, m.Repair, "%s %s", m.Topic, m.Text)
	}
	if len(r.Unread) > 0 {
		fs.add(Warn, areaTopics, strings.Join(who.Commands(r.Unread), " && "), "not all settings could be compared: %s lacks %s", principal(who), r.Unread)
	}
	if len(r.Present)+len(r.Created) == 0 {
		fs.add(Warn, areaTopics, "dedup topics ensure RAW-TOPIC", "no topic matches topics.raw %s, or none may be seen", r.Pattern)
	}
	if fs.Count(Fail) == 0 && len(r.Present) > 0 {
		var raws, outputs []string
		for _, t := range r.Present {
			text := t.Name + " " + strconv.Itoa(int(t.Partitions))
			if isRaw(t.Name) {
				raws = append(raws, text)
			} else {
				outputs = append(outputs, text)
			}
		}
		fs = append(Findings{{Level: OK, Area: areaTopics, Text: strings.Join(append(raws, outputs...), ", ")}}, fs...)
	}
	return fs
}

func principal(who acl.Principal) string {
	if who.Name == "" {
		return "this client's Kafka principal"
	}
	return who.Name
}

const areaACL = "acl"

// JudgeRights tells which of the filter's rights are missing, each on a line.
func JudgeRights(missing acl.Rights) (fs Findings) {
	for _, r := range missing {
		fs.add(Fail, areaACL, "dedup doctor --acls", "%s missing", r)
	}
	return fs.orOK(areaACL, "all rights of the filter are there")
}

const areaRules = "rules"

// Window is the shortest that a record can get.
type Window struct {
	Length time.Duration
	At     string // file and line
}

// JudgeWindows compares with the longest retention of a raw topic; of none of
// them, 0, what new topics get.
func JudgeWindows(w Window, raw map[string]time.Duration, fallback time.Duration) (fs Findings) {
	longest, of := fallback, "topics.create.raw_retention"
	if len(raw) > 0 {
		longest, of = 0, ""
	}
	for topic, r := range raw {
		if r > longest || r == longest && topic < of {
			longest, of = r, "raw retention of "+topic
		}
	}
	if w.Length < longest {
		fs.add(Warn, areaRules, "", "shortest window %s (%s) is below %s of %s: a resend that comes after its window is NEW again while its original can still be read", days(w.Length), w.At, days(longest), of)
	}
	return fs.orOK(areaRules, "shortest window %s (%s), not below %s of %s", days(w.Length), w.At, days(longest), of)
}

// RawRetentions are those of the raw topics whose settings could be read; forever
// is the largest duration.
func RawRetentions(r *topics.Report, isRaw func(string) bool) map[string]time.Duration {
	const forever = time.Duration(1<<63 - 1)
	all := map[string]time.Duration{}
	for topic, settings := range r.Settings {
		ms, err := strconv.ParseInt(settings["retention.ms"], 10, 64)
		if err != nil || !isRaw(topic) {
			continue
		}
		if ms < 0 || ms > int64(forever/time.Millisecond) {
			all[topic] = forever
			continue
		}
		all[topic] = time.Duration(ms) * time.Millisecond
	}
	return all
}

// days writes a duration as people say it: 3d, 2d4h, 90m.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 1<<63-1:
		return "no limit"
	case d >= day:
		text := fmt.Sprintf("%dd", d/day)
		if h := d % day / time.Hour; h > 0 && d < 10*day {
			text += fmt.Sprintf("%dh", h)
		}
		return text
	case d >= time.Hour:
		text := fmt.Sprintf("%dh", d/time.Hour)
		if m := d % time.Hour / time.Minute; m > 0 {
			text += fmt.Sprintf("%dm", m)
		}
		return text
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.Round(time.Second).String()
}
