package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/setting"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	names, scalars := map[string]string{}, 0
	for _, k := range (&Config{}).keys() {
		require.Empty(t, names[k.env()], "%s has the variable of %s", k.path, names[k.env()])
		names[k.env()] = k.path
		if k.shape == setting.Scalar {
			scalars++
		}
		if k.shape == setting.Scalar && k.path != "postgres.url" {
			require.NoError(t, k.set(k.parse(k.standard, setting.Place{})), k.path)
		}
	}
	t.Logf("%d keys, %d scalars", len(names), scalars)
}

func TestShortestMonths(t *testing.T) {
	t.Parallel()
	require.Equal(t, 28*setting.Day, Months{Keep: 1}.Shortest())
	require.Equal(t, 59*setting.Day, Months{Keep: 2}.Shortest())
	require.Equal(t, 365*setting.Day, Months{Keep: 12}.Shortest())
	require.Equal(t, 424*setting.Day, Months{Keep: 14}.Shortest())
}
