package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
func lawful() *observation {
	now := time.Now().UTC().Truncate(time.Millisecond)
	o := &observation{
		sent: map[place]*sent{}, epochs: map[place]int32{}, topicIDs: map[string]uuid.UUID{controlRaw: {1}},
		cleanOf: map[string]string{controlRaw: controlClean}, hours: map[account]tally{}, positions: map[place]position{},
		stopped: true, taken: now,
	}
	messages := []message{order("acme:edifact", "1", 5), order("acme:edifact", "1", 5), order("acme:edifact", "1", 6), cutOrder("acme:edifact", "2")}
	statuses := []string{"NEW", "SEEN", "DRIFT", "INVALID"}
	kinds := []kind{clean, duplicates, duplicates, deadLetter}
	for i, m := range messages {
		m.Headers = []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "Dedup-Id", Value: []byte("forged")}}
		p := place{controlRaw, 0, int64(i)}
		o.sent[p] = &sent{p, m, now, now}
		o.outputs = append(o.outputs, o.lawfulOutput(o.sent[p], kinds[i], statuses[i]))
		o.hours[account{"acme:edifact", statuses[i]}] = tally{1, int64(len(m.Value))}
	}
	o.positions[place{topic: controlRaw}] = position{d: 4, w: 4}
	return o
}

