package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/processor"
)

// grace is how long a lane waits, when all outputs are there, for its process to
// come by a point still. Then it brings it there once more.
func grace(o occasion) time.Duration {
	switch o {
	case atRest, atLoss, atHold:
		return 3 * time.Second
	case atRevoke:
		return 6 * time.Second
	default:
		return time.Second
	}
}

// provocations is how often a lane tries to get its process to a point: what
// happens at one can keep it from another.
const provocations = 6

// maxOpens is how often a session may be rebuilt before the lane starts its
// process anew: the waits between rebuilds double.
const maxOpens = 3

// visit does a round and judges it. What was not sprung is not counted.
func (l *lane) visit(r round) error {
	traps := set(r.visits...)
	left := traps
	for try := 0; try < provocations && len(left) > 0; try++ {
		if err := l.once(r, left); err != nil {
			return fmt.Errorf("%w, after %v", err, r)
		}
		left = slices.DeleteFunc(slices.Clone(traps), func(t *trap) bool { return t.sprung })
	}
	for _, t := range traps {
		l.world.table.visited(t)
	}
	return nil
}

// once brings a process to the traps, waits until all is well again, and judges.
func (l *lane) once(r round, left []*trap) error {
	if l.cur != nil && l.cur.opens.Load() > maxOpens {
		l.down()
	}
	if err := l.provoke(r, left); err != nil {
		return err
	}
	if err := l.settle("waiting for outputs"); err != nil {
		return err
	}
	l.linger(grace(r.occasion))
	l.traps.disarm()
	if err := l.settle("after the last fault"); err != nil {
		return err
	}
	if err := l.alone(); err != nil {
		return err
	}
	return l.audit(l.ctx)
}

// linger reads on, with a filter running, until all traps are sprung.
func (l *lane) linger(most time.Duration) {
	ctx, cancel := context.WithTimeout(l.ctx, most)
	defer cancel()
	for l.traps.left() > 0 && ctx.Err() == nil {
		l.ensure()
		l.read(ctx, 20*time.Millisecond)
	}
}

// provoke arms the round's traps and does what makes a process come by.
func (l *lane) provoke(r round, left []*trap) (err error) {
	switch r.occasion {
	case atStart:
		l.down()
		l.traps.arm(left...)
		err = l.sendShape(rawTopic, r.shape)
	case atOpening:
		l.down()
		topic := fmt.Sprintf("n%d", len(l.raws))
		if err = l.addRaw(topic, 1); err == nil {
			err = l.sendShape("raw-ingest."+topic, r.shape)
		}
		l.traps.arm(left...)
	case onLearning:
		return l.provokeLearning(r, left)
	case onRetry:
		l.ensure()
		l.traps.arm(set(visit{before + "Register", fail, r.shape})...)
		l.traps.after(left...)
		err = l.sendShape(rawTopic, r.shape)
	case atRevoke:
		l.ensure()
		if err = l.ready(); err == nil {
			l.traps.arm(left...)
			err = l.sendShape(rawTopic, r.shape)
			l.second = l.start(1)
		}
	case atLoss:
		l.ensure()
		if err = l.ready(); err == nil {
			l.traps.arm(left...)
			l.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID, Count: 1})
			err = l.sendShape(rawTopic, r.shape)
		}
	case atRest:
		l.ensure()
		if err = l.sendShape(rawTopic, r.shape); err == nil {
			err = l.settle("before a rest")
		}
		l.traps.arm(left...)
	case atGap:
		l.down()
		if err = l.expire(); err == nil {
			l.traps.arm(left...)
			err = errors.Join(l.sendShape(rawTopic, r.shape), l.sendEach())
		}
	case atHold:
		return l.provokeHold(r, left)
	case atStop, atLeave:
		l.ensure()
		if err = l.ready(); err == nil {
			l.traps.arm(left...)
			err = l.sendShape(rawTopic, r.shape)
			l.tellToStop(r.occasion == atLeave)
		}
	default:
		l.ensure()
		if r.shape == "redelivered" {
			first := []string{"batch registered", "outputs produced"}[l.number(2)]
			l.traps.arm(set(visit{first, die, r.shape})...)
			l.traps.after(left...)
		} else {
			l.traps.arm(left...)
		}
		err = l.sendShape(rawTopic, r.shape)
	}
	return err
}

// tellToStop ends the process in order.
func (l *lane) tellToStop(forGood bool) {
	p := l.cur
	if forGood {
		close(p.leave)
	}
	p.stop()
	<-p.over
}

// ready waits until the filter has its partitions, as an output of each tells.
func (l *lane) ready() error {
	if err := l.sendEach(); err != nil {
		return err
	}
	return l.settle("getting ready")
}

// sendEach sends a message to each partition of the first raw topic.
func (l *lane) sendEach() error {
	var ms []message
	for p := range int32(partitions) {
		m := l.fresh()
		m.partition = p
		ms = append(ms, m)
	}
	return l.send(rawTopic, ms)
}

func (l *lane) sendShape(topic, shape string) error {
	if shape == "empty" {
		if err := l.sendNothing(topic); err != nil {
			return err
		}
	}
	return l.send(topic, l.batch(shape))
}

