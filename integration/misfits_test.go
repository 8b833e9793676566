package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutputsThatDoNotFit: at the start the filter says once, with the repair,
// which output takes smaller records than topics.max_record_bytes and which has
// fewer partitions than raw, and goes on. A record that is too large for clean is
// a dead letter, the rest flows.
func TestOutputsThatDoNotFit(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 2, Unprepared: true})
	b.migrate(t)
	b.createTopic(t, b.clean[0], map[string]string{"max.message.bytes": "1048576"})
	b.partitions = 1
	b.createTopic(t, b.duplicates, map[string]string{"max.message.bytes": "33619968"})
	b.partitions = 2
	b.ensureTopics(t)
	repairs := []string{
		"kafka-configs.sh --bootstrap-server " + b.entry() + " --alter --entity-type topics --entity-name " + b.clean[0] + " --add-config max.message.bytes=33619968",
		"kafka-topics.sh --bootstrap-server " + b.entry() + " --alter --topic " + b.duplicates + " --partitions 2",
	}
	large := keyed("acme:rest", "large", noise(2<<20))
	large.Partition, large.Want.Code = 0, "output.rejected"
	b.produce(t, in(0, order("acme:edifact", "1", 5), order("acme:edifact", "1", 5))...)
	b.produce(t, large)
	b.produce(t, in(1, order("acme:edifact", "2", 5), order("acme:edifact", "2", 5))...)
	b.produce(t, in(0, order("acme:edifact", "3", 5))...)
	f := b.start(t, 0)
	b.check(t)
	require.Equal(t, map[string]int{"NEW": 3, "SEEN": 2, "INVALID": 1}, b.statuses(t))
	for line := range strings.Lines(f.text(t)) {
		if strings.Contains(line, "repair=") {
			t.Log(strings.TrimSpace(line))
		}
	}
	for _, repair := range repairs {
		require.Equal(t, 1, strings.Count(f.text(t), fmt.Sprintf("repair=%q", repair)), "%s, once", repair)
	}
	f.term(t)
	b.checkStopped(t)
}
