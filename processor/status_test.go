package processor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartitionsInOrder(t *testing.T) {
	t.Parallel()
	names := []string{"b/0", "a/10", "a/9", "a.b/1", "a/1"}
	slices.SortFunc(names, byPlace)
	require.Equal(t, []string{"a/1", "a/9", "a/10", "a.b/1", "b/0"}, names)
}
