package topics

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"dedupledger/topics/acl"
)

// Misfits are the duplicates and dead-letter topics that have fewer partitions
// than a raw topic of the routes (clean topics: Count and Grow), and the outputs
// that have, where their settings may be read, a max.message.bytes below
// maxRecordBytes + Overhead, each with its repair. Brokers as host:port, for the
// repairs. An error is of the asking, beside what was found without it.
func (l *Layout) Misfits(ctx context.Context, adm *kadm.Client, brokers []string, maxRecordBytes int64, routes ...*Route) ([]Mismatch, error) {
	raws, outs := l.pairs(routes)
	err := l.sizes(ctx, adm, outs)
	c := comparison{plan: &Plan{MaxRecordBytes: maxRecordBytes, Bootstrap: strings.Join(brokers, ",")}}
	for _, out := range outs {
		if out.role != roleClean {
			c.fewer(out, raws)
		}
		c.size(out)
	}
	return c.found, err
}

// pairs are the raw topics, by name, and their outputs that are there, sorted.
func (l *Layout) pairs(routes []*Route) (raws map[string]*topicState, outs []*topicState) {
	raws = map[string]*topicState{}
	byName := map[string]*topicState{}
	for _, route := range routes {
		raws[route.Raw] = &topicState{name: route.Raw, partitions: l.Count(route.Raw)}
		for _, name := range l.Outputs(route) {
			if byName[name] == nil {
				r := roleDuplicates // or dead-letter: they are compared alike
				if name == route.Clean {
					r = roleClean
				}
				byName[name] = &topicState{name: name, role: r, present: true, partitions: l.Count(name)}
				outs = append(outs, byName[name])
			}
			byName[name].raw = append(byName[name].raw, route.Raw)
		}
	}
	slices.SortFunc(outs, func(a, b *topicState) int { return strings.Compare(a.name, b.name) })
	return raws, outs
}

// sizes fills in the settings of those topics whose settings may be read.
func (l *Layout) sizes(ctx context.Context, adm *kadm.Client, states []*topicState) error {
	byName := map[string]*topicState{}
	var names []string
	for _, t := range states {
		if right := (acl.Right{Resource: acl.Topic, Name: acl.Named(t.name), Operation: acl.DescribeConfigs}); len(l.Lacks(acl.Rights{right})) == 0 {
			byName[t.name] = t
			names = append(names, t.name)
		}
	}
	if len(names) == 0 {
		return nil // kadm would take no names for all
	}
	configs, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return fmt.Errorf("reading max.message.bytes of outputs: %w", err)
	}
	for _, c := range configs {
		for _, kv := range c.Configs {
			if t := byName[c.Name]; t != nil && c.Err == nil && kv.Key == cfgMaxBytes {
				t.settings = map[string]string{cfgMaxBytes: kv.MaybeValue()}
			}
		}
	}
	return nil
}
