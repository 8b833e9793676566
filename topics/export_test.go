package topics

import (
	"time"

	"dedupledger/ledger"
)

// TopicInfo lets tests write a layout down.
type TopicInfo struct {
	ID         ledger.TopicID
	Partitions int32
}

// NewLayout is a layout without a cluster.
func NewLayout(topics map[string]TopicInfo) *Layout {
	l := &Layout{topics: map[string]topicInfo{}, names: map[ledger.TopicID]string{}}
	for name, t := range topics {
		l.add(name, topicInfo{id: t.ID, partitions: t.Partitions})
	}
	return l
}

// AppendTime lets tests compare it with the general formatter.
func AppendTime(b []byte, t time.Time) []byte { return appendTime(b, t) }
