package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// extract finds the key as the filter does.
func extract(t *testing.T, value []byte) (key, code string) {
	t.Helper()
	chain, err := msgkey.NewChain(msgkey.Auto)
	require.NoError(t, err)
	found, c := chain.Extract(&msgkey.Message{
		Value: value, Header: func(string, int) ([]byte, bool) { return nil, false },
	})
	return found.Key, string(c)
}

func TestInterchangesAreWhatTheyClaim(t *testing.T) {
	t.Parallel()
	for _, p := range partners() {
		for n := range 2 { // both kinds of message
			want, value := p.make(n)
			key, code := extract(t, value)
			require.Empty(t, code, "%s", value)
			require.Equal(t, want, key)
		}
	}
	_, code := extract(t, cut(invoice(gln(0), "77002", 5)))
	require.Equal(t, "edifact.no_unz", code)
}

func TestSegmentsAreCounted(t *testing.T) {
	t.Parallel()
	for _, value := range [][]byte{invoice(gln(1), "1", 2), orders(gln(1), "1", 2)} {
		segments := strings.Split(strings.TrimSpace(string(value)), "'\n")
		n := len(segments) - 3 // UNA, UNB, UNZ
		require.Equal(t, fmt.Sprintf("UNT+%d+1", n), segments[len(segments)-2])
	}
	for _, value := range [][]byte{purchaseOrder("A", 7, 2), x12Invoice("A", 7, 2)} {
		require.Equal(t, 105, strings.IndexByte(string(value), '~'), "ISA is 106 octets with its terminator")
		segments := strings.Split(strings.TrimSpace(string(value)), "~\n")
		n := len(segments) - 4 // ISA, GS, GE, IEA
		require.Equal(t, fmt.Sprintf("SE*%d*0001", n), segments[len(segments)-3])
	}
}

func TestGLN(t *testing.T) {
	t.Parallel()
	require.Equal(t, "4098765000003", gln(0))
	for n := range 100 {
		sum := 0
		for i, d := range gln(n) {
			sum += int(d-'0') * (1 + 2*(i%2))
		}
		require.Zero(t, sum%10, gln(n))
		require.Len(t, gln(n), 13)
	}
}
