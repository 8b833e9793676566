package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const redisEvery = 15 * time.Second

// watchRedis looks whether Redis takes facts, before there are any, and shows what
// it tells of its memory, where it may be asked. A policy that evicts is no
// fault: verdicts stay right, hot answers get fewer.
func (a *app) watchRedis(ctx context.Context) {
	evicted := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dedup_redis_evicted_keys", Help: "Keys that Redis evicted, from INFO."})
	memory := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dedup_redis_memory_bytes", Help: "Memory that Redis uses, from INFO."})
	a.reg.MustRegister(evicted, memory)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		policy := ""
		for tick := time.Tick(redisEvery); ; {
			if err := a.hot.Check(ctx); err != nil {
				a.Log.Debug("Redis was looked at", "error", err) // the circuit says what matters
			}
			if st, err := a.hot.Stats(ctx); err == nil {
				evicted.Set(float64(st.EvictedKeys))
				memory.Set(float64(st.UsedMemory))
				if st.Evicts() && st.Policy != policy {
					a.Log.Warn("Redis may evict facts: verdicts stay right, hot answers get fewer", "maxmemory_policy", st.Policy)
				}
				policy = st.Policy
			}
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
		}
	}()
	a.cleanup.onStop("redis watch", func(context.Context) error { cancel(); <-done; return nil })
}
