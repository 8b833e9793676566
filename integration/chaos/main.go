// Command chaos is a campaign of faults on real services: three Kafka brokers,
// Redis with a replica and Sentinel (or a Redis Cluster), PostgreSQL with a
// synchronous standby and two to four filters, with toxiproxy between them. Faults
// and traffic are drawn from a seed, which is printed first and last; at the end
// the checker of integration/laws judges every record.
//
//	go run ./integration/chaos -minutes 30 -seed 7
//
// It exits with 0 when every law held, 1 when one was broken or the campaign
// could not be run, 2 after wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := conduct(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 1
	}
	return 0
}

// options of a campaign.
type options struct {
	seed    uint64
	lasts   time.Duration // of faults and traffic; set-up and judgement come on top
	rate    int           // raw records a second
	slots   string        // fixed or auto; "": fixed where the seed can be divided by 4
	cluster bool          // Redis Cluster instead of primary, replica and Sentinel
	only    []string      // kinds of faults; none: all
	program string        // "": built from ./cmd/dedup
	logs    string        // folder for the filters' logs; "": a temporary one
	apart   bool          // the next fault waits until the one before is over
	async   bool          // no commit waits for the standby: a broken set-up, for the negative control
}

// fixedSlots: the filters' slots are set, as in a StatefulSet, and not taken from
// what is free.
func (o options) fixedSlots() bool { return o.slots == "fixed" || o.slots == "" && o.seed%4 == 0 }

func parse(args []string) (options, error) {
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	o := options{}
	only := ""
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "draws faults and traffic")
	minutes := f.Float64("minutes", 5, "how long faults come")
	f.IntVar(&o.rate, "rate", 150, "raw records a second")
	f.BoolVar(&o.cluster, "redis-cluster", false, "a Redis Cluster instead of primary, replica and Sentinel")
	f.StringVar(&o.slots, "slots", "", "fixed or auto: how filters get their slots; default fixed where the seed can be divided by 4")
	f.StringVar(&only, "only", "", "kinds of faults, with commas; default all: "+strings.Join(kindNames(), ","))
	f.BoolVar(&o.apart, "apart", false, "each fault waits until the one before is over, to measure recovery; default: now and then the next comes before")
	f.StringVar(&o.program, "program", "", "the filter's program; default: built from ./cmd/dedup")
	f.StringVar(&o.logs, "logs", "", "a folder to keep the filters' logs in")
	f.BoolVar(&o.async, "no-sync-standby", false, "commits do not wait for the standby (negative control)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *minutes <= 0 || *minutes > 24*60 {
		return o, fmt.Errorf("-minutes %v: write a number above 0, at most 1440", *minutes)
	}
	if o.rate < 1 || o.rate > 5000 {
		return o, fmt.Errorf("-rate %d: write 1 to 5000", o.rate)
	}
	if o.slots != "" && o.slots != "fixed" && o.slots != "auto" {
		return o, fmt.Errorf("-slots %q: write fixed or auto", o.slots)
	}
	o.lasts = time.Duration(*minutes * float64(time.Minute))
	if only != "" {
		o.only = strings.Split(only, ",")
		for _, name := range o.only {
			if _, ok := kindNamed(name); !ok {
				return o, fmt.Errorf("-only %s: no such kind of fault; there are %s", name, strings.Join(kindNames(), ", "))
			}
		}
	}
	return o, nil
}
