package integration

import (
	"context"
	"slices"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/ledger/hot"
	"dedupledger/topics/acl"

	"github.com/stretchr/testify/require"
)

// The filter of every test runs with the least rights of docs/rights.md, taken
// from the same tables as the page: on Kafka and Redis as a user of its own, in
// PostgreSQL as dedup_app. The tests themselves look on as administrators.
//
// That is so with services of our own. A Kafka that the environment names has no
// listener RESTRICTED, and a proxy stands before the other listener.

const redisPassword = "redis-secret"

// filterRights are all that the bundle's filter may do on Kafka.
func (b *bundle) filterRights() acl.Rights {
	return acl.Filter([]acl.Name{acl.Prefix("raw-ingest." + b.id + ".")}, b.outputNames(), b.group)
}

func (b *bundle) outputNames() []acl.Name {
	return []acl.Name{acl.Prefix("clean." + b.id + "."), acl.Named(b.duplicates), acl.Named(b.deadLetter)}
}

// makerRights are those of who runs `dedup topics ensure`.
func (b *bundle) makerRights() acl.Rights {
	return acl.Ensure(append(b.outputNames(), acl.Prefix("raw-ingest."+b.id+".")))
}

func (b *bundle) grantRights(t *testing.T, s setup) {
	t.Helper()
	b.allow(t, devservices.UserMaker, b.makerRights()...)
	if !s.Ungranted {
		b.allow(t, devservices.UserFilter, b.filterRights()...)
	}
	if s.Redis == "" {
		b.redisUser = "filter-" + b.id
		b.setRedisUser(t, hot.Rules(b.redisPrefix, false)...)
	}
}

// allow grants for the life of the test, where rights are held to.
func (b *bundle) allow(t *testing.T, user string, rights ...acl.Right) {
	t.Helper()
	if b.restricted == "" {
		return
	}
	require.NoError(t, devservices.Grant(t.Context(), b.admin, user, rights...))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, r := range rights { // a test may have taken some away
			_ = devservices.Revoke(ctx, b.admin, user, r)
		}
	})
}

// setRedisUser makes the bundle's user on the run's Redis, or gives it other
// rules.
func (b *bundle) setRedisUser(t *testing.T, rules ...string) {
	t.Helper()
	c := redisClient(t, shared.services.RedisAddr)
	args := []any{"acl", "setuser", b.redisUser, "reset", "on", ">" + redisPassword}
	for _, r := range rules {
		args = append(args, r)
	}
	require.NoError(t, c.Do(t.Context(), args...).Err())
	t.Cleanup(func() {
		_ = redisClient(t, shared.services.RedisAddr).Do(context.WithoutCancel(t.Context()), "acl", "deluser", b.redisUser).Err()
	})
}

// asMaker is the environment in which a command logs in as the one who may make
// topics, where the command does that.
func (b *bundle) asMaker(args []string) []string {
	if b.restricted == "" || len(args) < 2 || args[0] != "topics" || slices.Contains([]string{"tail", "adopt", "retire"}, args[1]) {
		return nil
	}
	return []string{
		"DEDUP_KAFKA_SASL_USERNAME=" + devservices.UserMaker,
		"DEDUP_KAFKA_SASL_PASSWORD=" + devservices.RestrictedPassword(devservices.UserMaker),
	}
}

// entry is host:port that the program's configuration names.
func (b *bundle) entry() string {
	if b.restricted != "" {
		return b.restricted
	}
	return b.brokers[0]
}
