package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == copyCommand {
		return exit(runCopy(ctx, os.Args[2:]))
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	return exit(bench(ctx, o))
}

func exit(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// say tells of progress; stdout is for the report.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// bench runs all repetitions and prints what they came to.
func bench(ctx context.Context, o *options) (err error) {
	s, err := newStage(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if o.idle > 0 {
		return s.runIdle(ctx)
	}
	if s.drains() {
		if err := s.fill(ctx); err != nil {
			return err
		}
	}
	report := newReport(o, s.surroundings(ctx))
	for i := range o.repeat {
		say("repetition %d of %d", i+1, o.repeat)
		r, err := s.repetition(ctx, i+1)
		if err != nil {
			return err
		}
		report.Runs = append(report.Runs, r)
	}
	return report.print(os.Stdout, o.output)
}

// repetition runs the chosen phases once, one after the other.
func (s *stage) repetition(ctx context.Context, n int) (run, error) {
	r := run{}
	for _, p := range s.phases() {
		if !s.chosen(p.name) {
			continue
		}
		s.checkpoint(ctx)
		f, err := p.measure(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("phase %s: %w", p.title, err)
		}
		say("%-24s %8.0f msg/s  %s", p.title, f.PerSecond, f.details())
		r[p.title] = f
	}
	return r, nil
}

// phase is one way to take the messages.
type phase struct {
	name, title string
	measure     func(ctx context.Context, n int) (figures, error)
}

func (s *stage) phases() []phase {
	one := func(ctx context.Context, _ int) (figures, error) { return s.register(ctx, 1) }
	many := func(ctx context.Context, _ int) (figures, error) { return s.register(ctx, s.o.sessions) }
	ps := []phase{
		{"filter", titleFilter, s.filter},
		{"tls", titleTLS, s.overTLS},
		{"copy", titleCopy, s.copy},
		{"register", titleRegister(1), one},
	}
	if s.o.sessions > 1 {
		ps = append(ps, phase{"register", titleRegister(s.o.sessions), many})
	}
	return append(ps, phase{"insert", titleInsert, s.insert}, phase{"learn", titleLearn, s.learn},
		phase{"outage", titleOutage, s.outage})
}

// drains reports whether a phase is chosen that takes the common raw topic.
func (s *stage) drains() bool {
	return s.chosen("filter") || s.chosen("tls") || s.chosen("copy") || s.chosen("learn")
}
