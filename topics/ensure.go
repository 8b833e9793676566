package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"dedupledger/topics/acl"
)

const (
	visibleTimeout = 15 * time.Second // until a broker knows a topic that the controller has created
	visiblePause   = 50 * time.Millisecond
)

// ReplicationError says that the cluster is too small for the replication of
// new topics.
type ReplicationError struct {
	Replication int16
	Brokers     []string
}

func (e *ReplicationError) Error() string {
	return fmt.Sprintf("topics.create.replication is %d, more than the brokers of the cluster (%s): set it to %d at most, or add brokers",
		e.Replication, strings.Join(e.Brokers, ", "), len(e.Brokers))
}

// Ensure creates what is missing of the plan's topics and compares the settings
// of all of them. It changes no topic that is there: a mismatch is reported
// with the command that repairs it, and is no error. What was created before an
// error is in the report.
func Ensure(ctx context.Context, adm *kadm.Client, p Plan) (Report, error) {
	report := Report{DryRun: p.DryRun, CheckOnly: p.CheckOnly, Pattern: p.Router.Pattern()}
	meta, err := freshMetadata(ctx, adm)
	if err != nil {
		return report, err
	}
	report.brokers, report.principal = len(meta.Brokers), p.principal()
	states, unread, err := p.states(ctx, adm, meta.Topics.Names())
	if err != nil {
		return report, err
	}
	if p.CheckOnly {
		report.Unread = unread
		return report, report.look(ctx, adm, &p, states)
	}
	if err := p.checkReplication(states, meta.Brokers); err != nil {
		return report, err
	}
	if err := report.create(ctx, adm, states); err != nil {
		return report, err
	}
	if err := describe(ctx, adm, states); err != nil {
		return report, err
	}
	report.Mismatches = p.compare(states)
	return report, nil
}

// look tells what is missing and what does not fit, and creates nothing.
func (r *Report) look(ctx context.Context, adm *kadm.Client, p *Plan, states []*topicState) error {
	var there []*topicState
	for _, t := range states {
		if !t.present {
			r.Created = append(r.Created, NewTopic{Name: t.name, Partitions: t.partitions, Replication: t.replication, Repair: p.command(t)})
			continue
		}
		there = append(there, t)
		r.Present = append(r.Present, NewTopic{Name: t.name, Partitions: t.partitions, Replication: t.replication})
	}
	if err := describe(ctx, adm, there); err != nil {
		return err
	}
	r.Settings = map[string]map[string]string{}
	for _, t := range there {
		r.Settings[t.name] = t.settings
	}
	r.Mismatches = p.compare(states)
	return nil
}

// states looks the plan's topics up among those that exist. unread are the rights
// that a partial look goes on without; topics that it cannot see are left out.
func (p *Plan) states(ctx context.Context, adm *kadm.Client, existing []string) (states []*topicState, unread acl.Rights, err error) {
	raws, err := p.raws(existing)
	if err != nil {
		return nil, nil, err
	}
	routes := make([]*Route, 0, len(raws))
	for _, raw := range raws {
		route, err := p.Router.Route(raw)
		if err != nil {
			return nil, nil, err
		}
		routes = append(routes, route)
	}
	have, err := FetchOutputs(ctx, adm, routes)
	if err != nil {
		return nil, nil, err
	}
	states = p.wanted(routes, have)
	names := make([]string, 0, len(states))
	for _, t := range states {
		names = append(names, t.name)
	}
	slices.Sort(names)
	unread = have.lacksCompare(names)
	if len(unread) > 0 && !p.Partial {
		return nil, nil, &acl.MissingError{Principal: p.principal(), Rights: unread}
	}
	for _, t := range states {
		t.unread = slices.ContainsFunc(unread, func(r acl.Right) bool { return r.Name.Text == t.name })
	}
	return slices.DeleteFunc(states, func(t *topicState) bool { return have.hidden[t.name] }), unread, nil
}

func (p *Plan) checkReplication(states []*topicState, brokers kadm.BrokerDetails) error {
	e := &ReplicationError{Replication: p.Create.Replication}
	for _, b := range brokers {
		e.Brokers = append(e.Brokers, fmt.Sprintf("%s:%d", b.Host, b.Port))
	}
	for _, t := range states {
		if !t.present && int(p.Create.Replication) > len(e.Brokers) {
			return e
		}
	}
	return nil
}

