package main

import (
	"bufio"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDoorTellsTheWaysPorts: what Sentinel tells of its primary goes through with
// the way's own port, and nothing else changes.
func TestDoorTellsTheWaysPorts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		asked, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, asked+"*2\r\n$9\r\n127.0.0.1\r\n$5\r\n10001\r\n$5\r\n10003\r\n")
	}()
	d, err := openDoor(t.Context(), l.Addr().String(), map[string]string{"10001": "20001"})
	require.NoError(t, err)
	defer d.close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", d.addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "SENTINEL 10001\r\n")
	require.NoError(t, err)
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "SENTINEL 20001\r\n*2\r\n$9\r\n127.0.0.1\r\n$5\r\n20001\r\n$5\r\n10003\r\n", string(said))
	_, err = openDoor(t.Context(), l.Addr().String(), map[string]string{"10001": "9999"})
	require.ErrorContains(t, err, "differ in length")
}
