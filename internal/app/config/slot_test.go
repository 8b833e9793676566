package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/app/config"
)

func TestSlotOnAHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slot, host string
		want       config.Slot
	}{
		{"auto", "dedup-7", config.Slot{Auto: true}},
		{"3", "dedup-7", config.Slot{Number: 3}},
		{"$ordinal", "dedup-7", config.Slot{Number: 7}},
		{"$ordinal", "dedup-12.dedup.ns-4.svc.cluster.local", config.Slot{Number: 12}},
		{"$ordinal", "filter03", config.Slot{Number: 3}},
		{"$ordinal", "dedup-9999", config.Slot{Number: 9999}},
	} {
		got, err := config.Processor{Slot: c.slot}.SlotOn(c.host)
		require.NoError(t, err, c.slot, c.host)
		require.Equal(t, c.want, got, "%s on %s", c.slot, c.host)
	}
	for _, host := range []string{"dedup", "7-dedup", "", "dedup-10000", "dedup.7", "dedup-99999999999999999999"} {
		_, err := config.Processor{Slot: "$ordinal"}.SlotOn(host)
		require.ErrorContains(t, err, "processor.slot is $ordinal", host)
		require.ErrorContains(t, err, `"`+host+`"`)
		require.ErrorContains(t, err, "as dedup-7 does")
	}
}

func TestSlotValues(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"-1", "+1", "10000", "one", "AUTO", "$host", "1.5", ""} {
		_, _, err := config.Load("", []string{"DEDUP_PROCESSOR_SLOT=" + bad}, "builtin_rules")
		require.ErrorContains(t, err, "processor.slot", bad)
		require.ErrorContains(t, err, "0 to 9999")
	}
}
