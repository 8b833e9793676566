package cold

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dedupledger/ledger"
)

// registerArgs is the number of parameters of dedup_register_3.
const registerArgs = 41

var register = newFunction("dedup_register_3",
	"at, seqs, refused_scopes, refused_lines, repeat_line, repeat_head, repeat_hit, repeat_counted, orphans, "+
		"hit_first, hit_expires, hit_retry, hit_drift, hit_gate, hit_topic, hit_partition, hit_epoch, hit_offset, "+
		"hit_client, hit_attempt, hit_payload, hit_canonical, hit_mode, hit_key, repeat_matched", registerArgs)

// Register registers a chunk in one statement. The errors are
// ledger.ErrClaimLost (nothing was written), ErrRejected (nothing was written;
// halving finds the record), ErrUnavailable (unknown: the same chunk gets the
// same verdicts when it comes again) and ErrSchema.
//
// Records that the ledger will not register (Result.Refused) are registered as
// INVALID in the same call.
func (l *Ledger) Register(ctx context.Context, c *ledger.Chunk) (*ledger.Answer, error) {
	refused := make(refusals, len(c.Registrations))
	// Each round refuses at least one record more; in practice there are two.
	for range ledger.MaxChunk + 1 {
		k, err := layOut(c, refused)
		if err != nil {
			return nil, fmt.Errorf("laying out a chunk: %w", err)
		}
		p, err := k.params(l.config.KeepPerKey)
		if err != nil {
			return nil, err
		}
		var a answer
		if err := l.call(ctx, register, p, a.read); err != nil {
			return nil, err
		}
		if len(a.refusedScopes) == 0 && len(a.refusedLines) == 0 {
			out, again := a.results(k)
			if err := l.number(ctx, again); err != nil {
				return nil, err
			}
			return out, nil
		}
		refused = k.wasRefused(a.refusedScopes, a.refusedLines)
	}
	return nil, fmt.Errorf("registering a chunk: %w: the ledger goes on refusing", ledger.ErrUnavailable)
}

// answer is what dedup_register_3 returns: the repeats (line, the line it is compared
// with, the row that one met or 0 where it made it), the lines that closed an
// orphan, and the rows, as they were before.
type answer struct {
	now           time.Time
	seqs          []int64
	refusedScopes []int32
	refusedLines  []int32
	line, head    []int32
	hit           []int32
	counted       []bool
	orphans       []int32
	rows          []ledger.Entry
	matched       []pgtype.Text // by repeat; nil where no alias had part
}

func (a *answer) read(r *row) {
	var (
		first, expires     []time.Time
		retry, drift       []int64
		gate               []int16
		topic              []pgtype.UUID
		partition, epoch   []pgtype.Int4
		offset             []pgtype.Int8
		client, attempt    []pgtype.Text
		payload, canonical [][]byte
		mode, key          []string
	)
	var now *time.Time
	for _, dst := range []any{
		&now, &a.seqs, &a.refusedScopes, &a.refusedLines, &a.line, &a.head, &a.hit, &a.counted, &a.orphans,
		&first, &expires, &retry, &drift, &gate, &topic, &partition, &epoch, &offset,
		&client, &attempt, &payload, &canonical, &mode, &key, &a.matched,
	} {
		r.scan(dst)
	}
	if r.err != nil {
		return
	}
	if now != nil {
		a.now = now.UTC()
	}
	a.rows = make([]ledger.Entry, len(first))
	for i := range a.rows {
		a.rows[i] = ledger.Entry{
			Origin: ledger.Origin{
				Gate: ledger.Gate(gate[i]), Topic: topic[i].Bytes, Partition: partition[i].Int32, //nolint:gosec // 1 to 3
				Epoch: epoch[i].Int32, Offset: offset[i].Int64,
				Client: client[i].String, Attempt: attempt[i].String,
			},
			HashMode:    mode[i],
			FirstSeenAt: first[i].UTC(), ExpiresAt: expires[i].UTC(),
			RetryCount: retry[i], DriftCount: drift[i],
		}
		if key != nil {
			a.rows[i].Key = key[i]
		}
		copy(a.rows[i].PayloadSHA256[:], payload[i])
		copy(a.rows[i].CanonicalSHA256[:], canonical[i])
	}
}

// results fills in what the function leaves out: lines that are missing in the
// answer were inserted, copies compare with the line that was, and counters are
// from before the chunk.
// again are the redelivered repeats, which were counted when they came first.
func (a *answer) results(k *chunk) (out *ledger.Answer, again []numbered) {
	out = &ledger.Answer{
		Now:     a.now,
		Seqs:    make([]int64, len(k.Advances)),
		Results: make([]ledger.Result, len(k.Registrations)),
	}
	for i, index := range k.advances {
		out.Seqs[index] = a.seqs[i]
	}
	rows := make(map[int32]*ledger.Entry, len(a.line)) // of repeats, by head: as met so far
	fresh := counts{}
	repeat := 0
	for i := range k.Registrations {
		line := int32(i + 1)
		switch {
		case !k.keyed(i):
			out.Results[i].Refused = k.refused[i]
		case repeat < len(a.line) && a.line[repeat] == line:
			row := a.row(k, i, repeat, rows, out.Results)
			n := numbered{&k.Registrations[i], &out.Results[i]}
			if a.matched != nil {
				n.res.Matched = a.matched[repeat].String
			}
			switch {
			case fresh.add(n, row, a.counted[repeat]):
			case n.res.Repeat > 0:
				again = append(again, n)
			}
			repeat++
		default:
			out.Results[i].Inserted = true
			inserted(&out.Results[i].Entry, &k.Registrations[i], a.now)
		}
	}
	for _, line := range a.orphans {
		out.Results[line-1].Orphan = true
	}
	fresh.number()
	return out, again
}

// row is the row that a repeat met, with the counters as they are before it.
func (a *answer) row(k *chunk, i, repeat int, rows map[int32]*ledger.Entry, results []ledger.Result) *ledger.Entry {
	head := a.head[repeat]
	if row := rows[head]; row != nil {
		return row
	}
	row := new(ledger.Entry)
	if hit := a.hit[repeat]; hit > 0 {
		row = &a.rows[hit-1]
		row.Scope = k.Registrations[i].Keys[0].Scope
		if row.Key == "" {
			row.Key = k.Registrations[i].Keys[0].Key
		}
	} else {
		*row = results[head-1].Entry // a copy: the head's own answer stays as it is
	}
	rows[head] = row
	return row
}

// inserted fills in the row that a registration has made.
func inserted(e *ledger.Entry, r *ledger.Registration, now time.Time) {
	e.Scope, e.Key = r.Keys[0].Scope, r.Keys[0].Key
	e.Origin, e.PayloadSHA256, e.HashMode = r.Origin, r.PayloadSHA256, r.HashMode
	e.FirstSeenAt, e.ExpiresAt = now, now.Add(r.Keys[0].Window.Truncate(time.Second))
	if r.HashMode != ledger.HashRaw {
		e.CanonicalSHA256 = r.CanonicalSHA256
	}
}
