package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/topics"
)

const (
	outputRoom   = 64 << 10 // what outputs must take above max_record_bytes
	maxBatchFrom = 90 << 20 // below the client's own limit of a request
	minBatch     = 64 << 10
)

// outputLimit is the largest batch that every output topic takes. The broker
// refuses a larger one whole, although each of its records might fit.
func (p *Processor) outputLimit(ctx context.Context) (int32, error) {
	limit := min(p.cfg.MaxRecord+outputRoom, maxBatchFrom)
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(p.cfg.Brokers...)}, p.cfg.ClientOptions...)...)
	if err != nil {
		return 0, fmt.Errorf("opening a client for topic settings: %w", err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	all, err := adm.ListTopics(ctx)
	if err != nil {
		return 0, fmt.Errorf("listing topics: %w", err)
	}
	outs := p.outputsAmong(all.Names())
	if len(outs) == 0 {
		return int32(limit), nil //nolint:gosec // bounded above
	}
	configs, err := adm.DescribeTopicConfigs(ctx, outs...)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		configs, err = describeEach(ctx, adm, outs)
	}
	if err != nil {
		return 0, fmt.Errorf("reading max.message.bytes of outputs: %w", err)
	}
	for _, c := range configs {
		if c.Err != nil {
			continue // missing: reported where the raw topic is assigned
		}
		for _, kv := range c.Configs {
			if kv.Key == "max.message.bytes" && kv.Value != nil {
				if n, err := strconv.ParseInt(*kv.Value, 10, 64); err == nil {
					limit = min(limit, n)
				}
			}
		}
	}
	return int32(max(limit, minBatch)), nil // bounded above
}

// describeEach asks for one topic after the other and leaves out those whose
// settings may not be read: kadm answers for none where one is denied. A batch
// that is then too large is halved, as for any output that refuses it.
func describeEach(ctx context.Context, adm *kadm.Client, names []string) (all kadm.ResourceConfigs, err error) {
	for _, name := range names {
		one, err := adm.DescribeTopicConfigs(ctx, name)
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// outputsAmong are the topics that any raw topic among them may write to.
func (p *Processor) outputsAmong(names []string) (outs []string) {
	var routes []*topics.Route
	for _, name := range names {
		if route, err := p.cfg.Router.Route(name); err == nil { // else reported where the topic is assigned
			routes = append(routes, route)
		}
	}
	for _, name := range names {
		if slices.ContainsFunc(routes, func(r *topics.Route) bool { return r.MayWrite(name) }) {
			outs = append(outs, name)
		}
	}
	return outs
}
