package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"dedupledger/integration/laws"
)

// Faults that end by an operator's word.

// operate runs a command that acts, again while it refuses because a transaction
// of a filter that was killed is open yet: it says to wait.
func (c *campaign) operate(ctx context.Context, args ...string) error {
	args = append(args, "--reason", "campaign "+c.s.id)
	return until(ctx, func() (bool, error) {
		said, err := c.s.command(ctx, []string{"DEDUP_ACTOR=chaos"}, args...)
		if err != nil && strings.Contains(said, "a transaction of the filter is open") {
			return false, nil
		}
		return true, err
	})
}

// away ends the filters and takes them out of the group. Some were killed, every
// second time.
func (c *campaign) away(ctx context.Context, kind string) (all []int, how string, err error) {
	killed := c.everySecond(kind)
	how = "stopped"
	if killed {
		how = "killed"
	}
	if all, err = c.crew.endAll(ctx, killed); err != nil {
		return all, how, err
	}
	return all, how, c.vacate(ctx)
}

// everySecond is true every second time a kind is done, from the first or the
// second on as the seed has it.
func (c *campaign) everySecond(kind string) bool {
	if c.turns == nil {
		c.turns = map[string]int{}
	}
	c.turns[kind]++
	return (c.turns[kind]+int(c.o.seed%2))%2 == 0
}

// skip passes over raw records that were not read, or decided by a filter that
// was killed and never committed.
func skip(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	all, how, err := c.away(ctx, "skip")
	if err != nil {
		return time.Now(), err
	}
	if err := hold(ctx, between(rng, time.Second, 4*time.Second)); err != nil {
		return time.Now(), err
	}
	name := c.s.raw[rng.IntN(len(c.s.raw))]
	p := int32(rng.IntN(c.s.width(name)))
	to := c.tail.end(name, p)
	c.note("%s/%d to %d, %s", name, p, to, how)
	c.gaps++
	err = c.operate(ctx, "skip", fmt.Sprintf("%s/%d", name, p), "--to", fmt.Sprint(to))
	since := time.Now()
	return since, errors.Join(err, c.crew.startAll(all))
}

// rename gives the group another name: the filters are refused what was the
// other's, until its partitions are adopted.
func rename(ctx context.Context, c *campaign, _ *rand.Rand) (time.Time, error) {
	all, how, err := c.away(ctx, "group")
	if err != nil {
		return time.Now(), err
	}
	was := c.s.group
	c.s.renamed++
	c.s.group = fmt.Sprintf("dedup-%s-%d", c.s.id, c.s.renamed)
	c.note("%s, %s", c.s.group, how)
	if err := errors.Join(c.s.configure(), c.crew.start(all[0])); err != nil {
		return time.Now(), err
	}
	if err := c.refused(ctx, all[0], was); err != nil {
		return time.Now(), err
	}
	for _, name := range c.s.raw {
		if err := c.operate(ctx, "topics", "adopt", name); err != nil {
			return time.Now(), err
		}
	}
	since := time.Now()
	if err := c.crew.startAll(all[1:]); err != nil {
		return since, err
	}
	_, err = c.settleAll(ctx, since)
	return since, err
}

// refused waits until a filter says of all partitions whose they are.
func (c *campaign) refused(ctx context.Context, way int, owner string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverWithin, errors.New("the new group is not refused"))
	defer cancel()
	want := 0
	for _, name := range c.s.raw {
		want += c.s.width(name)
	}
	return until(ctx, func() (bool, error) {
		f, err := c.crew.take(way, false)
		if err != nil {
			return false, nil //nolint:nilerr // it is being started again
		}
		said, err := ask(ctx, f.at, "/readyz")
		return err == nil && strings.Count(said, `"reason":"group"`) == want && strings.Contains(said, owner), nil
	})
}

