package msgkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]msgkey.Options{
		`Sellers "gln": no such identifier; write vat, reg, id, ep`:                          {Sellers: []msgkey.Seller{"gln"}},
		`Sellers "ep": named twice`:                                                          {Sellers: []msgkey.Seller{"ep", "ep"}},
		`X12Level "st": no such level; write group or transaction, or leave it out`:          {X12Level: "st"},
		"FilePattern \"(\": error parsing regexp: missing closing ): `(`":                    {FilePattern: "("},
		`FilePattern "a": has no capture group; put what identifies the file in parentheses`: {FilePattern: "a"},
	} {
		_, err := o.NewChain(msgkey.Header, msgkey.Auto)
		var refused *msgkey.OptionError
		require.ErrorAs(t, err, &refused)
		require.EqualError(t, err, want)
	}
	_, err := msgkey.Options{
		Lenient: true, Sellers: []msgkey.Seller{msgkey.SellerEndpoint}, X12Level: msgkey.X12Groups, FilePattern: "([0-9]+)",
	}.NewChain(msgkey.Auto)
	require.NoError(t, err)
}
