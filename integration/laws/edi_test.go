package laws

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSamplesHaveTheirForm(t *testing.T) {
	t.Parallel()
	require.Equal(t, 105, strings.IndexByte(string(x12PurchaseOrder(7, 1)), '~'), "ISA is 106 octets with its terminator")
	require.Equal(t, byte('>'), x12PurchaseOrder(7, 1)[104])
	require.Contains(t, string(edifactOrders("77001", 5)), "UNZ+1+77001'")
	require.NotContains(t, string(CutOrder("a:b", "77001").Value), "UNZ")
}
