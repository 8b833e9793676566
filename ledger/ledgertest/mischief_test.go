package ledgertest_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// mischief is done to a Redis behind the product's back, again and again.
type mischief func(ctx context.Context, raw *redis.Client, rng *rand.Rand)

// disturb does it at random moments until the test ends.
func disturb(t *testing.T, raw *redis.Client, do mischief) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			do(ctx, raw, rng)
			select {
			case <-time.After(time.Duration(rng.IntN(60)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}

func empty(ctx context.Context, raw *redis.Client, _ *rand.Rand) { raw.FlushAll(ctx) }

// some answers up to n keys of the product.
func some(ctx context.Context, raw *redis.Client, rng *rand.Rand, n int64) []string {
	keys, _, err := raw.Scan(ctx, rng.Uint64N(1<<16), prefix+"*", n).Result()
	if err != nil {
		return nil
	}
	return keys
}

// stale writes back what a key held a while ago, for an hour: facts of rows that
// expired since, as after a failover to an old replica.
func stale() mischief {
	held := map[string]string{}
	return func(ctx context.Context, raw *redis.Client, rng *rand.Rand) {
		for _, key := range some(ctx, raw, rng, 500) {
			if value, err := raw.Get(ctx, key).Result(); err == nil && len(held) < 5000 {
				held[key] = value
			}
		}
		_, _ = raw.Pipelined(ctx, func(p redis.Pipeliner) error {
			for key, value := range held {
				p.Set(ctx, key, value, time.Hour)
			}
			return nil
		})
	}
}

// lie writes garbage, values of another type, and other rows' facts.
func lie(ctx context.Context, raw *redis.Client, rng *rand.Rand) {
	keys := some(ctx, raw, rng, 300)
	if len(keys) < 2 {
		return
	}
	fact, err := raw.Get(ctx, keys[0]).Result()
	_, _ = raw.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys[1:] {
			switch rng.IntN(6) {
			case 0:
				p.Set(ctx, key, "garbage", 0)
			case 1:
				p.Del(ctx, key)
				p.LPush(ctx, key, "a list")
			case 2:
				p.Set(ctx, key, string(make([]byte, 88)), time.Hour)
			default:
				if err == nil {
					p.Set(ctx, key, fact, time.Hour)
				}
			}
		}
		return nil
	})
}

// delay is a TCP proxy to addr that holds back what the server answers.
func delay(t *testing.T, addr string, by time.Duration) string {
	t.Helper()
	listen, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		require.NoError(t, listen.Close())
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := listen.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { relay(ctx, client, addr, by) })
		}
	})
	return listen.Addr().String()
}

func relay(ctx context.Context, client net.Conn, addr string, by time.Duration) {
	server, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		_ = client.Close()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(client.Close(), server.Close()) })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		_, _ = io.Copy(server, client)
	})
	wg.Go(func() {
		defer cancel()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-time.After(by):
			case <-ctx.Done():
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	wg.Wait()
}
