package laws

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The checker is checked: a made-up observation that keeps the laws passes, and
// each way of breaking it is found.

const (
	controlRaw   = "raw-ingest.x"
	controlClean = "clean.x"
)

// lawful is an observation of three copies and one broken message: NEW, SEEN,
// DRIFT, INVALID.
func lawful() *Observation {
	now := time.Now().UTC().Truncate(time.Millisecond)
	o := &Observation{
		Sent: map[Place]*Sent{}, Epochs: map[Place]int32{}, TopicIDs: map[string]uuid.UUID{controlRaw: {1}},
		CleanOf: map[string]string{controlRaw: controlClean}, Hours: map[Account]Tally{}, Positions: map[Place]Position{},
		Stopped: true, Taken: now,
	}
	messages := []Message{Order("acme:edifact", "1", 5), Order("acme:edifact", "1", 5), Order("acme:edifact", "1", 6), CutOrder("acme:edifact", "2")}
	statuses := []string{"NEW", "SEEN", "DRIFT", "INVALID"}
	kinds := []Kind{Clean, Duplicates, Duplicates, DeadLetter}
	for i, m := range messages {
		m.Headers = []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "Dedup-Id", Value: []byte("forged")}}
		p := Place{controlRaw, 0, int64(i)}
		o.Sent[p] = &Sent{p, m, now, now}
		o.Outputs = append(o.Outputs, o.lawfulOutput(o.Sent[p], kinds[i], statuses[i]))
		o.Hours[Account{"acme:edifact", statuses[i]}] = Tally{1, int64(len(m.Value))}
	}
	o.Positions[Place{Topic: controlRaw}] = Position{D: 4, W: 4}
	return o
}

