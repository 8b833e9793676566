package access

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// broker answers each request of one byte with so many bytes behind a length.
func broker(t *testing.T, answer int) (aged *Aging, clock *time.Time) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	go func() {
		request := make([]byte, 1)
		for {
			if _, err := io.ReadFull(theirs, request); err != nil {
				return
			}
			text := binary.BigEndian.AppendUint32(nil, uint32(answer))
			if _, err := theirs.Write(append(text, make([]byte, answer)...)); err != nil {
				return
			}
		}
	}()
	now := time.Unix(1_700_000_000, 0)
	clock = &now
	return NewAging(ours, time.Minute, func() time.Time { return *clock }), clock
}

func write(t *testing.T, a *Aging) error {
	t.Helper()
	_, err := a.Write([]byte{1})
	return err
}

// TestAging: an old connection takes no request, but for one whose answer is on
// its way it waits, and not for ever.
func TestAging(t *testing.T) {
	t.Parallel()
	for _, answer := range []int{0, 1, 3000} {
		a, clock := broker(t, answer)
		require.NoError(t, write(t, a))
		*clock = clock.Add(time.Minute + 1)
		// In pieces, as a buffered reader takes it: the length, then the rest.
		_, err := io.ReadFull(a, make([]byte, 2))
		require.NoError(t, err)
		a.mu.Lock()
		require.Equal(t, 1, a.awaited, "an answer that has begun is awaited")
		a.mu.Unlock()
		_, err = io.ReadFull(a, make([]byte, 2+answer))
		require.NoError(t, err)

		err = write(t, a)
		var old *AgedError
		require.ErrorAs(t, err, &old)
		require.ErrorIs(t, err, net.ErrClosed, "clients try again what a closed connection did not take")
	}
}

func TestAgingWaitsForAnswers(t *testing.T) {
	t.Parallel()
	a, clock := broker(t, 4)
	require.NoError(t, write(t, a))
	*clock = clock.Add(time.Minute + 1)
	require.NoError(t, a.waits(), "requests are in flight")
	*clock = clock.Add(time.Minute)
	require.Error(t, a.waits(), "twice the age is the end")
}

// waits asks what a Write would be told, without one.
func (a *Aging) waits() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tooOld()
}

func TestPlainToTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	go func() { _, _ = theirs.Write([]byte{21, 3, 3, 0, 2, 2, 80}) }()
	a := NewAging(ours, time.Minute, time.Now)
	_, err := a.Read(make([]byte, 16))
	var plain *PlainToTLSError
	require.ErrorAs(t, err, &plain)
}
