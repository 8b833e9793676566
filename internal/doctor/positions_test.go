package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
	"dedupledger/processor"
)

func at(offset int64) ledger.Position { return ledger.Position{Offset: offset} }

// exact is a partition that runs: committed and decided up to 8812, where its log
// ends.
func exact() Partition {
	return Partition{
		Topic: "raw-ingest.as2", Number: 3, Row: &ledger.PositionRow{Group: "g", Seq: 5, D: at(8812), W: at(8812)}, Offset: 8812,
		Stand: processor.Standing{Found: true, Ours: true, At: at(8812)}, Next: at(8812), Start: 100, Stable: 8812, End: 8812,
	}
}

func judged(change func(*Partition)) Findings {
	p := exact()
	change(&p)
	return (&Positions{Group: "g", Partitions: []Partition{p}}).Judge(time.Now(), time.Minute, true)
}

func TestJudgePositions(t *testing.T) {
	t.Parallel()
	requireOne(t, judged(func(*Partition) {}), "ok positions 1 partition exact", "")
	requireOne(t, judged(func(p *Partition) { p.Row, p.Stand, p.Offset, p.Next = nil, processor.Standing{}, -1, at(0) }), "ok positions 1 partition exact", "")
	requireOne(t, judged(func(p *Partition) { p.Row.Seq, p.Stand = 0, processor.Standing{Learns: true}; p.Offset = -1 }), "ok positions 1 partition exact", "")
	verify := processor.Standing{Found: true, Learns: true, From: at(7741), At: at(7741)}
	foreign := func(p *Partition) { p.Offset, p.Stand, p.Row.W, p.Next = 0, verify, at(7741), at(7741) }
	requireOne(t, judged(foreign), "warn positions raw-ingest.as2/3: another tool set offset 0. Not obeyed, went on behind its last committed output, at 7741 or later; "+
		"its next commit puts the offset right. To read messages again rewind your own group on clean; to pass over: dedup skip raw-ingest.as2/3 --to OFFSET --reason ...", "")
	for name, c := range map[string]struct {
		change       func(*Partition)
		text, repair string
	}{
		"group": {
			func(p *Partition) { p.Row.Group = "old" }, `FAIL positions raw-ingest.as2/3 held: filtered by group "old", not "g"`,
			"set kafka.group to old, or, once its processes are stopped: dedup topics adopt raw-ingest.as2 --reason ...",
		},
		"outputs gone": {
			func(p *Partition) {
				p.Offset, p.Row.W, p.Row.D = -1, at(8790), at(8812)
				p.Stand = processor.Standing{Learns: true, From: at(8790), At: at(8790), Gone: "duplicates/3 starts at 1301, needed from 1290"}
			}, "FAIL positions raw-ingest.as2/3 held: offset deleted, and duplicates/3 starts at 1301, needed from 1290: whether 8790..8811 have outputs is unknown",
			"dedup repair raw-ingest.as2/3 --assume committed|aborted --reason ...",
		},
		"outputs gone, ours": {
			func(p *Partition) {
				p.Row.W, p.Row.D = at(100), at(100)
				p.Stand = processor.Standing{Found: true, Ours: true, Learns: true, From: at(100), At: at(8812), Gone: "clean.as2/3 starts at 9, needed from 1"}
			}, "FAIL positions raw-ingest.as2/3 held: PostgreSQL lost what is committed up to 8812, and clean.as2/3 starts at 9, needed from 1: whether 100..8811 have outputs is unknown",
			"dedup repair raw-ingest.as2/3 --assume committed|aborted --reason ...",
		},
		"log start": {
			func(p *Partition) { p.Start, p.End, p.Stable = 8820, 8830, 8830 }, "FAIL positions raw-ingest.as2/3: records 8812..8819 were deleted before they were read; the filter goes on at 8820 and records a gap",
			"raise retention.ms of the topic; docs/operations.md#records-without-an-output",
		},
		"told": {
			func(p *Partition) { p.Told = Hold{"dead_letter", "dead-letter refuses it"} }, "FAIL positions raw-ingest.as2/3 held: dead-letter refuses it",
			"raise max.message.bytes of the dead-letter topic, or take compact out of its cleanup.policy: dedup topics check",
		},
		"told, topics": {func(p *Partition) { p.Told = Hold{"topics", "no duplicates.acme"} }, "FAIL positions raw-ingest.as2/3 held: no duplicates.acme", "dedup topics ensure raw-ingest.as2"},
		"told, rights": {func(p *Partition) { p.Told = Hold{"rights", "no WRITE"} }, "FAIL positions raw-ingest.as2/3 held: no WRITE", "dedup doctor --acls"},
		"log end": {
			func(p *Partition) { p.End, p.Stable = 8000, 8000 }, "FAIL positions raw-ingest.as2/3 held: position 8812 lies behind the log end 8000: the log was cut",
			"restore the log, or delete the topic and create it again",
		},
		"open": {func(p *Partition) { p.Open, p.Offset = true, -1 }, "warn positions raw-ingest.as2/3: an open transaction holds the group's offset", "run it again in a moment; if it stays: dedup topics hanging"},
		"behind": {func(p *Partition) {
			p.Row.W, p.Row.D = at(8000), at(8000)
			p.Stand = processor.Standing{Found: true, Ours: true, Learns: true, From: at(8000), At: at(8812)}
		}, "warn positions raw-ingest.as2/3: Kafka has committed up to 8812 what PostgreSQL does not know (a failover or a restore): the filter learns 8000..8811 from the outputs by itself", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := judged(c.change)
			require.Len(t, fs, 1)
			texts, repairs := lines(fs)
			require.Equal(t, c.text, texts[0])
			require.Equal(t, c.repair, repairs[0])
		})
	}
}

