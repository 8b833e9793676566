package topics_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/topics"
)

// Settings that may not be read are passed over; partitions need no right beside
// those of the filter.
func TestMisfitsWithoutDescribeConfigs(t *testing.T) {
	t.Parallel()
	read, write, describeC := kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs
	adm := restricted(t, map[string][]kmsg.ACLOperation{
		"raw-ingest.a": {read}, "clean.a": {read, write, describeC}, "duplicates": {read, write}, "dead-letter": {read, write, describeC},
	}, "raw-ingest.a", "clean.a", "duplicates", "dead-letter")
	router := newRouter(t)
	layout, err := topics.Check(t.Context(), adm, router, "raw-ingest.a")
	require.Error(t, err, "the right is missing")
	found, err := layout.Misfits(t.Context(), adm, []string{"k:1"}, 32<<20, route(t, router, "raw-ingest.a"))
	require.NoError(t, err)
	var of []string
	for _, m := range found {
		of = append(of, m.Topic)
		require.Contains(t, m.Repair, "--bootstrap-server k:1 --alter --entity-type topics --entity-name "+m.Topic+" --add-config max.message.bytes=33619968")
	}
	require.Equal(t, []string{"clean.a", "dead-letter"}, of)
}
