package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJudgeRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r    Rules
		want Findings
	}{
		"active": {
			Rules{Ours: "9c41", Active: "9c41", Processes: map[string]int{"9c41": 3}},
			Findings{{OK, areaRules, "fingerprint 9c41 is active, and on 3 of 3 processes", ""}},
		},
		"empty ledger": {
			Rules{Ours: "9c41", Empty: true},
			Findings{{OK, areaRules, "fingerprint 9c41; no rules are active yet: the first process makes its own active", ""}},
		},
		"keys of nobody": {
			Rules{Ours: "9c41", Refused: "this ledger has keys"},
			Findings{{Fail, areaRules, "this ledger has keys", "dedup config activate --dry-run, or the configuration of the active rules"}},
		},
		"others": {
			Rules{Ours: "9c41", Active: "77aa", Refused: "they differ", Processes: map[string]int{"9c41": 1, "77aa": 2}},
			Findings{
				{Fail, areaRules, "they differ", "dedup config activate --dry-run, or the configuration of the active rules"},
				{Warn, areaRules, "1 process not filtering: other rules, fingerprint 9c41", "give them the configuration of the active rules, or activate theirs"},
			},
		},
		"observing": {
			Rules{Ours: "9c41", Active: "9c41", Processes: map[string]int{"9c41": 1}, Observing: []string{"newco:* (dedup.yaml:7)"}},
			Findings{
				{OK, areaRules, "fingerprint 9c41 is active, and on 1 of 1 process", ""},
				{Warn, areaRules, "newco:* (dedup.yaml:7) is only observed: repeats are in clean, marked by dedup-status", "mode: enforce, once what is marked is right"},
			},
		},
	} {
		require.Equal(t, c.want, c.r.Judge(), name)
	}
}
