package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSeedDrawsEverything: the same seed gives the same faults and the same
// messages, another one does not.
func TestSeedDrawsEverything(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) (all []string) {
		c := &campaign{rng: rand.New(rand.NewPCG(seed, 0))}
		for _, k := range c.bag() {
			all = append(all, k.name)
		}
		traffic := newTraffic(&stage{raw: []string{"a", "b"}}, seed)
		for range 50 {
			batch := traffic.batch(20)
			for i := range batch {
				all = append(all, batch[i].Key, string(batch[i].Value))
			}
			traffic.records(batch)
		}
		return all
	}
	first := draw(1)
	require.Equal(t, first, draw(1))
	require.NotEqual(t, first, draw(2))
	require.ElementsMatch(t, kindNames(), first[:len(kinds())])
}

// TestBadOptions: each is refused with what is allowed.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-minutes", "0"}, "above 0"},
		{[]string{"-rate", "-1"}, "1 to 5000"},
		{[]string{"-only", "kill,storm"}, "no such kind of fault; there are kill, "},
	} {
		_, err := parse(c.args)
		require.ErrorContains(t, err, c.says)
	}
	o, err := parse([]string{"-minutes", "3"})
	require.NoError(t, err)
	require.Equal(t, 3*time.Minute, o.lasts)
}

// TestMeter: a filter that grows fast is found, one that does not is not.
func TestMeter(t *testing.T) {
	t.Parallel()
	flat, grows, leaks := newMeter(nil), newMeter(nil), newMeter(nil)
	for m, of := range map[*meter]func(int) sample{
		flat:  func(int) sample { return sample{rss: 60 << 20, files: 40} },
		grows: func(n int) sample { return sample{rss: (60 + 3*n) << 20, files: 40} },
		leaks: func(n int) sample { return sample{rss: 60 << 20, files: 20 + 3*n/2} },
	} {
		m.lives[1] = lived((longLived-1)*time.Second, of)
		m.lives[1].spared = false
	}
	require.Empty(t, flat.faults())
	require.Len(t, grows.faults(), 1)
	require.Len(t, leaks.faults(), 1)
	flat.lives[1].spared = true
	require.ErrorContains(t, flat.faults()[0], "the spared filter lived", "flat, but for too short a time to tell")
}
