package topics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Overhead is how much larger than max_record_bytes the outputs' largest batch
// must be: room for key, foreign headers, ours and the batch's own.
const Overhead = 64 << 10

// The topic settings of Kafka that Ensure sets and compares.
const (
	cfgCleanup   = "cleanup.policy"
	cfgRetention = "retention.ms"
	cfgMaxBytes  = "max.message.bytes"
	cfgMinISR    = "min.insync.replicas"
	cfgTimeType  = "message.timestamp.type"
	cfgAfterMax  = "message.timestamp.after.max.ms"
	cfgBeforeMax = "message.timestamp.before.max.ms"
)

var settingOrder = []string{cfgCleanup, cfgRetention, cfgMaxBytes, cfgMinISR, cfgTimeType, cfgAfterMax, cfgBeforeMax}

// Create is what a missing topic gets: the block topics.create of the
// configuration. Partitions are those of raw topics, and of duplicates and
// dead-letter unless a raw topic has more; a clean topic has as many as its raw
// one.
type Create struct {
	Partitions          int32
	Replication         int16
	RawRetention        time.Duration
	CleanRetention      time.Duration
	DuplicatesRetention time.Duration
	DeadLetterRetention time.Duration
}

// Plan is what Ensure is to see to.
type Plan struct {
	Router         *Router
	Raw            []string // named raw topics, created where missing; those that exist and match come on top
	Scopes         []Scope  // whose outputs are created too, where names depend on scopes
	MaxRecordBytes int64
	Create         Create
	CheckOnly      bool   // look, and tell what is missing with the command that makes it
	Partial        bool   // with CheckOnly: what may not be read is told (Report.Unread), not refused
	DryRun         bool   // report what would be created, create nothing
	Bootstrap      string // host:port,… for the repair commands
	Principal      string // likewise: User:…, or "" where only the broker knows it
}

// role is what a topic is for; it decides settings and checks.
type role int

const (
	roleRaw role = iota
	roleClean
	roleDuplicates
	roleDeadLetter
)

// topicState is a topic as it is, or as it will be created.
type topicState struct {
	name        string
	role        role
	raw         []string // of an output: the raw topics that write to it
	present     bool
	partitions  int32
	replication int
	settings    map[string]string
	unread      bool // settings may not be read
}

// wanted lists the topics of the plan in the order of their creation: outputs
// first, so that a filter that is running never meets a raw topic without them.
func (p *Plan) wanted(routes []*Route, have *Layout) []*topicState {
	var outputs, inputs []*topicState
	byName := map[string]*topicState{}
	output := func(name string, r role, raw string, partitions int32) {
		t := byName[name]
		if t == nil {
			t = p.state(name, r, partitions, have)
			byName[name] = t
			outputs = append(outputs, t)
		}
		if !t.present {
			t.partitions = max(t.partitions, partitions)
		}
		t.raw = append(t.raw, raw)
	}
	for _, route := range routes {
		in := p.state(route.Raw, roleRaw, p.Create.Partitions, have)
		inputs = append(inputs, in)
		shared := max(p.Create.Partitions, in.partitions)
		for _, name := range p.outputs(route, have) {
			switch {
			case name == route.Clean:
				output(name, roleClean, route.Raw, in.partitions)
			case route.duplicates.makes(name):
				output(name, roleDuplicates, route.Raw, shared)
			default:
				output(name, roleDeadLetter, route.Raw, shared)
			}
		}
	}
	return append(outputs, inputs...)
}

// outputs are those a raw topic needs, those of the plan's scopes, and those of
// other scopes that are there.
func (p *Plan) outputs(route *Route, have *Layout) []string {
	names := route.Known()
	for _, s := range p.Scopes {
		names = append(names, route.Of(s)...)
	}
	for _, name := range have.Outputs(route) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// command is what makes a missing topic.
func (p *Plan) command(t *topicState) string {
	raws := t.raw
	if t.role == roleRaw {
		raws = []string{t.name}
	}
	return "dedup topics ensure " + strings.Join(raws, " ") + scopeFlags(p.Scopes)
}

func (p *Plan) state(name string, r role, partitions int32, have *Layout) *topicState {
	t := &topicState{name: name, role: r, partitions: partitions, replication: int(p.Create.Replication)}
	if info, ok := have.topics[name]; ok {
		t.present, t.partitions, t.replication = true, info.partitions, info.replicas
		return t
	}
	t.settings = p.settings(r)
	return t
}

// settings are written out in full, the defaults too: what a broker has for
// default is the operator's and can be anything.
func (p *Plan) settings(r role) map[string]string {
	retention := [...]time.Duration{p.Create.RawRetention, p.Create.CleanRetention, p.Create.DuplicatesRetention, p.Create.DeadLetterRetention}[r]
	minISR := "1"
	if p.Create.Replication >= 3 {
		minISR = "2"
	}
	return map[string]string{
		cfgCleanup:   "delete",
		cfgRetention: strconv.FormatInt(retention.Milliseconds(), 10),
		cfgMaxBytes:  strconv.FormatInt(p.MaxRecordBytes+Overhead, 10),
		cfgMinISR:    minISR,
		cfgTimeType:  "CreateTime",
		cfgAfterMax:  strconv.FormatInt(math.MaxInt64, 10),
		cfgBeforeMax: strconv.FormatInt(math.MaxInt64, 10),
	}
}

// raws are the named raw topics and those that exist, sorted.
func (p *Plan) raws(existing []string) ([]string, error) {
	all := slices.DeleteFunc(existing, func(name string) bool { return !p.Router.IsRaw(name) })
	for _, name := range p.Raw {
		if !validName(name) || !p.Router.IsRaw(name) {
			return nil, fmt.Errorf("%q is not a raw topic: it must be a topic name that matches topics.raw, %s", name, p.Router.Pattern())
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
