package integration

import (
	"dedupledger/integration/laws"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What the tests send and see, by the names they have in the checker.
type (
	message     = laws.Message
	want        = laws.Want
	sent        = laws.Sent
	place       = laws.Place
	output      = laws.Output
	observation = laws.Observation
	position    = laws.Position
)

const (
	byKey         = laws.ByKey
	noKey         = laws.NoKey
	ediWindow     = laws.EDIWindow
	defaultWindow = laws.DefaultWindow
	unreadable    = laws.Unreadable
)

func order(scope, control string, quantity int) message { return laws.Order(scope, control, quantity) }
func cutOrder(scope, control string) message            { return laws.CutOrder(scope, control) }

func purchaseOrder(scope string, control, quantity int) message {
	return laws.PurchaseOrder(scope, control, quantity)
}

func keyed(scope, key string, value []byte) message { return laws.Keyed(scope, key, value) }
func header(r *kgo.Record, name string) string      { return laws.Header(r, name) }