func (o *observation) lawfulOutput(s *sent, k kind, status string) *output {
	sum := sha256.Sum256(s.Value)
	h := map[string]string{
		"dedup-origin": s.place.String(), "dedup-status": status, "dedup-scope": s.Key,
		"dedup-payload-sha256": hex.EncodeToString(sum[:]),
	}
	topic := string(k)
	if k != deadLetter {
		h["dedup-key"] = s.Want.Key
		h["dedup-first-seen-at"] = s.at.Format(time.RFC3339Nano)
		h["dedup-expires-at"] = s.at.Add(s.window()).Format(time.RFC3339Nano)
	}
	switch k {
	case clean:
		topic = controlClean
		h["dedup-id"] = o.idOf(s.place)
	case duplicates:
		first := place{controlRaw, 0, 0}
		h["dedup-first-origin"], h["dedup-first-id"] = first.String(), o.idOf(first)
		h["dedup-first-payload-sha256"], h["dedup-retry-count"] = "x", "1"
	case deadLetter:
		h["dedup-reason"] = s.Want.Code
	}
	r := &kgo.Record{Topic: topic, Key: []byte(s.Key), Value: s.Value, Timestamp: s.raw, Headers: foreign(s.Headers)}
	for name, value := range h {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return &output{kind: k, record: r, origin: s.place}
}

func set(out *output, name, value string) {
	for i := range out.record.Headers {
		if out.record.Headers[i].Key == name {
			out.record.Headers[i].Value = []byte(value)
			return
		}
	}
	out.record.Headers = append(out.record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
}

func TestCheckerPassesWhatIsLawful(t *testing.T) {
	t.Parallel()
	require.NoError(t, lawful().judge())
}

func TestCheckerFindsWhatIsNot(t *testing.T) {
	t.Parallel()
	again := func(o *observation, i int) *output {
		r := *o.outputs[i].record
		r.Headers = append([]kgo.RecordHeader(nil), r.Headers...)
		r.Offset = 9
		return &output{kind: o.outputs[i].kind, record: &r, origin: o.outputs[i].origin}
	}
	for name, c := range map[string]struct {
		harm func(o *observation)
		says string
	}{
		"lost":         {func(o *observation) { o.outputs = o.outputs[1:] }, "law 1"},
		"doubled":      {func(o *observation) { o.outputs = append(o.outputs, again(o, 1)) }, "has 2 outputs"},
		"from nowhere": {func(o *observation) { delete(o.sent, place{controlRaw, 0, 3}) }, "never committed to raw"},
		"accepted twice": {func(o *observation) {
			o.outputs[1] = o.lawfulOutput(o.sent[place{controlRaw, 0, 1}], clean, "NEW")
		}, "law 2"},
		"copy swallowed": {func(o *observation) { o.outputs[0].kind = duplicates; set(o.outputs[0], "dedup-status", "SEEN") }, "law 3"},
		"first is itself": {func(o *observation) {
			set(o.outputs[1], "dedup-first-origin", o.outputs[1].origin.String())
		}, "not in clean"},
		"window too short":    {func(o *observation) { o.sent[place{controlRaw, 0, 0}].Want.Window = time.Hour }, "law 2: window"},
		"seen before sent":    {func(o *observation) { o.sent[place{controlRaw, 0, 0}].at = time.Now().Add(time.Hour) }, "first seen"},
		"DRIFT of same bytes": {func(o *observation) { set(o.outputs[1], "dedup-status", "DRIFT") }, "status DRIFT"},
		"wrong topic":         {func(o *observation) { o.outputs[0].record.Topic = "clean.y" }, "wanted topic"},
		"wrong code":          {func(o *observation) { set(o.outputs[3], "dedup-reason", "edifact.no_unb") }, "wanted code"},
		"wrong key":           {func(o *observation) { set(o.outputs[0], "dedup-key", "hdr:1") }, "key \"hdr:1\""},
		"out of order": {func(o *observation) {
			o.outputs = append(o.outputs, o.lawfulOutput(o.sent[place{controlRaw, 0, 2}], clean, "NEW"))
			o.outputs = append(o.outputs, again(o, 0))
		}, "order:"},
		"other partition": {func(o *observation) { o.outputs[0].record.Partition = 1 }, "another partition"},
		"value":           {func(o *observation) { o.outputs[0].record.Value = []byte("x") }, "untouched"},
		"null became empty": {func(o *observation) {
			o.sent[place{controlRaw, 0, 0}].Value = nil
			o.outputs[0].record.Value = []byte{}
		}, "nil: false"},
		"foreign header": {func(o *observation) { o.outputs[0].record.Headers[1].Value = []byte{} }, "foreign headers"},
		"record key":     {func(o *observation) { o.outputs[0].record.Key = nil }, "record key"},
		"timestamp":      {func(o *observation) { o.outputs[0].record.Timestamp = time.Now().Add(time.Minute) }, "timestamp"},
		"forged header":  {func(o *observation) { set(o.outputs[0], "Dedup-Id", "forged") }, "does not belong"},
		"header twice": {func(o *observation) {
			h := o.outputs[0].record
			h.Headers = append(h.Headers, h.Headers[len(h.Headers)-1])
		}, "there twice"},
		"wrong id":           {func(o *observation) { o.epochs[place{controlRaw, 0, 0}] = 7 }, "dedup-id"},
		"not counted":        {func(o *observation) { delete(o.hours, account{"acme:edifact", "SEEN"}) }, "accounts"},
		"counted twice":      {func(o *observation) { o.hours[account{"acme:edifact", "NEW"}] = tally{2, 2} }, "accounts"},
		"counted for others": {func(o *observation) { o.hours[account{"beta:edifact", "NEW"}] = tally{1, 2} }, "the outputs none"},
		"not flushed":        {func(o *observation) { o.positions[place{topic: controlRaw}] = position{d: 4, w: 3} }, "position of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := lawful()
			c.harm(o)
			require.ErrorContains(t, o.judge(), c.says)
		})
	}
}

func TestCheckerAllowsReuseAfterTheWindow(t *testing.T) {
	t.Parallel()
	o := lawful()
	second := o.sent[place{controlRaw, 0, 1}]
	second.at = second.at.Add(ediWindow)
	o.taken = second.at
	o.outputs[1] = o.lawfulOutput(second, clean, "NEW")
	set(o.outputs[2], "dedup-first-origin", second.place.String())
	set(o.outputs[2], "dedup-first-id", o.idOf(second.place))
	o.hours[account{"acme:edifact", "NEW"}] = tally{2, o.hours[account{"acme:edifact", "NEW"}].bytes * 2}
	delete(o.hours, account{"acme:edifact", "SEEN"})
	require.NoError(t, o.judge())
}

func TestSumSeries(t *testing.T) {
	t.Parallel()
	const text = "# HELP m x\nm{a=\"1\",b=\"2\"} 3\nm{a=\"2\"} 4\nm2 9\nn 5.5\n"
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{{"m", nil, 7}, {"m", []string{`a="1"`}, 3}, {"n", nil, 5.5}, {"o", nil, 0}} {
		got, err := sumSeries(text, c.name, c.labels)
		require.NoError(t, err)
		require.InDelta(t, c.want, got, 0, fmt.Sprint(c.name, c.labels))
	}
}