// provokeLearning makes the group's offsets be ahead of what PostgreSQL knows, or
// not ours.
func (l *lane) provokeLearning(r round, left []*trap) error {
	l.ensure()
	if err := l.ready(); err != nil {
		return err
	}
	l.down()
	if err := l.move(l.ctx, "dedup", "kept"); err != nil {
		return err
	}
	if err := l.sendShape(rawTopic, r.shape); err != nil {
		return err
	}
	if err := l.ready(); err != nil {
		return err
	}
	l.down()
	var err error
	onlyMet := !slices.ContainsFunc(left, func(t *trap) bool { return lessons[nameOfPoint(t.point)] })
	switch {
	case onlyMet && l.chance(2):
		err = l.foreign()
	case !l.emptied && l.chance(3):
		err = l.empty("dedup") // a partition that has no row any more learns from the log's start
	default:
		err = l.move(l.ctx, "kept", "dedup")
	}
	if err != nil {
		return err
	}
	l.traps.arm(left...)
	return l.sendEach()
}

// lessons are the points that are passed only where something is to be learned.
var lessons = map[string]bool{"output read back": true, "lesson laid out": true, "lesson answered": true, "Learn": true, outputFetch: true}

// foreign sets the group's offsets as another tool does, which needs the group
// empty.
func (l *lane) foreign() error {
	if err := l.forget(0); err != nil {
		return err
	}
	var os kadm.Offsets
	for p := range int32(partitions) {
		last := l.books.lasts[rawTopic][p]
		os.AddOffset(rawTopic, p, int64(l.number(int(last)+2)), -1)
	}
	rs, err := l.adm.CommitOffsets(l.ctx, group, os)
	if err = errors.Join(err, rs.Error()); err != nil {
		return fmt.Errorf("setting the group's offsets: %w", err)
	}
	return nil
}

// expire deletes records that nobody has read.
func (l *lane) expire() error {
	gone := l.keys
	rs := make([]*kgo.Record, partitions)
	for p := range rs {
		gone++
		m := message{partition: l.part(p), scope: l.scopes[0], key: fmt.Sprintf("gone%d-%d", gone, p), value: "deleted unread"}
		rs[p] = m.record(rawTopic)
	}
	if err := l.cl.ProduceSync(l.ctx, rs...).FirstErr(); err != nil {
		return fmt.Errorf("sending what is to be deleted: %w", err)
	}
	var os kadm.Offsets
	for _, r := range rs {
		os.AddOffset(rawTopic, r.Partition, r.Offset+1, -1)
	}
	deleted, err := l.adm.DeleteRecords(l.ctx, os)
	if err = errors.Join(err, deleted.Error()); err != nil {
		return fmt.Errorf("deleting records: %w", err)
	}
	return nil
}

// provokeHold makes outputs be gone that must be learned, until the traps are
// sprung. Then PostgreSQL gets back what it had: it is no fault of the filter's.
func (l *lane) provokeHold(r round, left []*trap) error {
	l.ensure()
	if err := l.ready(); err != nil {
		return err
	}
	l.down()
	if err := l.move(l.ctx, "dedup", "kept"); err != nil {
		return err
	}
	if err := errors.Join(l.sendShape(rawTopic, r.shape), l.ready()); err != nil {
		return err
	}
	l.down()
	if err := errors.Join(l.move(l.ctx, "dedup", "later"), l.move(l.ctx, "kept", "dedup"), l.emptyClean()); err != nil {
		return err
	}
	l.traps.arm(left...)
	l.linger(grace(r.occasion))
	l.down()
	return l.move(l.ctx, "later", "dedup")
}

// emptyClean deletes all outputs in clean but the last of each partition, of what
// the lane has read: a row may have it that outputs end between that and its
// transaction's marker.
func (l *lane) emptyClean() error {
	var os kadm.Offsets
	for p := range int32(partitions) {
		os.AddOffset("clean.a", p, l.lastOut[[2]any{"clean.a", p}], -1)
	}
	deleted, err := l.adm.DeleteRecords(l.ctx, os)
	if err = errors.Join(err, deleted.Error()); err != nil {
		return fmt.Errorf("emptying clean: %w", err)
	}
	l.emptied = true
	return nil
}

// forget takes a static member out of the group.
func (l *lane) forget(slot int) error {
	_, err := l.adm.LeaveGroup(l.ctx, kadm.LeaveGroup(group).InstanceIDs(processor.TransactionalID(group, slot, 0)))
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("taking process %d out of the group: %w", slot, err)
	}
	return nil
}

// down ends the process: killed, or stopped in order.
func (l *lane) down() {
	if l.cur == nil {
		return
	}
	if l.chance(2) {
		l.cur.kill()
	}
	l.cur.stop()
	l.gone(l.cur)
	l.cur = nil
}

// gone follows the end of a process. What ends one by itself, beside us, is the
// watchdog and too many rebuilds; never that another has its place.
func (l *lane) gone(p *process) {
	<-p.over
	if p.err != nil && !p.dead.Load() {
		l.world.table.ended(p.err)
		if errors.Is(p.err, processor.ErrReplaced) || strings.Contains(p.err.Error(), "schema") {
			l.report(fmt.Errorf("wrong: a process ended: %w", p.err))
		}
	}
	p.kill()
}

// alone ends the second process in order, so that nothing of it stays open, and
// takes it out of the group.
func (l *lane) alone() error {
	if l.second == nil {
		return nil
	}
	l.ensure()
	l.second.stop()
	l.gone(l.second)
	l.second = nil
	return l.forget(1)
}
