package processor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/ledger"
	"dedupledger/topics"
)

// The tenant of a raw topic decides, where there is one: whoever writes to it
// reaches neither accounts nor keys of the tenant he names.
func TestTenantOfTheRawTopic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tenant, key string
		value             int // bytes
		account, reason   string
	}{
		{name: "any tenant", key: "beta:as2", account: "beta:as2"},
		{name: "its own", tenant: "acme", key: "acme:as2", account: "acme:as2"},
		{name: "another", tenant: "acme", key: "beta:as2", account: "acme:as2", reason: topics.CodeTenantMismatch},
		{name: "another, by its case", tenant: "acme", key: "ACME:as2", account: "acme:as2", reason: topics.CodeTenantMismatch},
		{name: "none that can be read", tenant: "acme", key: "beta", account: ledger.UnreadableScope, reason: reasonScopeMalformed},
		{name: "another, too large", tenant: "acme", key: "beta:as2", value: 2000, account: "acme:as2", reason: reasonTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &session{
				cfg:    &Config{Keyer: headerKey{}, MaxRecord: 1000},
				routes: map[string]*topics.Route{rawTopic: {Raw: rawTopic, Tenant: c.tenant}},
			}
			var r ledger.Registration
			s.decode(&batch{}, &item{reg: &r}, &kgo.Record{
				Topic: rawTopic, Key: []byte(c.key), Value: make([]byte, c.value),
				Headers: []kgo.RecordHeader{{Key: topics.HeaderKey, Value: []byte("1")}},
			}, ledger.Origin{})
			require.Equal(t, c.account, r.Account)
			require.Equal(t, c.reason, r.Reason)
			if c.reason != "" {
				require.Empty(t, r.Keys)
				return
			}
			require.Len(t, r.Keys, 1)
			require.Equal(t, c.account, r.Keys[0].Scope)
		})
	}
}
