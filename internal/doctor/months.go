package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const areaMonths = "months"

// headroom is from how many days on the months are about to run out.
const headroom = 35

// Months are the partitions that are attached, by table.
type Months struct {
	Now      time.Time // PostgreSQL's clock
	Attached map[string]bool
	Pending  []string // whose detaching was interrupted
}

const monthsSQL = `
select i.inhrelid::regclass::text, i.inhdetachpending from pg_inherits i
where i.inhparent in ('public.dedup_ledger'::regclass, 'public.dedup_sighting'::regclass)`

// AskMonths lists the partitions.
func AskMonths(ctx context.Context, q Querier) (Months, error) {
	m := Months{Attached: map[string]bool{}}
	if err := q.QueryRow(ctx, "select clock_timestamp()").Scan(&m.Now); err != nil {
		return Months{}, fmt.Errorf("reading PostgreSQL's clock: %w", err)
	}
	rows, err := q.Query(ctx, monthsSQL)
	if err != nil {
		return Months{}, fmt.Errorf("listing the months: %w", err)
	}
	var table string
	var pending bool
	_, err = pgx.ForEachRow(rows, []any{&table, &pending}, func() error {
		if pending {
			m.Pending = append(m.Pending, table)
			return nil
		}
		m.Attached[table] = true
		return nil
	})
	if err != nil {
		return Months{}, fmt.Errorf("listing the months: %w", err)
	}
	return m, nil
}

// Judge is pure. ahead is months.ahead. A registration makes its own month where
// it is missing; until then a hole is a fault in the making of months.
func (m *Months) Judge(ahead int) (fs Findings) {
	for _, table := range m.Pending {
		fs.add(Fail, areaMonths, fmt.Sprintf("alter table %s detach partition %s finalize", parent(table), table), "detaching %s was interrupted: no other month can leave until it is finished", table)
	}
	now := m.Now.UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	last := first
	hole := false
	for i := 0; i <= ahead; i++ {
		month := first.AddDate(0, i, 0)
		whole := true
		for _, kind := range []string{"ledger", "sighting"} {
			if name := "dedup_" + kind + month.Format("_2006_01"); !m.Attached[name] {
				whole = false
				fs.add(m.level(i, month), areaMonths, "dedup migrate up", "%s is missing: a registration has to make it, and waits for that", name)
			}
		}
		if hole = hole || !whole; !hole {
			last = month
		}
	}
	return fs.orOK(areaMonths, "%s ... %s", first.Format("2006-01"), last.Format("2006-01"))
}

// level is a failure where the month is needed within the headroom.
func (m *Months) level(ahead int, month time.Time) Level {
	if ahead == 0 || month.Sub(m.Now) < headroom*24*time.Hour {
		return Fail
	}
	return Warn
}

func parent(month string) string { return month[:max(0, len(month)-len("_2006_01"))] }
