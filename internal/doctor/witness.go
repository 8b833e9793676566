package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const areaWitness = "witness"

// fresh is for how long the last disagreement is a warning.
const fresh = 30 * 24 * time.Hour

// Witnesses are live facts that Redis held and PostgreSQL had no row of, as
// counted in dedup_meta.
type Witnesses struct {
	Kafka, API int64
	LastAt     *time.Time
	Last       *string // kafka:topic id/partition/epoch/offset seen time
	Now        time.Time
}

// AskWitnesses reads dedup_meta.
func AskWitnesses(ctx context.Context, q Querier) (w Witnesses, err error) {
	err = q.QueryRow(ctx, "select witness_kafka, witness_api, witness_last_at, witness_last, clock_timestamp() from dedup_meta").
		Scan(&w.Kafka, &w.API, &w.LastAt, &w.Last, &w.Now)
	if err != nil {
		return Witnesses{}, fmt.Errorf("reading the witnesses: %w", err)
	}
	return w, nil
}

// Judge is pure. name tells a topic by its id.
func (w *Witnesses) Judge(name func(id string) string) (fs Findings) {
	n := w.Kafka + w.API
	if n == 0 || w.LastAt == nil || w.Last == nil {
		return fs.orOK(areaWitness, "Redis never knew of a message that PostgreSQL did not")
	}
	at := w.LastAt.UTC().Format(time.RFC3339)
	if w.Now.Sub(*w.LastAt) > fresh {
		return fs.orOK(areaWitness, "%s without a row in PostgreSQL, the last long ago, at %s", counted(int(n), "live fact"), at)
	}
	fs.add(Warn, areaWitness, "", "Redis held live facts of %s without a row in PostgreSQL, last %s at %s: did it lose commits? docs/operations.md#redis-is-down-empty-or-full",
		counted(int(n), "message"), w.place(name), at)
	return fs
}

// place is topic/partition/offset of what was remembered last.
func (w *Witnesses) place(name func(id string) string) string {
	text, kafka := strings.CutPrefix(*w.Last, "kafka:")
	place, _, _ := strings.Cut(text, " seen ")
	parts := strings.Split(place, "/")
	if !kafka || len(parts) != 4 {
		return place
	}
	return name(parts[0]) + "/" + parts[1] + "/" + parts[3]
}