// create makes the missing topics one by one, each with its own settings.
func (r *Report) create(ctx context.Context, adm *kadm.Client, states []*topicState) error {
	var made []string
	for _, t := range states {
		if t.present {
			r.Present = append(r.Present, NewTopic{Name: t.name, Partitions: t.partitions, Replication: t.replication})
			continue
		}
		if !r.DryRun {
			err := createTopic(ctx, adm, t, r.principal)
			if errors.Is(err, kerr.TopicAlreadyExists) {
				// Another ensure was faster between our look and our call. What it
				// made is compared like any topic that was there.
				if err := r.awaitVisible(ctx, adm, []string{t.name}); err != nil {
					return err
				}
				if err := t.reload(ctx, adm); err != nil {
					return err
				}
				r.Present = append(r.Present, NewTopic{Name: t.name, Partitions: t.partitions, Replication: t.replication})
				continue
			}
			if err != nil {
				return err
			}
			made = append(made, t.name)
		}
		r.Created = append(r.Created, NewTopic{Name: t.name, Partitions: t.partitions, Replication: t.replication, Settings: t.settings})
	}
	if len(made) == 0 {
		return nil
	}
	return r.awaitVisible(ctx, adm, made)
}

func createTopic(ctx context.Context, adm *kadm.Client, t *topicState, who acl.Principal) error {
	configs := make(map[string]*string, len(t.settings))
	for k, v := range t.settings {
		configs[k] = &v
	}
	resp, err := adm.CreateTopic(ctx, t.partitions, int16(t.replication), configs, t.name) //nolint:gosec // came from an int16
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		missing := acl.Rights{{Resource: acl.Topic, Name: acl.Named(t.name), Operation: acl.Create}}
		return fmt.Errorf("creating topic %q: %w: %w", t.name, &acl.MissingError{Principal: who, Rights: missing}, err)
	case resp.ErrMessage != "":
		return fmt.Errorf("creating topic %q: %w: %s", t.name, err, resp.ErrMessage)
	default:
		return fmt.Errorf("creating topic %q: %w", t.name, err)
	}
}

// reload takes a topic that came up meanwhile as it is.
func (t *topicState) reload(ctx context.Context, adm *kadm.Client) error {
	l, err := FetchLayout(ctx, adm, t.name)
	if err != nil {
		return err
	}
	info := l.topics[t.name]
	t.present, t.partitions, t.replication, t.settings = true, info.partitions, info.replicas, nil
	return nil
}

// awaitVisible waits until all brokers answer for the topics. The controller
// has created them, each broker learns of it a moment later; a filter that asks
// a late one would exit because of missing outputs. The client sends such
// requests to its brokers in turn, N in random order and then a seed, so 2N+1
// good answers in a row have asked each of N once.
func (r *Report) awaitVisible(ctx context.Context, adm *kadm.Client, names []string) error {
	good := 0
	err := until(ctx, func() (bool, error) {
		for good <= 2*r.brokers {
			l, err := FetchLayout(ctx, adm, names...)
			if err != nil || len(l.topics) < len(names) {
				good = 0
				return false, err // most often "no leader yet": asked again
			}
			good++
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("topics %s were created, but not all brokers know them: %w", strings.Join(names, ", "), err)
	}
	return nil
}

// until repeats look, with pauses, until it is done or visibleTimeout is over;
// then it tells look's last error too.
func until(ctx context.Context, look func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, visibleTimeout, fmt.Errorf("not within %s", visibleTimeout))
	defer cancel()
	tick := time.NewTicker(visiblePause)
	defer tick.Stop()
	for {
		done, err := look()
		if done {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// describe fills in the settings of topics that were there before.
func describe(ctx context.Context, adm *kadm.Client, states []*topicState) error {
	byName := map[string]*topicState{}
	var names []string
	for _, t := range states {
		if t.present && !t.unread {
			byName[t.name] = t
			names = append(names, t.name)
		}
	}
	if len(names) == 0 {
		return nil // kadm would take no names for all
	}
	var configs kadm.ResourceConfigs
	err := until(ctx, func() (done bool, err error) {
		configs, err = adm.DescribeTopicConfigs(ctx, names...)
		// A broker that has not heard of a new topic denies it: asked again.
		late := slices.ContainsFunc(configs, func(c kadm.ResourceConfig) bool {
			return errors.Is(c.Err, kerr.UnknownTopicOrPartition)
		})
		return err != nil || !late, err
	})
	if err != nil {
		return fmt.Errorf("reading topic settings: %w", err)
	}
	for _, c := range configs {
		if c.Err != nil {
			return fmt.Errorf("reading the settings of topic %q: %w", c.Name, c.Err)
		}
		t := byName[c.Name]
		if t == nil {
			continue
		}
		t.settings = make(map[string]string, len(c.Configs))
		for _, kv := range c.Configs {
			t.settings[kv.Key] = kv.MaybeValue()
		}
	}
	return nil
}
