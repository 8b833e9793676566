package hot

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// RouteLibraryLog sends what go-redis has to say, each failed dial for one, to
// log at DEBUG; the circuit says once what matters. go-redis has one logger for
// the whole process, so the program calls this, once, before it opens a client.
func RouteLibraryLog(log *slog.Logger) { redis.SetLogger(libraryLog{log}) }

type libraryLog struct{ log *slog.Logger }

// Printf is go-redis's logging interface.
func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "go-redis: "+fmt.Sprintf(format, args...))
	}
}
