package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/setting"
	"dedupledger/ledger"
)

// book stands for PostgreSQL: keys are known once they are entered.
type book struct {
	rows    map[string][32]byte
	acts    []ledger.Action
	calls   int
	refuses func(call int) error
	gone    bool // months are
}

func (b *book) Import(_ context.Context, in *ledger.Import) ([]ledger.Imported, error) {
	b.calls++
	if b.refuses != nil {
		if err := b.refuses(b.calls); err != nil {
			return nil, err
		}
	}
	rows := b.rows
	if in.DryRun {
		rows = maps.Clone(b.rows)
	}
	var out []ledger.Imported
	for _, l := range in.Lines {
		was, known := rows[l.Key.Scope+" "+l.Key.Key]
		switch {
		case b.gone:
			out = append(out, ledger.MonthGone)
		case l.FirstSeenAt.Year() < 2026:
			out = append(out, ledger.Over)
		case l.FirstSeenAt.Year() > 2026:
			out = append(out, ledger.Future)
		case known && was == l.PayloadSHA256:
			out = append(out, ledger.Known)
		case known:
			out = append(out, ledger.KnownOtherHash)
		default:
			rows[l.Key.Scope+" "+l.Key.Key] = l.PayloadSHA256
			out = append(out, ledger.Entered)
		}
	}
	return out, nil
}

func (b *book) Settle(_ context.Context, a ledger.Action, changes []ledger.Change) error {
	b.acts = append(b.acts, a)
	if len(changes) > 0 {
		return errors.New("an import changes no position")
	}
	return nil
}

func order(t *testing.T, b *book, text string, bad *[]string) *Order {
	t.Helper()
	return &Order{
		Terms: terms(t), In: strings.NewReader(text), Size: int64(len(text)), Actor: "maria", Reason: "old cache", Ledger: b,
		Say: func(string, ...any) {}, Bad: func(p setting.Problem) { *bad = append(*bad, p.Error()) },
	}
}

// some lines of few keys: so that keys come twice, in a chunk and in another one.
func some(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString(csvHeader)
	for range n {
		first := []string{"2026-11-02", "2026-11-02", "2026-11-02", "2025-01-01", "2027-01-01"}[rng.IntN(5)]
		hash := hashA
		if rng.IntN(10) == 0 {
			hash = strings.Repeat("0", 64)
		}
		key := fmt.Sprintf("rest:%d", rng.IntN(n/2))
		if rng.IntN(50) == 0 {
			key = ""
		}
		b.WriteString(csvLine("acme:rest", key, hash, first, ""))
	}
	return b.String()
}

// TestADryRunCountsAsTheImport does, and changes nothing; given again, nothing is
// imported. Each line is counted once.
func TestADryRunCountsAsTheImport(t *testing.T) {
	t.Parallel()
	b := &book{rows: map[string][32]byte{"acme:rest rest:7": {}}}
	var counts []Report
	for _, dry := range []bool{true, false, true, false} {
		var bad []string
		o := order(t, b, some(3000), &bad)
		o.DryRun = dry
		rows := len(b.rows)
		r, err := Run(t.Context(), o)
		require.NoError(t, err)
		if dry {
			require.Len(t, b.rows, rows)
		}
		require.Equal(t, int64(3000), r.Lines)
		require.Equal(t, r.Lines, r.Imported+r.Known+r.Expired+r.Future+r.Bad)
		require.Len(t, bad, badShown)
		require.Greater(t, r.Bad, int64(badShown))
		require.NotEmpty(t, r.SHA256)
		r.Seconds, r.PerSecond, r.DryRun = 0, 0, false
		counts = append(counts, *r)
	}
	require.Equal(t, counts[0], counts[1])
	require.Equal(t, counts[2], counts[3])
	require.Positive(t, counts[0].Imported)
	require.Positive(t, counts[0].OtherHash)
	require.Zero(t, counts[2].Imported)
	require.Len(t, b.acts, 4, "two imports, of which each is begun and done")
	require.Equal(t, "maria import old.csv old cache", strings.Join([]string{b.acts[1].Actor, b.acts[1].Kind, b.acts[1].Place, b.acts[1].Reason}, " "))
	detail, err := json.Marshal(b.acts[1].Detail)
	require.NoError(t, err)
	require.Contains(t, string(detail), `"state":"done"`)
	require.Contains(t, string(detail), fmt.Sprintf(`"imported":%d`, counts[1].Imported))
}

