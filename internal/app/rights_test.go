package app

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/acl"
)

// A right that is missing on a tenant's topic alone lets the others start; beside
// one that ends the start it is named with it.
func TestWhatEndsAStart(t *testing.T) {
	t.Parallel()
	r := &rights{scopes: map[string]bool{"duplicates.acme": true}}
	write := func(topic string) acl.Right { return acl.Output(acl.Named(topic))[1] }
	lacks := func(rights ...acl.Right) error { return &acl.MissingError{Rights: rights} }
	other := errors.New("no broker answers")
	require.NoError(t, r.endsStart(nil))
	require.NoError(t, r.endsStart(lacks(write("duplicates.acme"))))
	for _, err := range []error{other, lacks(write("clean.as2"), write("duplicates.acme")), lacks(acl.Member("duplicates.acme")[0])} {
		require.Equal(t, err, r.endsStart(err))
	}
}
