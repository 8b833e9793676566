package processor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/ledger"
)

// Which records of a later epoch show that decided ones are gone.
func TestCutBefore(t *testing.T) {
	t.Parallel()
	at := func(epoch int32, offset int64) ledger.Position { return ledger.Position{Epoch: epoch, Offset: offset} }
	for name, c := range map[string]struct {
		next, w, passed, d, record ledger.Position
		gone                       ledger.Range
	}{
		"cut with D ahead":                     {at(1, 15), at(1, 10), at(1, 10), at(1, 20), at(2, 15), ledger.Range{From: at(1, 15), To: at(2, 15)}},
		"cut below what is committed":          {at(1, 8), at(1, 10), at(1, 10), at(1, 20), at(2, 8), ledger.Range{From: at(1, 10), To: at(2, 8)}},
		"behind a marker":                      {at(1, 15), at(1, 10), at(1, 16), at(1, 20), at(3, 16), ledger.Range{From: at(1, 16), To: at(3, 16)}},
		"all of the epoch came again":          {next: at(1, 20), w: at(1, 10), passed: at(1, 10), d: at(1, 20), record: at(2, 20)},
		"the same epoch":                       {next: at(1, 15), w: at(1, 10), passed: at(1, 10), d: at(1, 20), record: at(1, 15)},
		"nothing decided ahead":                {next: at(1, 10), w: at(1, 10), passed: at(1, 10), d: at(1, 10), record: at(2, 9)},
		"a marker of the later epoch was read": {next: at(1, 15), w: at(1, 10), passed: at(2, 16), d: at(1, 20), record: at(2, 16)},
	} {
		p := &part{next: c.next, w: c.w, passed: c.passed, d: c.d}
		gone, cut := p.cutBefore(c.record)
		require.Equal(t, c.gone, gone, name)
		require.Equal(t, c.gone != ledger.Range{}, cut, name)
	}
}
