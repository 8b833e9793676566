package crash

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// occasion is when a point is passed, and so what a lane does to get there.
type occasion string

const (
	inBatch    occasion = "in a batch"
	onRetry    occasion = "in a batch that comes again"
	onRefusal  occasion = "when an output refuses a record"
	onReject   occasion = "when the ledger rejects a record"
	atStart    occasion = "at a start"
	atOpening  occasion = "at the first start on a topic"
	onLearning occasion = "after PostgreSQL lost its tail, or another tool set the offsets"
	atRevoke   occasion = "when a second process comes"
	atLoss     occasion = "when the membership is lost"
	atGap      occasion = "when records were deleted unread"
	atHold     occasion = "when a partition is held"
	atRest     occasion = "when nothing comes"
	atStop     occasion = "at a stop"
	atLeave    occasion = "at a stop for good"
)

// occasions of the points that are not passed with every batch.
var occasions = map[occasion][]string{
	onRetry:   {"wait begins", "position in doubt"},
	onRefusal: {"batch halved", "refusal to be recorded", "refusal recorded", "reference chosen", "Reject"},
	onReject:  {"chunk halved", "record rejected"},
	atStart: {
		"session begins", "client made", "predecessor fenced", "told of partitions", "topics looked up", "group offsets read", "log bounds read",
		"output ends read", "partition claimed", "partition placed", "offsets sought", "Claim",
		"InitProducerID", "JoinGroup", "SyncGroup", "FindCoordinator", "Metadata", "ListOffsets", "OffsetFetch",
	},
	atOpening: {"row made", "OpenPosition", "Former", "OffsetForLeaderEpoch"},
	onLearning: {
		"lesson begins", "epochs asked", "output read back", "lesson laid out", "lesson answered", "lesson brought", "places written", "Learn", outputFetch,
	},
	atRevoke: {"told of a revoke", "revoke seen", "revoke flushed", "revoke cleared"},
	atLoss:   {"told of a loss"},
	atGap:    {"gap recorded", "RecordGap"},
	atHold:   {"Hold"},
	atRest:   {"nothing came", "positions gathered", "positions answered", "Flush"},
	atStop:   {"stop begins", "stop done"},
	atLeave:  {"group to be left", "group left", "LeaveGroup"},
}

func occasionOf(name string) occasion {
	for o, names := range occasions {
		if slices.Contains(names, name) {
			return o
		}
	}
	return inBatch
}

// shapesOf are the batches with which an occasion is visited.
func shapesOf(o occasion, name string) []string {
	switch o {
	case onRefusal:
		if name == "reference chosen" {
			return []string{reference}
		}
		return []string{oversize, reference}
	case onReject:
		return []string{rejectedShape}
	case onLearning:
		return slices.DeleteFunc(slices.Clone(shapes), func(s string) bool { return s == oversize })
	case atOpening:
		return slices.DeleteFunc(slices.Clone(shapes), func(s string) bool { return s == reference || s == oversize })
	case atRevoke, atLoss, atGap, atHold, atStop, atLeave, atRest:
		return []string{"one record", "duplicates", "several chunks", "mixed partitions", "empty", "window over"}
	case inBatch, onRetry, atStart:
	}
	return shapes
}

// calls are the ledger's, each with a point before and one behind.
var calls = []string{"Register", "Reject", "Claim", "OpenPosition", "Flush", "Learn", "RecordGap", "Hold", "Remember", "Former"}

// places lists all points with what can happen there: at a step everything, since
// a call follows; before a call it cannot lose its answer yet, behind it it cannot
// fail any more.
func places(t testing.TB) (all []visit) {
	t.Helper()
	add := func(name, point string, ks ...kind) {
		for _, k := range ks {
			for _, shape := range shapesOf(occasionOf(name), name) {
				all = append(all, visit{point, k, shape})
			}
		}
	}
	for _, s := range steps(t) {
		add(s, s, kinds...)
	}
	names := append(slices.Clone(calls), outputFetch)
	for _, key := range requests {
		names = append(names, key.Name())
	}
	for _, name := range names {
		add(name, before+name, die, fail, hang, cancel)
		add(name, name+behind, die, lose, hang, cancel)
	}
	return all
}

// round is what a lane does at a time: up to so many visits of one occasion with
// one shape, in the life of one process or of several.
type round struct {
	occasion occasion
	shape    string
	visits   []visit
}

const perRound = 8

// oneOfEach draws a visit of each point.
func oneOfEach(all []visit, rng *rand.Rand) (some []visit) {
	of := map[string][]visit{}
	for _, v := range all {
		of[v.point] = append(of[v.point], v)
	}
	for _, point := range slices.Sorted(maps.Keys(of)) {
		some = append(some, of[point][rng.IntN(len(of[point]))])
	}
	return some
}

// rounds puts all places into rounds, in an order that the seed tells.
func rounds(all []visit, rng *rand.Rand) (rs []round) {
	type same struct {
		occasion occasion
		shape    string
	}
	all = slices.Clone(all)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	open := map[same]int{}
	for _, v := range all {
		k := same{occasionOf(nameOfPoint(v.point)), v.shape}
		i, there := open[k]
		if !there || len(rs[i].visits) == perRound || slices.ContainsFunc(rs[i].visits, func(o visit) bool { return o.point == v.point }) {
			i = len(rs)
			open[k] = i
			rs = append(rs, round{occasion: k.occasion, shape: k.shape})
		}
		rs[i].visits = append(rs[i].visits, v)
	}
	rng.Shuffle(len(rs), func(i, j int) { rs[i], rs[j] = rs[j], rs[i] })
	return rs
}

// nameOfPoint is a step's, or that of the call before or behind which it is.
func nameOfPoint(point string) string {
	if len(point) > len(before) && point[:len(before)] == before {
		return point[len(before):]
	}
	if n := len(point) - len(behind); n > 0 && point[n:] == behind {
		return point[:n]
	}
	return point
}
