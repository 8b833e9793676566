package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("controls", flag.ContinueOnError)
	only := flags.String("run", ".", "only the controls whose name matches `regexp`")
	timeout := flags.Duration("timeout", 10*time.Minute, "for one test, which passes in a fraction of it on a machine that has nothing else to do")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controls: -run:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := moduleRoot(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "controls:", err)
		return 1
	}
	code := 0
	for i := range controls {
		c := &controls[i]
		if !wanted.MatchString(c.name) {
			continue
		}
		began := time.Now()
		said, err := c.check(ctx, root, *timeout)
		took := time.Since(began).Round(time.Second)
		if err != nil {
			fmt.Printf("NOT CAUGHT  %s\n            %s, %s: %v\n", c.name, c.test, took, err)
			code = 1
			continue
		}
		fmt.Printf("caught      %s\n            %s, %s: %s\n", c.name, c.test, took, said)
	}
	return code
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the module's folder: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// check breaks the product and runs the test. It returns what the test said, or
// an error if it did not say what it should.
func (c *control) check(ctx context.Context, root string, timeout time.Duration) (said string, err error) {
	dir, err := os.MkdirTemp("", "dedup-control-")
	if err != nil {
		return "", fmt.Errorf("making a folder for the broken file: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := c.overlay(root, dir)
	if err != nil {
		return "", err
	}
	out, err := c.runTest(ctx, root, overlay, timeout)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return c.judge(out, err)
}

// overlay writes the broken file and the toolchain's note of it.
func (c *control) overlay(root, dir string) (note string, err error) {
	file := filepath.Join(root, filepath.FromSlash(c.file))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading what is to be broken: %w", err)
	}
	broken, err := c.apply(string(text))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(changed, []byte(broken), 0o600); err != nil {
		return "", fmt.Errorf("writing the broken file: %w", err)
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	note = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(note, b, 0o600); err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	return note, nil
}

// apply makes the changes; a text that is not there exactly once has moved, and
// the control with it.
func (c *control) apply(text string) (string, error) {
	for _, ch := range c.changes {
		if n := strings.Count(text, ch.old); n != 1 {
			return "", fmt.Errorf("%s has %d times: %q", c.file, n, ch.old)
		}
		text = strings.Replace(text, ch.old, ch.new, 1)
	}
	return text, nil
}

func (c *control) runTest(ctx context.Context, root, overlay string, timeout time.Duration) (string, error) {
	// Each part of a test's path for itself: go test splits at the slash.
	parts := strings.Split(c.test, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", timeout.String(), "-run", strings.Join(parts, "/"), c.in)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// judge tells a test that caught the fault from one that passed, one that failed
// for another reason, and a product that does not build.
func (c *control) judge(out string, failed error) (said string, err error) {
	top, _, _ := strings.Cut(c.test, "/")
	says := line(out, regexp.MustCompile(c.says).FindStringIndex(out))
	switch {
	case failed == nil && !strings.Contains(out, "no tests to run"):
		return "", errors.New("the test passed")
	case !strings.Contains(out, "--- FAIL: "+top):
		return "", fmt.Errorf("the test did not run: %w\n%s", failed, tail(out))
	case says == "":
		return "", fmt.Errorf("the test failed, but did not say %q:\n%s", c.says, tail(out))
	}
	return says, nil
}

// line is the whole of the line in which a match begins; at is nil where there is
// none.
func line(out string, at []int) string {
	if at == nil {
		return ""
	}
	from := strings.LastIndexByte(out[:at[0]], '\n') + 1
	text, _, _ := strings.Cut(out[from:], "\n")
	return strings.Join(strings.Fields(text), " ")
}

func tail(out string) string {
	const shown = 4 << 10
	return out[max(0, len(out)-shown):]
}
