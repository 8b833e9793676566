package cold

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// EnsureMonths makes the present month's partitions and those of so many months
// ahead, where they are missing, and answers for how many days there are any.
// Several at once are safe: the maker holds a lock of the database.
func (l *Ledger) EnsureMonths(ctx context.Context, ahead int) (headroomDays int, err error) {
	err = l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(sent, "select dedup_months_1($1)", ahead).Scan(&headroomDays)
	})
	if err != nil {
		return 0, l.failed(ctx, "making months ahead", err)
	}
	return headroomDays, nil
}

// Maintain keeps the months made until ctx ends: now, then once every period.
// report, if not nil, gets the days of head-room each time. A failure is logged
// and tried again in the next round; the registration makes a missing month
// itself, so nothing waits for this.
func (l *Ledger) Maintain(ctx context.Context, ahead int, every time.Duration, report func(days int)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		days, err := l.EnsureMonths(ctx, ahead)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.WarnContext(ctx, "months were not made ahead; tried again later", "error", err, "in", every)
		case report != nil:
			report(days)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
