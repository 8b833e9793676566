package hot

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Stats is what Redis tells of itself, in a Cluster summed over its masters.
type Stats struct {
	EvictedKeys int64
	UsedMemory  int64     // bytes
	MaxMemory   int64     // bytes, 0: no limit
	Time        time.Time // of Redis's clock; of a Cluster one master's; zero where it tells none
	Policy      string    // maxmemory-policy; of a Cluster one that evicts, if any does
}

// Evicts reports whether Redis may throw facts away to make room. Verdicts stay
// right; the hot tier answers less.
func (s Stats) Evicts() bool { return s.Policy != "" && s.Policy != "noeviction" }

// Stats asks by INFO. Hosted services and ACLs may refuse that: an error here
// says nothing about facts.
func (h *Hot) Stats(ctx context.Context) (Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var mu sync.Mutex
	var sum Stats
	add := func(ctx context.Context, c *redis.Client) error {
		// Two calls, because servers before 7.0 take one section at a time.
		for _, section := range []string{"memory", "stats", "server"} {
			text, err := c.Info(ctx, section).Result()
			if err != nil {
				return fmt.Errorf("ask Redis for INFO %s: %w", section, err)
			}
			mu.Lock()
			sum.add(text)
			mu.Unlock()
		}
		return nil
	}
	var err error
	switch c := h.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, add)
	case *redis.Client:
		err = add(ctx, c)
	default:
		err = fmt.Errorf("ask Redis for INFO: client of type %T", c)
	}
	if err != nil {
		return Stats{}, err
	}
	return sum, nil
}

// add takes the lines "name:value" of an INFO reply; what it does not know it
// leaves.
func (s *Stats) add(info string) {
	lines := bufio.NewScanner(strings.NewReader(info))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "evicted_keys":
			s.EvictedKeys += number(value)
		case "used_memory":
			s.UsedMemory += number(value)
		case "maxmemory":
			s.MaxMemory += number(value)
		case "server_time_usec":
			s.Time = time.UnixMicro(number(value))
		case "maxmemory_policy":
			if !s.Evicts() {
				s.Policy = value
			}
		}
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
