package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const areaGaps = "gaps"

// Gaps are ranges whose records get no output, of one topic and kind, but those
// that a person has passed over by a command.
type Gaps struct {
	TopicID, Kind string
	Count         int
	Offsets       int64
	LastAt        time.Time
	Age           time.Duration // of the last, by PostgreSQL's clock
}

const gapsSQL = `
select topic_id::text, kind, count(*), coalesce(sum(greatest(0, to_offset - from_offset)), 0)::bigint, max(found_at),
	extract(epoch from clock_timestamp() - max(found_at))::float8
from dedup_gap where acknowledged_at is null and kind not in ('skip', 'retired') group by 1, 2 order by 1, 2`

// AskGaps reads dedup_gap.
func AskGaps(ctx context.Context, q Querier) ([]Gaps, error) {
	rows, err := q.Query(ctx, gapsSQL)
	if err != nil {
		return nil, fmt.Errorf("reading the gaps: %w", err)
	}
	var all []Gaps
	var g Gaps
	var seconds float64
	_, err = pgx.ForEachRow(rows, []any{&g.TopicID, &g.Kind, &g.Count, &g.Offsets, &g.LastAt, &seconds}, func() error {
		g.Age = time.Duration(seconds * float64(time.Second))
		all = append(all, g)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the gaps: %w", err)
	}
	return all, nil
}

// JudgeGaps is pure. name tells a topic by its id.
func JudgeGaps(all []Gaps, name func(id string) string) (fs Findings) {
	why := map[string]string{
		"log_start": "deleted before they were read",
		"epoch":     "cut by an unclean election after they were decided",
		"no_output": "committed in Kafka without an output",
	}
	for _, g := range all {
		level := Warn
		if g.Age > fresh {
			level = OK
		}
		fs.add(level, areaGaps, "", "%s: %s of records %s in %s, the last found at %s: docs/operations.md#records-without-an-output",
			name(g.TopicID), counted(int(g.Offsets), "offset"), why[g.Kind], counted(g.Count, "gap"), g.LastAt.UTC().Format(time.RFC3339))
	}
	return fs.orOK(areaGaps, "every record that came was handled")
}
