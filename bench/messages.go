package main

import (
	"fmt"
	"strconv"

	"dedupledger/topics"
)

const (
	resendEvery = 10
	// resendAfter is how many messages behind its original a resend comes: a
	// multiple of scopes, so that it has the same scope, and no multiple of
	// resendEvery, so that no resend is of a resend.
	resendAfter = 5016
)

// original tells which message number n has the content of.
func original(n int64) int64 {
	if n%resendEvery == resendEvery-1 && n >= resendAfter {
		return n - resendAfter
	}
	return n
}

// resends is how many of the first n messages are resends.
func resends(n int64) int64 {
	before := func(m int64) int64 { return m / resendEvery } // resend numbers below m
	return max(0, before(n)-before(resendAfter))
}

// flow is a scope with its place: by the record key, as producers choose it.
type flow struct {
	scope     string // record key, tenant:flow
	sender    string // GLN of the tenant's partner
	partition int32
}

// flows are the scopes, the first tenants whose keys fall into partitions of
// their own. A ledger scope has one writer at a time, so scopes sharing a
// partition would measure the luck of a hash.
func flows() []flow {
	var all []flow
	taken := map[int32]bool{}
	for tenant := 0; len(all) < scopes; tenant++ {
		f := flow{scope: fmt.Sprintf("tenant%d:edifact", tenant), sender: fmt.Sprintf("40987650%05d", tenant)}
		f.partition = topics.Partition([]byte(f.scope), 0, 0, partitions)
		if !taken[f.partition] {
			taken[f.partition] = true
			all = append(all, f)
		}
	}
	return all
}

// placed is where message n lies: its flow, and the offset in its partition,
// which it has to itself.
func placed(n int64) (index int, offset int64) { return int(n % scopes), n / scopes }

// value is an EDIFACT interchange of valueSize bytes. Its control reference
// (0020, up to 14 characters) is the original's number; its lines look like
// orders and compress like them.
func value(f *flow, n int64) []byte {
	n = original(n)
	b := make([]byte, 0, valueSize)
	b = fmt.Appendf(b, "UNA:+.? 'UNB+UNOC:3+%s:14+4012345000009:14+261129:1030+B%013d'", f.sender, n)
	b = fmt.Appendf(b, "UNH+1+ORDERS:D:96A:UN:EAN008'BGM+220+%d+9'DTM+137:20261129:102'NAD+BY+%s::9'", n, f.sender)
	tail := fmt.Sprintf("UNS+S'UNT+12+1'UNZ+1+B%013d'", n)
	const fill = "FTX+AAI+++"
	random := mix(uint64(n))
	for line := 1; ; line++ {
		random = mix(random)
		l := fmt.Sprintf("LIN+%d++40123450%05d:EN'QTY+21:%d'PRI+AAA:%d.%02d'",
			line, random%100_000, random>>20%1000, random>>32%10_000, random>>48%100)
		if len(b)+len(l)+len(fill)+1+len(tail) > valueSize {
			break
		}
		b = append(b, l...)
	}
	b = append(b, fill...)
	for len(b)+1+len(tail) < valueSize {
		random = mix(random)
		text := strconv.FormatUint(random, 36)
		b = append(b, text[:min(len(text), valueSize-len(b)-1-len(tail))]...)
	}
	return append(append(b, '\''), tail...)
}

// mix is a step of splitmix64: the same content in every run.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
