package docker

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"dedupledger/internal/devservices"
)

const (
	// stopGrace is how long a server may take to end after it was asked to.
	stopGrace = 30 * time.Second
	// removedWithin bounds the removal of all containers of a run.
	removedWithin = 60 * time.Second
	// killed is the exit code after SIGKILL.
	killed = 128 + 9
)

// box is one container.
type box struct {
	c      testcontainers.Container
	client client.APIClient
	name   string // of the image, for errors
}

// did says what was tried with the container.
func (b *box) did(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s the container of %s: %w", what, b.name, err)
}

func (b *box) id() string { return b.c.GetContainerID() }

// Start starts it, the first time or again.
func (b *box) Start(ctx context.Context) error {
	return b.did("starting", b.c.Start(ctx))
}

// Stop asks it to end.
func (b *box) Stop(ctx context.Context) error {
	grace := stopGrace
	if err := b.c.Stop(ctx, &grace); err != nil {
		return b.did("stopping", err)
	}
	st, err := b.State(ctx)
	if err == nil && st.ExitCode == killed {
		return fmt.Errorf("the container of %s did not end within %s and was killed", b.name, stopGrace)
	}
	return err
}

// Kill ends all its processes at once and returns when they are gone.
func (b *box) Kill(ctx context.Context) error {
	// The wait is for the end that this kill brings, so it comes first.
	ended := b.client.ContainerWait(ctx, b.id(), client.ContainerWaitOptions{Condition: "not-running"})
	if _, err := b.client.ContainerKill(ctx, b.id(), client.ContainerKillOptions{Signal: "KILL"}); err != nil && !errdefs.IsConflict(err) {
		return b.did("killing", err)
	}
	select {
	case <-ended.Result:
		return nil
	case err := <-ended.Error:
		return b.did("waiting for the end of", err)
	}
}

// Pause freezes all its processes.
func (b *box) Pause(ctx context.Context) error {
	_, err := b.client.ContainerPause(ctx, b.id(), client.ContainerPauseOptions{})
	return b.did("pausing", err)
}

// Continue ends a Pause.
func (b *box) Continue(ctx context.Context) error {
	_, err := b.client.ContainerUnpause(ctx, b.id(), client.ContainerUnpauseOptions{})
	return b.did("continuing", err)
}

// State is as the engine knows it.
func (b *box) State(ctx context.Context) (devservices.ContainerState, error) {
	st, err := b.c.State(ctx)
	if err != nil {
		return devservices.ContainerState{}, b.did("looking at", err)
	}
	return devservices.ContainerState{Running: st.Running, ExitCode: st.ExitCode, PID: st.Pid}, nil
}

// Address is that of its first network.
func (b *box) Address(ctx context.Context) (string, error) {
	ip, err := b.c.ContainerIP(ctx)
	return ip, b.did("looking for the address of", err)
}

// linesOfLog are read to find the end of a log.
const linesOfLog = 200

// Log is the end of what it wrote.
func (b *box) Log(ctx context.Context, most int) (string, error) {
	r, err := b.client.ContainerLogs(ctx, b.id(), client.ContainerLogsOptions{
		ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(linesOfLog),
	})
	if err != nil {
		return "", b.did("reading the log of", err)
	}
	defer func() { _ = r.Close() }()
	var text tail
	text.most = most
	if _, err := stdcopy.StdCopy(&text, &text, r); err != nil {
		return "", b.did("reading the log of", err)
	}
	return string(text.kept), nil
}

// tail keeps the last bytes written to it.
type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-t.most):]
	return len(p), nil
}

// CopyFrom is a folder of it as a tar archive.
func (b *box) CopyFrom(ctx context.Context, folder string) (io.ReadCloser, error) {
	r, err := b.client.CopyFromContainer(ctx, b.id(), client.CopyFromContainerOptions{SourcePath: folder})
	if err != nil {
		return nil, b.did("copying from", err)
	}
	return r.Content, nil
}

// CopyTo puts a tar archive below a folder of it.
func (b *box) CopyTo(ctx context.Context, folder string, archive io.Reader) error {
	_, err := b.client.CopyToContainer(ctx, b.id(), client.CopyToContainerOptions{DestinationPath: folder, Content: archive})
	return b.did("copying to", err)
}

// Remove ends it and removes it with its volumes.
func (b *box) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removedWithin)
	defer cancel()
	// Terminate tells the reaper as well, but stops in peace first: this is
	// quicker for what nobody wants any more.
	if err := remove(ctx, b.client, b.id()); err != nil {
		return b.did("removing", err)
	}
	if err := b.c.Terminate(ctx, testcontainers.StopTimeout(0)); err != nil && !errdefs.IsNotFound(err) {
		return b.did("removing", err)
	}
	return nil
}

// remove takes a container that is gone for success.
func remove(ctx context.Context, c client.APIClient, id string) error {
	_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err //nolint:wrapcheck // the caller says which
}