// TestJudgeAHoldOfBefore: nobody runs who could know whether it still is so.
func TestJudgeAHoldOfBefore(t *testing.T) {
	t.Parallel()
	p := exact()
	p.Told = Hold{"topics", "no duplicates.acme"}
	requireOne(t, (&Positions{Group: "g", Partitions: []Partition{p}}).Judge(time.Now(), time.Minute, false),
		"warn positions raw-ingest.as2/3 held: no duplicates.acme (told by a filter that does not run any more)", "dedup topics ensure raw-ingest.as2")
}

func TestJudgeWhatIsLeft(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(10_000_000)
	p := Positions{Group: "g", Strays: []Stray{{Topic: "raw-ingest.old", ID: "id-1", Count: 2, Open: 1}}}
	requireOne(t, p.Judge(now, time.Minute, true), "warn positions raw-ingest.old with id id-1 is not there any more; 2 positions of it are kept, 1 with records that were decided and perhaps never committed",
		"dedup topics retire raw-ingest.old@id-1 --reason ...")
	p = Positions{Group: "g", Open: []Transaction{{ID: "g-0-1", Since: 10_000_000 - 60_000}}}
	requireOne(t, p.Judge(now, time.Minute, true), "ok positions 0 partitions exact", "")
	p.Open[0].Since = 10_000_000 - 300_000
	requireOne(t, p.Judge(now, time.Minute, true), "FAIL positions transaction g-0-1 is open for 5m, longer than kafka.transaction_timeout: readers with read_committed stand still behind it", "dedup topics hanging")
}

func TestJudgeDrained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Partition)
		text   string
	}{
		"drained": {func(*Partition) {}, "ok drained 1 partition of 1 raw topic filtered to the end: committed = decided = end, nothing is held"},
		"empty":   {func(p *Partition) { p.Row, p.Start = nil, p.End }, "ok drained 1 partition of 1 raw topic filtered to the end: committed = decided = end, nothing is held"},
		"reset after": {func(p *Partition) {
			p.Offset, p.Stand = 0, processor.Standing{Found: true, Learns: true, From: at(8812), At: at(8812)}
		}, "ok drained 1 partition of 1 raw topic filtered to the end: committed = decided = end, nothing is held"},
		"left":    {func(p *Partition) { p.End, p.Stable = 8815, 8815 }, "FAIL drained raw-ingest.as2/3: 3 offsets left"},
		"in hand": {func(p *Partition) { p.Row.D = at(8813) }, "FAIL drained raw-ingest.as2/3: records were decided and not committed"},
		"unnoted": {func(p *Partition) { p.Row.W = at(8800) }, "FAIL drained raw-ingest.as2/3: filtered to the end, and the ledger has not noted it yet: start and stop the filter"},
		"sender":  {func(p *Partition) { p.End = 8813 }, "FAIL drained raw-ingest.as2/3: a sender's transaction is open"},
		"unread":  {func(p *Partition) { p.Row = nil }, "FAIL drained raw-ingest.as2/3: no record of it was filtered yet"},
		"open":    {func(p *Partition) { p.Open = true }, "FAIL drained raw-ingest.as2/3: an open transaction holds the group's offset"},
		"held":    {func(p *Partition) { p.Row.Group = "old" }, `FAIL positions raw-ingest.as2/3 held: filtered by group "old", not "g"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := exact()
			c.change(&p)
			texts, _ := lines((&Positions{Group: "g", Partitions: []Partition{p}}).JudgeDrained())
			require.Equal(t, []string{c.text}, texts)
		})
	}
}

func TestJudgeBacklog(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	b := Backlog{Topic: "raw-ingest.as2", Retention: 3 * day}
	judge := func() Findings { return JudgeBacklog([]Backlog{b}, 7*day) }
	requireOne(t, judge(), "ok lag raw-ingest.as2: nothing waits; an outage of 3d loses nothing", "")
	b.Records, b.Behind, b.Oldest = 5, 1, 2*time.Hour
	requireOne(t, judge(), "ok lag raw-ingest.as2: 5 offsets behind in 1 partition, the oldest at most 2h old; retention 3d leaves 2d22h until unread records are deleted", "")
	b.Oldest = 2 * day
	require.Equal(t, Fail, judge()[0].Level)
	require.Equal(t, "raise retention.ms of the topic until the filter has caught up", judge()[0].Repair)
	b.Retention = 0
	require.Equal(t, OK, judge()[0].Level)
	require.Equal(t, Warn, JudgeBacklog([]Backlog{b}, 3*day)[0].Level)
}