func (o *Observation) lawfulOutput(s *Sent, k Kind, status string) *Output {
	sum := sha256.Sum256(s.Value)
	h := map[string]string{
		"dedup-origin": s.Place.String(), "dedup-status": status, "dedup-scope": s.Key,
		"dedup-payload-sha256": hex.EncodeToString(sum[:]),
	}
	topic := string(k)
	if k != DeadLetter {
		h["dedup-key"] = s.Want.Key
		h["dedup-first-seen-at"] = s.At.Format(time.RFC3339Nano)
		h["dedup-expires-at"] = s.At.Add(s.Window()).Format(time.RFC3339Nano)
	}
	switch k {
	case Clean:
		topic = controlClean
		h["dedup-id"] = o.IDOf(s.Place)
	case Duplicates:
		first := Place{controlRaw, 0, 0}
		h["dedup-first-origin"], h["dedup-first-id"] = first.String(), o.IDOf(first)
		h["dedup-first-payload-sha256"], h["dedup-retry-count"] = "x", "1"
	case DeadLetter:
		h["dedup-reason"] = s.Want.Code
	}
	r := &kgo.Record{Topic: topic, Key: []byte(s.Key), Value: s.Value, Timestamp: s.Raw, Headers: foreign(s.Headers)}
	for name, value := range h {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return &Output{Kind: k, Record: r, Origin: s.Place}
}

func set(out *Output, name, value string) {
	for i := range out.Record.Headers {
		if out.Record.Headers[i].Key == name {
			out.Record.Headers[i].Value = []byte(value)
			return
		}
	}
	out.Record.Headers = append(out.Record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
}

func TestCheckerPassesWhatIsLawful(t *testing.T) {
	t.Parallel()
	require.NoError(t, lawful().Judge())
}

func TestCheckerFindsWhatIsNot(t *testing.T) {
	t.Parallel()
	again := func(o *Observation, i int) *Output {
		r := *o.Outputs[i].Record
		r.Headers = append([]kgo.RecordHeader(nil), r.Headers...)
		r.Offset = 9
		return &Output{Kind: o.Outputs[i].Kind, Record: &r, Origin: o.Outputs[i].Origin}
	}
	for name, c := range map[string]struct {
		harm func(o *Observation)
		says string
	}{
		"lost":         {func(o *Observation) { o.Outputs = o.Outputs[1:] }, "law 1"},
		"doubled":      {func(o *Observation) { o.Outputs = append(o.Outputs, again(o, 1)) }, "has 2 outputs"},
		"from nowhere": {func(o *Observation) { delete(o.Sent, Place{controlRaw, 0, 3}) }, "never committed to raw"},
		"accepted twice": {func(o *Observation) {
			o.Outputs[1] = o.lawfulOutput(o.Sent[Place{controlRaw, 0, 1}], Clean, "NEW")
		}, "law 2"},
		"copy swallowed": {func(o *Observation) { o.Outputs[0].Kind = Duplicates; set(o.Outputs[0], "dedup-status", "SEEN") }, "law 3"},
		"first is itself": {func(o *Observation) {
			set(o.Outputs[1], "dedup-first-origin", o.Outputs[1].Origin.String())
		}, "not in clean"},
		"window too short":    {func(o *Observation) { o.Sent[Place{controlRaw, 0, 0}].Want.Window = time.Hour }, "law 2: window"},
		"seen before sent":    {func(o *Observation) { o.Sent[Place{controlRaw, 0, 0}].At = time.Now().Add(time.Hour) }, "first seen"},
		"DRIFT of same bytes": {func(o *Observation) { set(o.Outputs[1], "dedup-status", "DRIFT") }, "status DRIFT"},
		"wrong topic":         {func(o *Observation) { o.Outputs[0].Record.Topic = "clean.y" }, "wanted topic"},
		"wrong code":          {func(o *Observation) { set(o.Outputs[3], "dedup-reason", "edifact.no_unb") }, "wanted code"},
		"wrong key":           {func(o *Observation) { set(o.Outputs[0], "dedup-key", "hdr:1") }, "key \"hdr:1\""},
		"out of order": {func(o *Observation) {
			o.Outputs = append(o.Outputs, o.lawfulOutput(o.Sent[Place{controlRaw, 0, 2}], Clean, "NEW"))
			o.Outputs = append(o.Outputs, again(o, 0))
		}, "order:"},
		"other partition": {func(o *Observation) { o.Outputs[0].Record.Partition = 1 }, "another partition"},
		"value":           {func(o *Observation) { o.Outputs[0].Record.Value = []byte("x") }, "untouched"},
		"null became empty": {func(o *Observation) {
			o.Sent[Place{controlRaw, 0, 0}].Value = nil
			o.Outputs[0].Record.Value = []byte{}
		}, "nil: false"},
		"foreign header": {func(o *Observation) { o.Outputs[0].Record.Headers[1].Value = []byte{} }, "foreign headers"},
		"record key":     {func(o *Observation) { o.Outputs[0].Record.Key = nil }, "record key"},
		"timestamp":      {func(o *Observation) { o.Outputs[0].Record.Timestamp = time.Now().Add(time.Minute) }, "timestamp"},
		"forged header":  {func(o *Observation) { set(o.Outputs[0], "Dedup-Id", "forged") }, "does not belong"},
		"header twice": {func(o *Observation) {
			h := o.Outputs[0].Record
			h.Headers = append(h.Headers, h.Headers[len(h.Headers)-1])
		}, "there twice"},
		"wrong id":           {func(o *Observation) { o.Epochs[Place{controlRaw, 0, 0}] = 7 }, "dedup-id"},
		"not counted":        {func(o *Observation) { delete(o.Hours, Account{"acme:edifact", "SEEN"}) }, "accounts"},
		"counted twice":      {func(o *Observation) { o.Hours[Account{"acme:edifact", "NEW"}] = Tally{2, 2} }, "accounts"},
		"counted for others": {func(o *Observation) { o.Hours[Account{"beta:edifact", "NEW"}] = Tally{1, 2} }, "the outputs none"},
		"not flushed":        {func(o *Observation) { o.Positions[Place{Topic: controlRaw}] = Position{D: 4, W: 3} }, "position of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := lawful()
			c.harm(o)
			require.ErrorContains(t, o.Judge(), c.says)
		})
	}
}

// observed is lawful, in a flow that is only observed.
func observed() *Observation {
	o := lawful()
	for i, status := range []string{"NEW", "SEEN", "DRIFT", "INVALID"} {
		s := o.Sent[Place{controlRaw, 0, int64(i)}]
		s.Want.Observe = true
		o.Outputs[i] = o.lawfulOutput(s, Clean, status)
		if status == "INVALID" {
			set(o.Outputs[i], "dedup-reason", s.Want.Code)
			o.Outputs[i].Record.Headers = slices.DeleteFunc(o.Outputs[i].Record.Headers, func(h kgo.RecordHeader) bool {
				return h.Key == "dedup-key" || h.Key == "dedup-first-seen-at" || h.Key == "dedup-expires-at"
			})
			continue
		}
		set(o.Outputs[i], "dedup-first-seen-at", o.Sent[Place{controlRaw, 0, 0}].At.Format(time.RFC3339Nano))
		set(o.Outputs[i], "dedup-expires-at", o.Sent[Place{controlRaw, 0, 0}].At.Add(s.Window()).Format(time.RFC3339Nano))
	}
	return o
}

// TestCheckerOfWhatIsObserved: all is in clean, once, and says what it is.
func TestCheckerOfWhatIsObserved(t *testing.T) {
	t.Parallel()
	require.NoError(t, observed().Judge())
	sent := func(o *Observation, n int64) *Sent { return o.Sent[Place{controlRaw, 0, n}] }
	for says, harm := range map[string]func(o *Observation){
		"law 1":                       func(o *Observation) { o.Outputs = o.Outputs[:3] },
		"within one window":           func(o *Observation) { set(o.Outputs[1], "dedup-status", "NEW") },
		"law 3":                       func(o *Observation) { set(o.Outputs[0], "dedup-status", "SEEN") },
		"its flow is only observed":   func(o *Observation) { o.Outputs[1] = o.lawfulOutput(sent(o, 1), Duplicates, "SEEN") },
		"is only observed: wanted":    func(o *Observation) { o.Outputs[3] = o.lawfulOutput(sent(o, 3), DeadLetter, "INVALID") },
		"equal to the first's: false": func(o *Observation) { set(o.Outputs[2], "dedup-status", "SEEN") },
		"equal to the first's: true":  func(o *Observation) { set(o.Outputs[1], "dedup-status", "DRIFT") },
		`status SEEN in clean`:        func(o *Observation) { sent(o, 1).Want.Observe = false },
		`reason "x"`:                  func(o *Observation) { set(o.Outputs[3], "dedup-reason", "x") },
		"first that was seen at": func(o *Observation) {
			set(o.Outputs[1], "dedup-first-seen-at", sent(o, 0).At.Add(time.Second).Format(time.RFC3339Nano))
		},
		"the outputs": func(o *Observation) { delete(o.Hours, Account{"acme:edifact", "DRIFT"}) },
	} {
		o := observed()
		harm(o)
		require.ErrorContains(t, o.Judge(), says)
	}
}

// TestCheckerOfAnObservedOrphan: a first that lies in a gap is nowhere, and its
// copies were SEEN of it.
func TestCheckerOfAnObservedOrphan(t *testing.T) {
	t.Parallel()
	o := observed()
	first := o.Outputs[0]
	o.Outputs = o.Outputs[1:]
	delete(o.Hours, Account{o.Sent[first.Origin].Account(), "NEW"})
	require.ErrorContains(t, o.Judge(), "first that was seen at")
	o.Gone = map[Place]bool{first.Origin: true}
	require.NoError(t, o.Judge())
}

func TestCheckerAllowsReuseAfterTheWindow(t *testing.T) {
	t.Parallel()
	o := lawful()
	second := o.Sent[Place{controlRaw, 0, 1}]
	second.At = second.At.Add(EDIWindow)
	o.Taken = second.At
	o.Outputs[1] = o.lawfulOutput(second, Clean, "NEW")
	set(o.Outputs[2], "dedup-first-origin", second.Place.String())
	set(o.Outputs[2], "dedup-first-id", o.IDOf(second.Place))
	o.Hours[Account{"acme:edifact", "NEW"}] = Tally{2, o.Hours[Account{"acme:edifact", "NEW"}].Bytes * 2}
	delete(o.Hours, Account{"acme:edifact", "SEEN"})
	require.NoError(t, o.Judge())
}

// inGap is lawful, but that the SEEN has no output and its record lies in a gap.
func inGap() *Observation {
	o := lawful()
	o.Gone = map[Place]bool{{controlRaw, 0, 1}: true}
	o.Outputs = append(o.Outputs[:1:1], o.Outputs[2:]...)
	return o
}

// TestCheckerOfAccountsAndGaps: what lies in a gap may have been counted, once, and
// need not.
func TestCheckerOfAccountsAndGaps(t *testing.T) {
	t.Parallel()
	require.NoError(t, inGap().Judge(), "counted")
	o := inGap()
	delete(o.Hours, Account{"acme:edifact", "SEEN"})
	require.NoError(t, o.Judge(), "not counted")
	o = inGap()
	seen := o.Hours[Account{"acme:edifact", "SEEN"}]
	o.Hours[Account{"acme:edifact", "SEEN"}] = Tally{2, seen.Bytes}
	require.ErrorContains(t, o.Judge(), "accounts", "counted twice")
	o = inGap()
	drift := o.Hours[Account{"acme:edifact", "DRIFT"}]
	o.Hours[Account{"acme:edifact", "DRIFT"}] = Tally{2, drift.Bytes + seen.Bytes}
	require.ErrorContains(t, o.Judge(), "1 lie in gaps", "more than lie in gaps")
	o = inGap()
	delete(o.Hours, Account{"acme:edifact", "DRIFT"})
	require.ErrorContains(t, o.Judge(), "accounts", "a gap hides nothing that has an output")
}

// TestGapsAreComparedEpochFirst: a range over an election holds what was cut, and
// not what lies there now.
func TestGapsAreComparedEpochFirst(t *testing.T) {
	t.Parallel()
	o := NewObservation()
	o.TopicIDs[controlRaw] = uuid.UUID{1}
	for offset, epoch := range []int32{0, 0, 0, 1} {
		p := Place{controlRaw, 0, int64(offset)}
		o.Sent[p], o.Epochs[p] = &Sent{Place: p}, epoch
	}
	o.mark(gap{topic: uuid.UUID{1}.String(), fromEpoch: 0, from: 2, toEpoch: 1, to: 1})
	require.Equal(t, map[Place]bool{{controlRaw, 0, 2}: true}, o.Gone)
	o.mark(gap{topic: uuid.UUID{2}.String(), to: 4})
	o.mark(gap{topic: uuid.UUID{1}.String(), partition: 1, to: 4})
	require.Len(t, o.Gone, 1, "of another topic or partition")
	o.Gone = map[Place]bool{}
	for offset, kind := range []Kind{Clean, Duplicates} {
		o.Outputs = append(o.Outputs, &Output{Kind: kind, Origin: Place{controlRaw, 0, int64(offset)}})
	}
	o.mark(gap{topic: uuid.UUID{1}.String(), to: 2, retired: true})
	require.Equal(t, map[Place]bool{{controlRaw, 0, 0}: true}, o.Gone, "a repeat may have its output, what is accepted may not")
}

// TestEndedPartitionsHaveNoPosition: what is said of a partition that is no more
// is not looked at.
func TestEndedPartitionsHaveNoPosition(t *testing.T) {
	t.Parallel()
	o := lawful()
	o.Positions[Place{Topic: controlRaw}] = Position{D: 4, W: 3}
	require.Error(t, o.Judge())
	o.Ended = map[Place]bool{{Topic: controlRaw}: true}
	require.NoError(t, o.Judge())
}
