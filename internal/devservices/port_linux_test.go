package devservices

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPortIsKept: nobody else gets a port that was taken here, although nobody
// listens there yet.
func TestPortIsKept(t *testing.T) {
	t.Parallel()
	port, err := FreePort()
	require.NoError(t, err)
	require.False(t, portTaken(port))
	require.False(t, claimPort(port), "another could have taken the port as well")
	l, err := net.Listen("tcp", address(port))
	require.NoError(t, err, "the owner may listen")
	require.NoError(t, l.Close())
}
