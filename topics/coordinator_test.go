package topics

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The values are Java's "…".hashCode() & 0x7fffffff modulo the count.
func TestCoordinatorPartitionsAreKafkas(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 2, CoordinatorPartition("dedup-870e163a", 4))
	require.EqualValues(t, 0, CoordinatorPartition("polygenelubricants", 50), "its hash code is the lowest number there is")
}
