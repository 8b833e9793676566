package doctor

import (
	"context"
	"fmt"
	"time"
)

const areaRedis = "redis"

// Memory is what Redis tells of itself.
type Memory struct {
	Policy      string // maxmemory-policy; "": it may not be asked
	Used, Limit int64  // bytes; Limit 0: none
	Evicted     int64
	Time        time.Time
}

// Redis is asked whether it takes facts, and what it tells.
type Redis interface {
	// Check says why Redis takes no facts, as a sentence, or nil.
	Check(ctx context.Context) error
	Memory(ctx context.Context) (Memory, error)
}

// AskRedis judges Redis and reads its clock.
func AskRedis(ctx context.Context, r Redis) (Findings, Reading) {
	if err := r.Check(ctx); err != nil {
		var fs Findings
		fs.add(Fail, areaRedis, "the reason it names", "takes no facts (verdicts stay right, and hot answers are missing): %s", err)
		return fs, Reading{}
	}
	before := time.Now()
	m, err := r.Memory(ctx)
	after := time.Now()
	if err != nil {
		var fs Findings
		fs.add(Warn, areaRedis, "", "takes facts; its memory and policy may not be read: %s", err)
		return fs, Reading{}
	}
	return m.Judge(), Reading{Who: "Redis", Before: before, Theirs: m.Time, After: after}
}

// full is the part of the memory from which Redis is about to refuse writes, in
// percent.
const full = 90

// Judge is pure.
func (m *Memory) Judge() (fs Findings) {
	if m.Policy != "" && m.Policy != "noeviction" {
		fs.add(Warn, areaRedis, "", "maxmemory-policy %s: verdicts stay right, hot answers get fewer (%d keys evicted so far)", m.Policy, m.Evicted)
	}
	limit := "no maxmemory"
	if m.Limit > 0 {
		limit = "of " + bytes(m.Limit)
		if m.Policy == "noeviction" && m.Used > m.Limit/100*full {
			fs.add(Warn, areaRedis, "raise maxmemory, or set redis.ttl_cap", "%s of %s used: when it is full Redis takes no facts; verdicts stay right", bytes(m.Used), bytes(m.Limit))
		}
	}
	return fs.orOK(areaRedis, "takes facts; %s used, %s, %s", bytes(m.Used), limit, m.Policy)
}

// bytes writes a size as people say it.
func bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}
