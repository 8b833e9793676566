package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Rules are the rules that make keys: of this configuration, the active ones, and
// those of the processes at work.
type Rules struct {
	Ours      string // fingerprint of the configuration
	Active    string // "" where none is
	Refused   string // why a process with this configuration does not filter, or ""
	Empty     bool   // the ledger has no keys yet
	Processes map[string]int
	Observing []string // rules that are not enforced, in words
}

// Processes name themselves by slot and rules; those that wait for their rules have
// no slot yet and are told apart by their addresses.
const askProcesses = `
select substring(application_name from ' rules ([0-9a-f]+)$'), count(distinct application_name || coalesce(client_addr::text, ''))
from pg_stat_activity where datname = current_database() and application_name ~ '^dedup( slot [0-9]+)? rules [0-9a-f]+$' group by 1`

// AskRules reads which processes are connected by which rules, and whether the
// ledger is empty.
func AskRules(ctx context.Context, q Querier, r *Rules) error {
	if err := q.QueryRow(ctx, "select not exists (select from dedup_position) and not exists (select from dedup_scope)").Scan(&r.Empty); err != nil {
		return fmt.Errorf("looking whether the ledger is empty: %w", err)
	}
	rows, err := q.Query(ctx, askProcesses)
	if err != nil {
		return fmt.Errorf("listing the processes: %w", err)
	}
	r.Processes = map[string]int{}
	var fingerprint string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&fingerprint, &n}, func() error {
		r.Processes[fingerprint] = n
		return nil
	}); err != nil {
		return fmt.Errorf("listing the processes: %w", err)
	}
	return nil
}

// Judge is pure.
func (r *Rules) Judge() (fs Findings) {
	all := 0
	for _, n := range r.Processes {
		all += n
	}
	switch {
	case r.Active == "" && r.Empty:
		fs.add(OK, areaRules, "", "fingerprint %s; no rules are active yet: the first process makes its own active", r.Ours)
	case r.Active != r.Ours:
		fs.add(Fail, areaRules, "dedup config activate --dry-run, or the configuration of the active rules", "%s", r.Refused)
	default:
		fs.add(OK, areaRules, "", "fingerprint %s is active, and on %d of %s", r.Ours, r.Processes[r.Ours], processes(all))
	}
	for _, fingerprint := range slices.Sorted(maps.Keys(r.Processes)) {
		if r.Active != "" && fingerprint != r.Active {
			fs.add(Warn, areaRules, "give them the configuration of the active rules, or activate theirs",
				"%s not filtering: other rules, fingerprint %s", processes(r.Processes[fingerprint]), fingerprint)
		}
	}
	for _, rule := range r.Observing {
		fs.add(Warn, areaRules, "mode: enforce, once what is marked is right", "%s is only observed: repeats are in clean, marked by dedup-status", rule)
	}
	return fs
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return strings.TrimSpace(fmt.Sprintf("%d processes", n))
}
