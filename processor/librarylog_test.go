package processor

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
)

func TestLibraryLog(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]kgo.LogLevel{
		slog.LevelDebug: kgo.LogLevelDebug,
		slog.LevelInfo:  kgo.LogLevelWarn,
		slog.LevelWarn:  kgo.LogLevelWarn,
		slog.LevelError: kgo.LogLevelError,
	} {
		log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
		require.Equal(t, want, libraryLog{kslog.New(log)}.Level(), level)
	}
}
