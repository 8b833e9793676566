package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/integration/laws"
)

// generations tell raw records apart that have one place after the other: of a
// topic that was made again, or of a log that was cut. A later generation has a
// name of its own, which no topic can have: raw-ingest.as2~1.
type generations struct {
	mu sync.Mutex
	of map[laws.Place][]generation // by raw partition; those behind the first
	n  int
}

// generation is one that is not the first.
type generation struct {
	name   string
	from   int64                // its first offset
	above  int32                // leader epoch: its records have a later one
	border map[laws.Place]int64 // by output partition: its outputs lie at or behind
}

func partitionOf(topic string, partition int32) laws.Place {
	return laws.Place{Topic: topic, Partition: partition}
}

// begin a generation, once nothing of the one before comes any more: whoever
// follows raw has read it to its end, and no filter runs that has any of it.
func (g *generations) begin(at laws.Place, next generation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[laws.Place][]generation{}
	}
	g.n++
	next.name, next.border = fmt.Sprintf("%s~%d", at.Topic, g.n), maps.Clone(next.border)
	g.of[at] = append(g.of[at], next)
}

// now is the name of a raw partition's present generation.
func (g *generations) now(topic string, partition int32) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if all := g.of[partitionOf(topic, partition)]; len(all) > 0 {
		return all[len(all)-1].name
	}
	return topic
}

// names are all names of a raw topic's partitions.
func (g *generations) names(topic string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := []string{topic}
	for at, all := range g.of {
		for _, one := range all {
			if at.Topic == topic {
				names = append(names, one.name)
			}
		}
	}
	return names
}

// raw is the place of a raw record.
func (g *generations) raw(r *kgo.Record) laws.Place {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := laws.PlaceOf(r)
	for _, one := range slices.Backward(g.of[partitionOf(p.Topic, p.Partition)]) {
		if p.Offset >= one.from && r.LeaderEpoch > one.above {
			p.Topic = one.name
			return p
		}
	}
	return p
}

// origin is the raw place that an output means by its header.
func (g *generations) origin(told, out laws.Place) laws.Place {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range slices.Backward(g.of[partitionOf(told.Topic, told.Partition)]) {
		if told.Offset >= one.from && out.Offset >= one.border[partitionOf(out.Topic, out.Partition)] {
			told.Topic = one.name
			return told
		}
	}
	return told
}

// named are all places that the words of one place may mean, the latest first.
func (g *generations) named(told laws.Place) (all []laws.Place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range slices.Backward(g.of[partitionOf(told.Topic, told.Partition)]) {
		all = append(all, laws.Place{Topic: one.name, Partition: told.Partition, Offset: told.Offset})
	}
	return append(all, told)
}
