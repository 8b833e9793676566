package topics

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Mismatch is a setting that does not fit the others: what will go wrong, and
// the command that repairs it.
type Mismatch struct {
	Topic, Text, Repair string
}

const forever = math.MaxInt64

// compare holds the topics against each other and against max_record_bytes.
func (p *Plan) compare(states []*topicState) []Mismatch {
	raws := map[string]*topicState{}
	for _, t := range states {
		if t.role == roleRaw {
			raws[t.name] = t
		}
	}
	c := comparison{plan: p}
	for _, t := range states {
		c.topic(t)
		if t.role == roleRaw {
			continue
		}
		c.output(t)
		for _, name := range t.raw {
			if t.role == roleClean {
				c.partitions(raws[name], t)
			}
		}
		if t.role != roleClean {
			c.fewer(t, raws)
		}
		c.limits(t, raws)
	}
	return c.found
}

type comparison struct {
	plan  *Plan
	found []Mismatch
}

func (c *comparison) add(t *topicState, repair, format string, args ...any) {
	c.found = append(c.found, Mismatch{Topic: t.name, Text: fmt.Sprintf(format, args...), Repair: repair})
}

// set is the command that gives a topic a setting.
func (c *comparison) set(t *topicState, key, value string) string {
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s=%s",
		c.plan.Bootstrap, t.name, key, value)
}

// topic checks what holds for raw topics and outputs alike.
func (c *comparison) topic(t *topicState) {
	if v, ok := t.settings[cfgCleanup]; ok && v != "delete" {
		c.add(t, c.set(t, cfgCleanup, "delete"),
			"%s=%s: compaction keeps one record of a key, and the key is tenant:flow: messages would vanish", cfgCleanup, v)
	}
	isr, ok := t.number(cfgMinISR)
	switch {
	case !ok:
	case isr > int64(t.replication):
		c.add(t, c.set(t, cfgMinISR, strconv.Itoa(max(1, t.replication-1))),
			"%s %d > replication %d: nothing can be written", cfgMinISR, isr, t.replication)
	case t.replication >= 3 && isr < 2:
		c.add(t, c.set(t, cfgMinISR, "2"),
			"%s %d < 2 at replication %d: one broker alone confirms a write, and its loss loses messages", cfgMinISR, isr, t.replication)
	}
}

// size checks an output against max_record_bytes.
func (c *comparison) size(t *topicState) {
	if v, ok := t.number(cfgMaxBytes); ok && v < c.plan.MaxRecordBytes+Overhead {
		c.add(t, c.set(t, cfgMaxBytes, strconv.FormatInt(c.plan.MaxRecordBytes+Overhead, 10)),
			"%s %d < max_record_bytes %d + %d: large messages would be parked", cfgMaxBytes, v, c.plan.MaxRecordBytes, Overhead)
	}
}

// output checks an output against max_record_bytes and for untouched times.
func (c *comparison) output(t *topicState) {
	c.size(t)
	if v, ok := t.settings[cfgTimeType]; ok && v != "CreateTime" {
		c.add(t, c.set(t, cfgTimeType, "CreateTime"),
			"%s=%s: the broker would replace the messages' timestamps", cfgTimeType, v)
	}
	if v, ok := t.number(cfgBeforeMax); ok && v < forever {
		c.add(t, c.set(t, cfgBeforeMax, strconv.FormatInt(forever, 10)),
			"%s %d: a message grows older while the filter is behind, and would be parked", cfgBeforeMax, v)
	}
}

// partitions compares a clean topic with a raw one.
func (c *comparison) partitions(raw, clean *topicState) {
	if raw.partitions == clean.partitions {
		return
	}
	small, count := Grow(raw.name, raw.partitions, clean.name, clean.partitions)
	c.add(clean, GrowCommand([]string{c.plan.Bootstrap}, small, count),
		"%d partitions, %s has %d: messages go by key, not by partition, and the order of a raw partition is kept per key only",
		clean.partitions, raw.name, raw.partitions)
}

// fewer compares an output that several raw topics may share with the one that
// has most partitions.
func (c *comparison) fewer(out *topicState, raws map[string]*topicState) {
	var most *topicState
	for _, name := range out.raw {
		if raw := raws[name]; raw != nil && (most == nil || raw.partitions > most.partitions) {
			most = raw
		}
	}
	if most == nil || most.partitions <= out.partitions {
		return
	}
	c.add(out, GrowCommand([]string{c.plan.Bootstrap}, out.name, most.partitions),
		"%d partitions, fewer than the %d of %s: its records go by key, not by partition, and the order of a raw partition is kept per key only",
		out.partitions, most.partitions, most.name)
}

// Grow says which of two topics has to grow, and to how many partitions:
// partitions can be added, never taken away.
func Grow(a string, countA int32, b string, countB int32) (topic string, partitions int32) {
	if countA < countB {
		return a, countB
	}
	return b, countA
}

// GrowCommand is the command that adds partitions. Brokers as host:port.
func GrowCommand(brokers []string, topic string, partitions int32) string {
	return fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --alter --topic %s --partitions %d", strings.Join(brokers, ","), topic, partitions)
}

// limits compares an output with all raw topics that write to it, and names the
// one that asks for most.
func (c *comparison) limits(out *topicState, raws map[string]*topicState) {
	var longest, farthest *topicState
	var keep, ahead int64 = -1, -1
	for _, name := range out.raw {
		raw := raws[name]
		if v, ok := raw.retention(); ok && v > keep {
			keep, longest = v, raw
		}
		// A raw topic that stamps records itself has none that lie ahead.
		if v, ok := raw.number(cfgAfterMax); ok && v > ahead && raw.settings[cfgTimeType] == "CreateTime" {
			ahead, farthest = v, raw
		}
	}
	if v, ok := out.retention(); ok && longest != nil && v < keep {
		c.add(out, c.set(out, cfgRetention, longest.settings[cfgRetention]),
			"%s %s < %s of %s: outputs would be gone while their raw records are still there, and a lost position could not be learned from them",
			cfgRetention, out.settings[cfgRetention], longest.settings[cfgRetention], longest.name)
	}
	if v, ok := out.number(cfgAfterMax); ok && farthest != nil && v < ahead {
		c.add(out, c.set(out, cfgAfterMax, strconv.FormatInt(forever, 10)),
			"%s %d < %d of %s: messages whose timestamp lies ahead would be parked", cfgAfterMax, v, ahead, farthest.name)
	}
}

// number is a setting as a number; false where the broker does not know the
// setting or it is none.
func (t *topicState) number(key string) (int64, bool) {
	n, err := strconv.ParseInt(t.settings[key], 10, 64)
	return n, err == nil
}

// retention is retention.ms with -1, no limit, as the largest number.
func (t *topicState) retention() (int64, bool) {
	v, ok := t.number(cfgRetention)
	if v < 0 {
		v = forever
	}
	return v, ok
}
