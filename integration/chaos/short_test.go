package main

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
)

// TestShortCampaign is a campaign of three minutes with a fixed seed, on services
// of its own: faults of each sort, and every record judged.
func TestShortCampaign(t *testing.T) {
	t.Parallel()
	switch {
	case testing.Short():
		t.Skip("takes five minutes")
	case os.Getenv(devservices.EnvServices) == devservices.ServicesDocker:
		t.Skip("three brokers and a standby are native processes")
	}
	var table bytes.Buffer
	err := conduct(t.Context(), options{
		seed: 4, lasts: 3 * time.Minute, rate: 80,
		only: []string{
			"kill", "zombie", "broker-kill", "coordinator", "sentinel", "pg-failover", "pg-kill", "redis-one", "cut", "offsets-back", "expired", "skip",
		},
	}, io.MultiWriter(&table, t.Output()))
	require.NoError(t, err)
	require.Regexp(t, `raw records [1-9][0-9]{3,}, `, table.String())
	require.Contains(t, table.String(), "lost 0, doubled 0, wrong 0; transactions left open 0")
}
