package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSumSeries(t *testing.T) {
	t.Parallel()
	const text = "# HELP m x\nm{a=\"1\",b=\"2\"} 3\nm{a=\"2\"} 4\nm2 9\nn 5.5\n"
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{{"m", nil, 7}, {"m", []string{`a="1"`}, 3}, {"n", nil, 5.5}, {"o", nil, 0}} {
		got, err := sumSeries(text, c.name, c.labels)
		require.NoError(t, err)
		require.InDelta(t, c.want, got, 0, fmt.Sprint(c.name, c.labels))
	}
}
