package cold

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dedupledger/ledger"
)

const witnessSQL = `
update dedup_meta set witness_kafka = witness_kafka + $1, witness_api = witness_api + $2,
                      witness_last_at = clock_timestamp(), witness_last = $3`

// CountWitnesses adds to the ledger's count of live facts in Redis that
// PostgreSQL had no row of, per gate of what was registered instead, and
// remembers the last.
func (l *Ledger) CountWitnesses(ctx context.Context, witnesses []ledger.Witness) error {
	if len(witnesses) == 0 {
		return nil
	}
	var kafka, api int64
	for i := range witnesses {
		if witnesses[i].Fact.Origin.Gate == ledger.GateAPI {
			api++
		} else {
			kafka++
		}
	}
	last := describe(&witnesses[len(witnesses)-1])
	err := l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		_, err := conn.Exec(sent, witnessSQL, kafka, api, last)
		return err
	})
	if err != nil {
		return l.failed(ctx, "counting witnesses", err)
	}
	return nil
}

// describe names where the forgotten message came from, as dedup_ledger_v does.
func describe(w *ledger.Witness) string {
	seen := w.WasSeen.UTC().Format(time.RFC3339)
	if w.Was.Gate == ledger.GateAPI {
		return fmt.Sprintf("api:%s/%s seen %s", w.Was.Client, w.Was.Attempt, seen)
	}
	if w.Was.Gate == ledger.GateImport {
		return "import seen " + seen
	}
	return fmt.Sprintf("kafka:%s/%d/%d/%d seen %s", w.Was.Topic, w.Was.Partition, w.Was.Epoch, w.Was.Offset, seen)
}