// ask a filter by HTTP.
func ask(ctx context.Context, at, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+path, nil)
	if err != nil {
		return "", fmt.Errorf("asking a filter: %w", err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("asking a filter: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("asking a filter: %w", err)
	}
	return string(text), nil
}

// loseOutputs: filters are killed, another tool deletes the group's offsets, and
// retention takes all outputs. What of the last batches is committed nobody can
// tell any more but who has read the outputs: that is us, and we say it.
func loseOutputs(ctx context.Context, c *campaign, rng *rand.Rand) (time.Time, error) {
	all := c.crew.running()
	if err := errors.Join(c.crew.killAll(), c.vacate(ctx)); err != nil {
		return time.Now(), err
	}
	if err := c.reset(ctx, rng, []string{"deleted", "back"}[rng.IntN(2)]); err != nil {
		return time.Now(), err
	}
	if err := c.takeOutputs(ctx); err != nil {
		return time.Now(), err
	}
	since := time.Now()
	if err := c.crew.startAll(all); err != nil {
		return since, err
	}
	words, err := c.settleAll(ctx, since)
	c.note("%d assumed committed, %d aborted", words["committed"], words["aborted"])
	return since, err
}

// settleAll repairs partitions whose outputs are gone until all go on. Where the
// offsets are not the filter's that can be so long after outputs-gone: a partition
// that has had no record since grow must look at all partitions of its outputs.
func (c *campaign) settleAll(ctx context.Context, since time.Time) (words map[string]int, err error) {
	c.watchFrom(ctx, since)
	words = map[string]int{}
	return words, until(ctx, func() (bool, error) {
		if c.watch.over() {
			return true, nil
		}
		return false, c.settleHeld(ctx, words)
	})
}

// takeOutputs keeps all outputs for the judgement and deletes them, once no
// transaction is open on them.
func (c *campaign) takeOutputs(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleWithin, errors.New("the outputs do not come to rest"))
	defer cancel()
	ends, err := c.restingOutputs(ctx)
	if err != nil {
		return err
	}
	if err := c.save(ctx); err != nil {
		return err
	}
	gone, err := c.s.admin.DeleteRecords(ctx, offsetsOf(ends))
	if err := errors.Join(err, gone.Error()); err != nil {
		return fmt.Errorf("deleting outputs: %w", err)
	}
	return nil
}

// settleHeld repairs each partition that is held because its outputs are gone, by
// what the reader has seen.
func (c *campaign) settleHeld(ctx context.Context, words map[string]int) error {
	db, err := c.s.asAdmin(ctx)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	rows, err := db.Query(ctx, `select topic, partition, w_epoch, w_offset, d_epoch, d_offset from dedup_position where held = 'outputs_gone' and held_claim = claim`)
	if err != nil {
		return fmt.Errorf("looking for held partitions: %w", err)
	}
	type heldAt struct {
		at   laws.Place
		w, d spot
	}
	var all []heldAt
	for rows.Next() {
		var h heldAt
		if err := rows.Scan(&h.at.Topic, &h.at.Partition, &h.w.epoch, &h.w.offset, &h.d.epoch, &h.d.offset); err != nil {
			rows.Close()
			return fmt.Errorf("looking for held partitions: %w", err)
		}
		all = append(all, h)
	}
	rows.Close()
	for _, h := range all {
		word, err := c.word(h.at.Topic, h.at.Partition, h.w, h.d)
		if err != nil {
			return err
		}
		words[word]++
		if err := c.operate(ctx, "repair", fmt.Sprintf("%s/%d", h.at.Topic, h.at.Partition), "--assume", word); err != nil {
			return err
		}
	}
	return rows.Err()
}

// spot is a position in one raw partition.
type spot struct {
	epoch  int32
	offset int64
}

func (s spot) before(o spot) bool {
	return s.epoch < o.epoch || s.epoch == o.epoch && s.offset < o.offset
}

// word is the truth about what was decided behind W: committed, where each record
// before D has its output, else aborted. A session commits all of a batch or
// nothing, and its W comes before the next one's D.
func (c *campaign) word(topic string, partition int32, w, d spot) (string, error) {
	now := c.tail.gens.now(topic, partition)
	with, without := 0, 0
	c.tail.mu.Lock()
	defer c.tail.mu.Unlock()
	for _, r := range c.tail.kept {
		at := spot{r.epoch, r.place.Offset}
		if r.place.Topic != now || r.place.Partition != partition || at.before(w) || !at.before(d) {
			continue
		}
		if c.tail.done[r.place] > 0 {
			with++
		} else {
			without++
		}
	}
	switch {
	case with > 0 && without > 0:
		return "", fmt.Errorf("of what was decided in %s/%d from %v to %v %d records have an output and %d have none", topic, partition, w, d, with, without)
	case without > 0:
		return "aborted", nil
	default:
		return "committed", nil
	}
}
