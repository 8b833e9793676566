package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dedupledger/internal/devservices"
	"dedupledger/migrations"
)

// ErrNotMet says that a part did not come out as it must. The transcript has
// the details.
var ErrNotMet = errors.New("not every part of the demo says PASS")

var errInterrupted = errors.New("the demo was interrupted before its last part")

const (
	// partWithin bounds a part. It takes a second or two; what is still missing
	// then is called lost.
	partWithin = 60 * time.Second
	stopWithin = 30 * time.Second
)

// Options of a demo.
type Options struct {
	Program  string       // file of the dedup program
	Environ  []string     // of the filter; DEDUP_ variables are left out
	Command  string       // how the user calls the program, for the hints
	Version  string       // of the program
	Exit     bool         // end after the last part instead of staying up until ctx ends
	Out      io.Writer    // the transcript
	Progress func(string) // told what is being waited for; may be nil
}

func (o *Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// demo is one run.
type demo struct {
	Options
	transcript
	shown    bool // all parts
	folder   string
	services *devservices.Embedded
	registry *registry
	broker   *broker
	front    *front
	filter   *filter
}

// Run shows all parts. The error is ErrNotMet where one is not as it must be,
// also when it stayed up afterwards; any other error says why it could not go
// on, with the end of the filter's log. Nothing is left behind.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o, transcript: transcript{out: o.Out}}
	defer func() {
		// What follows an interrupt is its consequence and explains nothing.
		if ctx.Err() != nil && !d.shown {
			err = errInterrupted
		} else if err != nil {
			err = d.withLog(err)
		}
		err = errors.Join(err, d.close(ctx))
	}()
	d.line("dedup %s demo. Everything runs on this machine, in a temporary folder, and is removed on exit.", o.Version)
	if err := d.start(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{d.whatItDoes, d.crash, d.rewind, d.withoutRedis} {
		d.line("")
		if err := part(ctx); err != nil {
			return err
		}
	}
	d.shown = true
	if !o.Exit {
		if err := d.lookAround(ctx); err != nil {
			return err
		}
	}
	if d.missed {
		return ErrNotMet
	}
	return nil
}

// start is straight-line: each step needs what the one before it acquired.
func (d *demo) start(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "dedup-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	d.folder = folder
	// PostgreSQL's folder lies below, and may belong to another user.
	if err := os.Chmod(folder, 0o711); err != nil { //nolint:gosec // may be passed, not read
		return fmt.Errorf("opening the temporary folder to its servers: %w", err)
	}
	if d.services, err = devservices.StartEmbedded(ctx, devservices.Options{Temp: folder, Progress: d.Progress}); err != nil {
		return err //nolint:wrapcheck // a sentence already
	}
	d.say("making the ledger and the topics")
	if d.registry, err = openRegistry(ctx, d.services.Database); err != nil {
		return err
	}
	if d.broker, err = openBroker(ctx, d.services.KafkaAddr); err != nil {
		return err
	}
	if d.front, err = openFront(ctx); err != nil {
		return err
	}
	if d.filter, err = newFilter(folder, d.Program, d.Environ, d.front, d.services); err != nil {
		return err
	}
	if err := d.filter.start(); err != nil {
		return err
	}
	d.introduce()
	d.say("waiting for the filter")
	return d.filter.awaitReady(ctx)
}

func (d *demo) introduce() {
	s := d.services
	var topics strings.Builder
	topics.WriteString(rawTopic)
	for _, name := range d.broker.outputs {
		topics.WriteString(" " + name)
	}
	d.line("  %-9s %-17s built-in stand-in (kfake): %s", "kafka", s.KafkaAddr, topics.String())
	d.line("  %-9s %-17s built-in stand-in (miniredis)", "redis", s.RedisAddr)
	d.line("  %-9s %-17s PostgreSQL %s (%s), schema %d", "postgres", s.PostgresAddr, s.PostgresVersion, s.PostgresFrom, migrations.Version())
	d.line("  %-9s %-17s a process of its own, so that it can be killed", "filter", "pid "+strconv.Itoa(d.filter.pid()))
	d.line("  %-9s http://%s/readyz and /metrics", "health", d.front.addr)
}

// lookAround stays up until ctx ends.
func (d *demo) lookAround(ctx context.Context) error {
	if err := d.services.StartRedis(); err != nil {
		return err //nolint:wrapcheck // a sentence already
	}
	sample := filepath.Join(d.folder, "77001.edi")
	if err := os.WriteFile(sample, invoice(gln(0), firstControl, 5), 0o644); err != nil { //nolint:gosec // an example
		return fmt.Errorf("writing the sample: %w", err)
	}
	hint := func(what, how, why string) { d.line("   %-9s %-60s %s", what, how, why) }
	d.line("")
	d.line("Look around (the demo stays up; Ctrl-C ends it)")
	hint("health", "http://"+d.front.addr+"/readyz", "and /metrics")
	hint("your own", d.Command+" key --format auto YOUR-FILE", "for instance "+sample)
	hint("kafka", d.services.KafkaAddr, "read with isolation level read_committed")
	hint("ledger", "postgres://dedup_read@"+d.services.PostgresAddr+"/"+d.services.Database.Name, "select * from dedup_ledger_v")
	alive, cancel := d.filter.alive(ctx)
	defer cancel()
	<-alive.Done()
	if ctx.Err() == nil {
		return context.Cause(alive)
	}
	return nil
}

// withLog adds the end of the filter's log to an error it may explain.
func (d *demo) withLog(err error) error {
	if d.filter == nil || d.filter.child == nil {
		return err
	}
	return fmt.Errorf("%w\nend of the filter's log:\n%s", err, d.filter.child.Log())
}

// close ends everything, last first, and removes the folder.
func (d *demo) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopWithin, fmt.Errorf("stopping took more than %s", stopWithin))
	defer cancel()
	var errs []error
	if d.filter != nil {
		errs = append(errs, d.filter.kill())
	}
	if d.front != nil {
		errs = append(errs, d.front.close())
	}
	if d.broker != nil {
		d.broker.close()
	}
	if d.registry != nil {
		errs = append(errs, d.registry.close(ctx))
	}
	if d.services != nil {
		errs = append(errs, d.services.Close())
	}
	if d.folder != "" {
		errs = append(errs, os.RemoveAll(d.folder))
	}
	return errors.Join(errs...)
}
