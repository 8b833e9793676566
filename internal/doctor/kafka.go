package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const areaKafka = "kafka"

// trialTimeout ends the transaction where the doctor dies in the middle of it.
const trialTimeout = 10 * time.Second

// Cluster is what the brokers tell of themselves.
type Cluster struct {
	Brokers  int
	Versions []string // guessed from the requests each knows; distinct, sorted
	Silent   []string // brokers that are named and did not answer
	Trial    Trial
}

// Trial is the transaction that was tried.
type Trial struct {
	Topic string // "": there was no clean topic to try it on
	Err   error
	Clock Reading // of the transaction's coordinator; zero where it tells none
}

// AskCluster asks each broker what it is.
func AskCluster(ctx context.Context, adm *kadm.Client) (Cluster, error) {
	brokers, err := adm.ListBrokers(ctx)
	if err != nil {
		return Cluster{}, fmt.Errorf("listing the brokers: %w", err)
	}
	c := Cluster{Brokers: len(brokers)}
	versions, err := adm.ApiVersions(ctx)
	if err != nil {
		return Cluster{}, fmt.Errorf("asking the brokers for their versions: %w", err)
	}
	versions.Each(func(v kadm.BrokerApiVersions) {
		if v.Err != nil {
			c.Silent = append(c.Silent, fmt.Sprintf("broker %d: %s", v.NodeID, v.Err))
			return
		}
		c.Versions = append(c.Versions, strings.TrimPrefix(v.VersionGuess(), "v"))
	})
	slices.Sort(c.Versions)
	slices.Sort(c.Silent)
	c.Versions = slices.Compact(c.Versions)
	return c, nil
}

// Try begins a transaction, produces one empty record to partition 0 of a clean
// topic and aborts it, under a transactional id of the group's own: a reader with
// read_committed never sees it.
func Try(ctx context.Context, opts []kgo.Opt, group, topic string) Trial {
	t := Trial{Topic: topic}
	if topic == "" {
		return t
	}
	id := group + "-doctor"
	cl, err := kgo.NewClient(append(slices.Clone(opts), kgo.TransactionalID(id), kgo.TransactionTimeout(trialTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))...)
	if err != nil {
		t.Err = fmt.Errorf("opening a producer: %w", err)
		return t
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Err = fmt.Errorf("beginning: %w", err)
		return t
	}
	before := time.Now()
	err = cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Headers: []kgo.RecordHeader{{Key: "dedup-doctor", Value: []byte("aborted")}}}).FirstErr()
	if err != nil {
		t.Err = fmt.Errorf("producing: %w", err)
	} else {
		t.Clock = coordinatorClock(ctx, kadm.NewClient(cl), id, before)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTimeout)
	defer cancel()
	if err := cl.EndTransaction(end, kgo.TryAbort); err != nil && t.Err == nil {
		t.Err = fmt.Errorf("aborting: %w", err)
	}
	return t
}

// coordinatorClock reads the coordinator's clock off the transaction's start:
// Kafka has no other way to tell the time. Not knowing it is no fault.
func coordinatorClock(ctx context.Context, adm *kadm.Client, id string, before time.Time) Reading {
	described, err := adm.DescribeTransactions(ctx, id)
	after := time.Now()
	if err != nil {
		return Reading{}
	}
	t, err := described.On(id, nil)
	if err != nil || t.StartTimestamp <= 0 {
		return Reading{}
	}
	return Reading{Who: "Kafka", Before: before.Truncate(time.Millisecond), Theirs: time.UnixMilli(t.StartTimestamp), After: after}
}

// oldestKafka is the first major version that is tested.
const oldestKafka = 4

// denied is the broker's word that a right is missing, or nil.
func denied(err error) error {
	for _, code := range []error{kerr.TransactionalIDAuthorizationFailed, kerr.TopicAuthorizationFailed} {
		if errors.Is(err, code) {
			return code
		}
	}
	return nil
}

// Judge is pure. explain gives an error of the client its sentence.
func (c *Cluster) Judge(explain func(error) error) (fs Findings) {
	for _, s := range c.Silent {
		fs.add(Fail, areaKafka, "start it, or take it out of the cluster", "%s does not answer", s)
	}
	if len(c.Versions) > 1 {
		fs.add(Warn, areaKafka, "finish the upgrade of the cluster", "brokers of different versions: %s", strings.Join(c.Versions, ", "))
	}
	for _, v := range c.Versions {
		major := 0
		if _, err := fmt.Sscanf(v, "%d.", &major); err == nil && major < oldestKafka {
			fs.add(Fail, areaKafka, "upgrade the brokers", "version %s: Kafka %d.0 or later is needed", v, oldestKafka)
		}
	}
	transactions := "no transaction was tried: there is no clean topic yet"
	switch {
	case c.Trial.Topic == "":
	case errors.Is(c.Trial.Err, kerr.ProducerFenced), errors.Is(c.Trial.Err, kerr.InvalidProducerEpoch):
		fs.add(Warn, areaKafka, "run it again", "another doctor tried a transaction at the same moment")
	case denied(c.Trial.Err) != nil:
		fs.add(Fail, areaKafka, "dedup doctor --acls", "transactions do not work (tried: begin, produce, abort on %s): %s", c.Trial.Topic, denied(c.Trial.Err))
	case c.Trial.Err != nil:
		fs.add(Fail, areaKafka, "the reason it names; the brokers' logs", "transactions do not work (tried: begin, produce, abort on %s): %s", c.Trial.Topic, explain(c.Trial.Err))
	default:
		transactions = "transactions work (tried: begin, produce, abort on " + c.Trial.Topic + ")"
	}
	return fs.orOK(areaKafka, "%s, %s; %s", counted(c.Brokers, "broker"), strings.Join(c.Versions, ", "), transactions)
}
