package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// What is measured, apart from the number of messages (issue: speed and memory).
const (
	partitions = 12
	scopes     = 8
	valueSize  = 500
	batch      = 2000 // records per poll and transaction, as processor.batch_records
)

type options struct {
	messages int64
	repeat   int
	sessions int
	only     []string
	output   string        // text, json
	idle     int           // topics in the cluster of an idle filter; 0: measure messages
	rate     int           // of messages that come during phase outage, a second
	away     time.Duration // PostgreSQL, in phase outage
	profile  string        // file of the CPU profile; its allocations go to FILE.allocs
}

func allPhases() []string { return append(usualPhases(), "tls", "learn", "outage") }

// usualPhases leave out tls, which moves all phases to another broker, learn,
// which has to filter everything first, and outage, which stops services and
// fills a topic of its own each time.
func usualPhases() []string { return []string{"filter", "copy", "register", "insert"} }

// parse reads the command line. What is wrong has been written to w.
func parse(args []string, w io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(w)
	f.Int64Var(&o.messages, "messages", 2_000_000, "how many `messages` the topic is filled with")
	f.IntVar(&o.repeat, "repeat", 3, "how many `times` all is measured")
	f.IntVar(&o.sessions, "sessions", 4, "client `sessions` of filter and copy, and connections of the registration")
	f.StringVar(&o.output, "o", "text", "`format` of the report: text or json")
	f.IntVar(&o.idle, "idle", 0, "instead of all that: the memory of a filter without a message, among so many `topics`")
	f.StringVar(&o.profile, "profile", "", "run the filter inside this process and write its CPU profile to `FILE`, its allocations to FILE.allocs")
	f.IntVar(&o.rate, "rate", 2000, "phase outage: `messages` a second that come all along; fewer than are filtered")
	f.DurationVar(&o.away, "away", time.Minute, "phase outage: for how `long` PostgreSQL is stopped")
	phases := f.String("phases", strings.Join(usualPhases(), ","), "which `phases` to run, of "+strings.Join(allPhases(), ",")+"; ratios need both of theirs")
	if err := f.Parse(args); err != nil {
		return nil, err //nolint:wrapcheck // printed by the flag set
	}
	o.only = strings.Split(*phases, ",")
	if err := o.check(f.Args()); err != nil {
		fmt.Fprintln(w, "bench:", err)
		return nil, err
	}
	return o, nil
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q", rest[0])
	case o.messages < 10*batch:
		return fmt.Errorf("-messages %d: at least %d, or start and end outweigh the rest", o.messages, 10*batch)
	case o.idle != 0 && o.idle < idleOurs:
		return fmt.Errorf("-idle %d: at least %d, the filter's own", o.idle, idleOurs)
	case o.repeat < 1:
		return fmt.Errorf("-repeat %d: at least 1", o.repeat)
	case o.rate < 1:
		return fmt.Errorf("-rate %d: at least 1", o.rate)
	case o.away < time.Second || o.away > time.Hour:
		return fmt.Errorf("-away %s: 1s to 1h", o.away)
	case o.sessions < 1 || o.sessions > scopes:
		return fmt.Errorf("-sessions %d: 1 to %d, or some have no scope", o.sessions, scopes)
	case o.output != "text" && o.output != "json":
		return fmt.Errorf("-o %q: text or json", o.output)
	}
	for _, p := range o.only {
		if !slices.Contains(allPhases(), p) {
			return fmt.Errorf("-phases: %q is none of %s", p, strings.Join(allPhases(), ","))
		}
	}
	return nil
}