// TestWhatEndsAnImport: what was entered is told and recorded, and the file may be
// given again.
func TestWhatEndsAnImport(t *testing.T) {
	t.Parallel()
	text := some(2200)
	down := errors.New("down")
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name    string
		ctx     context.Context //nolint:containedctx // of one case
		refuses func(int) error
		in      io.Reader
		says    string
		state   string
	}{
		{"PostgreSQL goes", t.Context(), func(call int) error {
			if call == 3 {
				return down
			}
			return nil
		}, nil, "old.csv, after 1000 lines: down", stateFailed},
		{"Ctrl-C", ctx, func(call int) error {
			if call == 3 {
				cancel()
				return ctx.Err()
			}
			return nil
		}, nil, "interrupted after 1000 lines: import the file again", stateInterrupted},
		{"the file breaks off", t.Context(), nil, io.MultiReader(strings.NewReader(text), broken{}), "old.csv: reading: io: read/write on closed pipe", stateFailed},
	} {
		b := &book{rows: map[string][32]byte{}, refuses: c.refuses}
		var bad []string
		o := order(t, b, text, &bad)
		if c.in != nil {
			o.In = c.in
		}
		r, err := Run(c.ctx, o)
		require.ErrorContains(t, err, c.says, c.name)
		require.Equal(t, c.state, r.State)
		require.Empty(t, r.SHA256)
		require.Len(t, b.rows, int(r.Imported))
		require.Len(t, b.acts, 2)

		b.refuses = nil
		again, err := Run(t.Context(), order(t, b, text, &bad))
		require.NoError(t, err)
		whole := &book{rows: map[string][32]byte{}}
		all, err := Run(t.Context(), order(t, whole, text, &bad))
		require.NoError(t, err)
		require.Equal(t, all.Imported, r.Imported+again.Imported, c.name)
		require.Equal(t, whole.rows, b.rows)
	}
}

func TestAMonthThatIsGone(t *testing.T) {
	t.Parallel()
	var bad []string
	r, err := Run(t.Context(), order(t, &book{gone: true}, csvHeader+csvLine("acme:as2", "k", hashA, "2026-03-09", "400d"), &bad))
	require.NoError(t, err)
	require.Equal(t, int64(1), r.Bad)
	require.Equal(t, []string{`old.csv:2: first_seen: "2026-03-09T00:00:00Z": its month was taken out of the ledger: attach dedup_ledger_2026_03 again, or drop it`}, bad)
}

// TestNothingIsEnteredUnrecorded: where the act cannot be written down.
func TestNothingIsEnteredUnrecorded(t *testing.T) {
	t.Parallel()
	b := &unrecorded{}
	var bad []string
	o := order(t, nil, some(10), &bad)
	o.Ledger = b
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "recording the import: no right")
	require.Zero(t, b.calls)
}

type unrecorded struct{ book }

func (*unrecorded) Settle(context.Context, ledger.Action, []ledger.Change) error {
	return errors.New("no right")
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := Report{File: "old.csv", Lines: 10, Imported: 3, Known: 2, OtherHash: 1, Expired: 2, Future: 1, Bad: 2, Opaque: 4, DryRun: true, Seconds: 0.25, PerSecond: 40}
	require.NoError(t, r.Print(&b))
	require.Equal(t, `old.csv: 10 lines in 0.2 s, 40/s
  imported             3  their copies are duplicates from now on
  known                2  the ledger has the key; left alone
                       1  of them with another payload hash
  expired              2  their windows are over; left out
  future               1  left out
  bad                  2  left out; the first ones are named on stderr
4 keys are none that an extractor makes: they became hdr:..., which copies have that bring the same header dedup-key
dry run: nothing was changed
`, b.String())
}

func TestKeptNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a?b?", kept("a\xffb\x00"))
	require.Equal(t, strings.Repeat("ü", badKept), kept(strings.Repeat("ü", 300)))
}

// FuzzLines: whatever stands in a file, a line is read or named, and none stops the
// others.
func FuzzLines(f *testing.F) {
	f.Add([]byte(csvLine("acme:as2", "k", hashA, day2, "30d")), true)
	f.Add([]byte(`{"scope":"acme:as2","key":"k","sha256":"`+hashA+`","first_seen":"2026-11-02"}`), false)
	f.Add([]byte("\"a\n\"b"), true)
	f.Fuzz(func(t *testing.T, text []byte, csv bool) {
		good, head := csvLine("acme:as2", "good", hashA, day2, ""), csvHeader
		if !csv {
			good = `{"scope":"acme:as2","key":"good","sha256":"` + hashA + `","first_seen":"2026-11-02"}` + "\n"
			head = good
		}
		lines, _ := all(t, terms(t), head+string(text)+"\n"+good)
		require.NotEmpty(t, lines)
		require.Equal(t, "hdr:good", lines[len(lines)-1].Key.Key)
		for _, l := range lines {
			require.LessOrEqual(t, len(l.Key.Key), 200)
			require.False(t, l.FirstSeenAt.IsZero())
			require.Positive(t, l.Key.Window)
		}
	})
}
