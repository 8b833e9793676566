package importer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/rules"
	"dedupledger/ledger"
)

// BenchmarkRead reads chunks of 500 lines of both forms.
func BenchmarkRead(b *testing.B) {
	set, err := rules.New(nil, true)
	require.NoError(b, err)
	terms := Terms{Name: "old", Rules: set, Longest: rules.MaxWindow}
	var table, lines strings.Builder
	table.WriteString(csvHeader)
	for i := range ledger.MaxChunk {
		key := fmt.Sprintf("edifact:4098765000014:14/4012345000023:14/%d", i)
		table.WriteString(csvLine("acme:as2", key, hashA, "2026-11-02T09:30:00Z", ""))
		fmt.Fprintf(&lines, `{"scope":"acme:as2","key":%q,"sha256":%q,"first_seen":"2026-11-02T09:30:00Z"}`+"\n", key, hashA)
	}
	for name, text := range map[string]string{"csv": table.String(), "jsonl": lines.String()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			began := time.Now()
			for b.Loop() {
				r, err := open(strings.NewReader(text), &terms)
				require.NoError(b, err)
				require.Len(b, r.chunk().lines, ledger.MaxChunk)
			}
			b.ReportMetric(float64(b.N*ledger.MaxChunk)/time.Since(began).Seconds(), "lines/s")
		})
	}
}
