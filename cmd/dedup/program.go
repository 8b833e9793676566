package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"dedupledger/internal/app"
	"dedupledger/internal/app/config"
	"dedupledger/internal/setting"
)

// Exit codes; scripts rely on them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// program is one call of the command: what it was given, and the global flags.
type program struct {
	args           []string
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer

	configFile     string
	output         string
	quiet, verbose bool
}

// execute runs the command and turns its error into an exit code.
func execute(ctx context.Context, p *program) int {
	root := newRoot(p)
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	return p.exit(root.ExecuteContext(ctx))
}

// usageError is a call that cannot be understood.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// bareError is printed as it is, for scripts that read it; an empty one is not.
type bareError string

func (e bareError) Error() string { return string(e) }

func (p *program) exit(err error) int {
	var (
		usage    *usageError
		bare     bareError
		problems setting.Problems
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &bare):
		if bare != "" {
			p.note("%s", bare)
		}
		return exitFailed
	case errors.As(err, &problems):
		p.note("%s", problems) // one line each, place first, as compilers do
		return exitUsage
	case errors.As(err, &usage):
		p.note("dedup: %s\nSee '%s --help'.", usage, usage.command)
		return exitUsage
	default:
		p.note("dedup: %s", err)
		return exitFailed
	}
}

// note writes a line for people.
func (p *program) note(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, format+"\n", args...)
}

// load reads the configuration that --config or DEDUP_CONFIG names and the
// environment. required are the keys the command cannot do without; none named
// means all that have no default.
func (p *program) load(required ...string) (*config.Config, error) {
	c, warnings, err := config.Load(p.file(), p.environ, required...)
	for _, w := range warnings {
		p.note("warning: %s", w)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // its lines are complete
	}
	switch {
	case p.verbose:
		c.Log.Level = slog.LevelDebug
	case p.quiet:
		c.Log.Level = max(c.Log.Level, slog.LevelWarn)
	}
	return c, nil
}

// logger logs to stderr: stdout is for data.
func (p *program) logger(c *config.Config) *slog.Logger { return app.NewLogger(p.stderr, c.Log) }

// file is the configuration file that --config or DEDUP_CONFIG names, "" for
// none.
func (p *program) file() string {
	if p.configFile != "" {
		return p.configFile
	}
	name, _ := p.lookup("DEDUP_CONFIG")
	return name
}

// lookup finds the last setting of a variable, as the system does not allow two.
func (p *program) lookup(name string) (value string, set bool) {
	for _, variable := range slices.Backward(p.environ) {
		if value, set = strings.CutPrefix(variable, name+"="); set {
			return value, true
		}
	}
	return "", false
}

// print writes data: as JSON with -o json, else as text gives it.
func (p *program) print(data any, text func(io.Writer) error) error {
	write := text
	if p.output == outputJSON {
		write = func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(data)
		}
	}
	if err := write(p.stdout); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}
