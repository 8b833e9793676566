package processor

import "github.com/twmb/franz-go/pkg/kgo"

// libraryLog passes on what the Kafka client says at WARN and above, and all of
// it where DEBUG is asked for: at INFO it tells of each metadata update and
// each transaction, dozens of lines a second under load.
type libraryLog struct{ kgo.Logger }

// Level is what the client asks before it says anything.
func (l libraryLog) Level() kgo.LogLevel {
	if level := l.Logger.Level(); level != kgo.LogLevelInfo {
		return level
	}
	return kgo.LogLevelWarn
}
