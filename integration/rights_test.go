package integration

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dedupledger/internal/devservices"
	"dedupledger/ledger/hot"
	"dedupledger/topics/acl"

	"github.com/stretchr/testify/require"
)

// restricted is a bundle whose filter is held to its rights on Kafka whatever
// services the run has, and has none yet.
func restrictedBundle(t *testing.T, s setup) *bundle {
	t.Helper()
	s.Ungranted = true
	if shared.services.KafkaRestricted == "" {
		k, err := shared.services.StartKafka(t.Context(), devservices.KafkaOptions{Restricted: true})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, k.Close()) })
		s.Kafka, s.Restricted = k.Addr(), k.RestrictedAddr()
	}
	return newBundle(t, s)
}

// namedRights are the filter's, each topic by its own name.
func (b *bundle) namedRights() acl.Rights {
	named := func(topics []string) (names []acl.Name) {
		for _, topic := range topics {
			names = append(names, acl.Named(topic))
		}
		return names
	}
	return acl.Filter(named(b.raw), named(b.outputs()), b.group)
}

func (b *bundle) revoke(t *testing.T, rights ...acl.Right) {
	t.Helper()
	require.NoError(t, devservices.Revoke(t.Context(), b.admin, devservices.UserFilter, rights...))
}

// isRaw tells the right to read a raw topic: without it the topic is not seen.
func (b *bundle) isRaw(r acl.Right) bool { return slices.Contains(b.raw, r.Name.Text) }

// TestEachRightMissingAtTheStart: without any single right of the table the start
// ends with the sentence and the line that grants it, and consumes nothing; with
// all of them it runs. So the table is the least.
// Fault card: F15.
func TestEachRightMissingAtTheStart(t *testing.T) {
	t.Parallel()
	b := restrictedBundle(t, setup{Partitions: 1})
	rights := b.namedRights()
	b.allow(t, devservices.UserFilter, rights...)
	b.produce(t, orders("acme:edifact", 0, 5)...)
	for _, r := range rights {
		b.revoke(t, r)
		if b.isRaw(r) { // seen, and not read
			b.allow(t, devservices.UserFilter, acl.Right{Resource: acl.Topic, Name: r.Name, Operation: acl.Describe})
		}
		line := acl.Principal{Name: "User:filter", Bootstrap: b.entry()}.Commands(acl.Rights{r})[0]
		var said string
		until(t, "the start says "+r.String(), func(context.Context) (bool, error) { // brokers learn of it a moment later
			run := b.try(t, []string{"DEDUP_HTTP_LISTEN=127.0.0.1:0", "DEDUP_LOG_LEVEL=error"}, "run")
			said = run.stderr
			return run.code == 1 && strings.Contains(said, "Kafka principal User:filter lacks "+r.String()+"; grant: "+line), nil
		})
		t.Log(strings.TrimSpace(said))
		require.Equal(t, 1, strings.Count(said, "\n"), "one sentence")
		b.allow(t, devservices.UserFilter, r)
	}
	require.Empty(t, b.statuses(t), "nothing is consumed meanwhile")
	f := b.start(t, 0)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

var grantLine = regexp.MustCompile(`kafka-acls\.sh --bootstrap-server \S+ --add --allow-principal User:filter((?: --operation \w+)+) --(topic|group|transactional-id) (\S+?)( --resource-pattern-type prefixed)?(?: &&|["\s]|\\|$)`)

// apply does what the kafka-acls.sh lines in a text say.
func (b *bundle) apply(t *testing.T, text string) {
	t.Helper()
	lines := grantLine.FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, lines, text)
	for _, l := range lines {
		for operation := range strings.SplitSeq(strings.TrimPrefix(l[1], " --operation "), " --operation ") {
			b.allow(t, devservices.UserFilter, acl.Right{
				Resource: acl.Resource(l[2]), Name: acl.Name{Text: l[3], Prefixed: l[4] != ""}, Operation: acl.Operation(operation),
			})
		}
	}
}

// TestRepairLinesAreEnough: from no right at all, the lines that the program
// itself prints lead to a filter that runs.
func TestRepairLinesAreEnough(t *testing.T) {
	t.Parallel()
	b := restrictedBundle(t, setup{Partitions: 2})
	b.produce(t, b.everywhere("a", 5)...)
	f := b.launch(t, 0)
	f.awaitReason(t, "no raw topic yet")
	_, said, err := f.get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Contains(t, said, "if there is one it may be hidden, then grant: ")
	t.Log(strings.TrimSpace(said))
	b.apply(t, said)
	code, log := f.ends(t)
	require.Equal(t, 1, code)
	last := log[strings.LastIndex(log, "lacks"):]
	t.Log(strings.TrimSpace(last))
	b.apply(t, last)
	f = b.start(t, 0)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestRightTakenAwayAndGranted: F15. A right is taken away while the filter runs
// and given back. What needs it waits, uncommitted and not seen, readiness is red
// with the sentence; what does not goes on; nothing is lost or doubled, and the
// process is the same.
func TestRightTakenAwayAndGranted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		right func(*bundle) acl.Right
		// waits are the raw partitions, as topic index and number, that cannot go on.
		waits func(topic int, partition int32) bool
		held  bool // these, by the reason rights
	}{
		"WRITE on duplicates": {
			right: func(b *bundle) acl.Right { return acl.Output(acl.Named(b.duplicates))[1] },
			waits: func(topic int, partition int32) bool { return topic == 0 && partition == 0 }, held: true,
		},
		"WRITE on clean": {
			right: func(b *bundle) acl.Right { return acl.Output(acl.Named(b.clean[0]))[1] },
			waits: func(topic int, _ int32) bool { return topic == 0 }, held: true,
		},
		"WRITE on dead-letter": {
			right: func(b *bundle) acl.Right { return acl.Output(acl.Named(b.deadLetter))[1] },
			waits: func(topic int, partition int32) bool { return topic == 1 && partition == 1 }, held: true,
		},
		"WRITE on the transactional id": {
			right: func(b *bundle) acl.Right { return acl.Member(b.group)[1] },
			waits: func(int, int32) bool { return true },
		},
		"READ on the group": {
			right: func(b *bundle) acl.Right { return acl.Member(b.group)[0] },
			waits: func(int, int32) bool { return true },
		},
		"READ on one raw topic": {
			right: func(b *bundle) acl.Right { return acl.Raw(acl.Named(b.raw[0]))[0] },
			waits: func(topic int, _ int32) bool { return topic == 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := restrictedBundle(t, setup{Topics: []string{"as2", "as4"}, Partitions: 2})
			b.allow(t, devservices.UserFilter, b.namedRights()...)
			f := b.start(t, 0)
			b.produce(t, b.withDuplicates("before")...)
			b.awaitOutputs(t)
			right := c.right(b)
			b.revoke(t, right)
			f.awaitReason(t, "lacks "+right.String())
			f.awaitMetric(t, "dedup_missing_rights", nil, func(v float64) bool { return v == 1 })

			already := len(b.books())
			b.produce(t, b.withDuplicates("during")...)
			var waiting []place
			k := b.track(t)
			for _, s := range b.books()[already:] {
				if c.waits(s.Topic, s.Place.Partition) {
					waiting = append(waiting, s.Place)
				} else {
					k.awaitPlace(t, s.Place)
				}
			}
			for topic, raw := range b.raw {
				for p := range int32(b.partitions) {
					if c.held && c.waits(topic, p) {
						f.awaitHeld(t, fmt.Sprintf("%s/%d", raw, p), "rights")
					}
				}
			}
			b.nothingCameOf(t, waiting)
			_, said, err := f.get(t.Context(), "/readyz")
			require.NoError(t, err)
			t.Log(strings.TrimSpace(said))

			b.allow(t, devservices.UserFilter, right)
			f.awaitReady(t)
			b.produce(t, b.withDuplicates("after")...)
			b.check(t)
			f.awaitMetric(t, "dedup_missing_rights", nil, func(v float64) bool { return v == 0 })
			f.awaitLog(t, "all rights on Kafka are there again")
			f.term(t)
			b.checkStopped(t)
		})
	}
}

// withDuplicates is a message for each partition of each topic, between two
// repeats in the first partition of the first topic, and a broken one in the last
// of the last.
func (b *bundle) withDuplicates(name string) (messages []message) {
	at := func(topic int, partition int32, m message) {
		m.Topic, m.Partition = topic, partition
		messages = append(messages, m)
	}
	at(0, 0, keyed("acme:as2", "again", []byte("x")))
	for topic := range b.raw {
		for p := range int32(b.partitions) {
			at(topic, p, keyed("acme:as2", fmt.Sprintf("%s-%d-%d", name, topic, p), []byte(name)))
		}
	}
	at(0, 0, keyed("acme:as2", "again", []byte("x")))
	at(len(b.raw)-1, int32(b.partitions)-1, cutOrder("acme:edifact", name))
	return messages
}

// awaitPlace waits for the output of one raw record.
func (k *tracker) awaitPlace(t *testing.T, p place) {
	t.Helper()
	k.await(t, func() (missing int, ok bool) { return 1 - min(k.seen[p], 1), k.seen[p] > 0 })
}

// TestRedisUserWithoutSet: the filter goes on, says once which command is refused
// and what grants it, and remembers again once granted.
func TestRedisUserWithoutSet(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	rules := hot.Rules(b.redisPrefix, false)
	b.setRedisUser(t, slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == "+set" })...)
	f := b.start(t, 0, "DEDUP_REDIS_CIRCUIT_OPEN=10ms")
	f.awaitLog(t, "Redis refuses a command to this user; going on without it")
	for i := range 5 {
		b.produce(t, orders("acme:edifact", i, 2)...)
		b.awaitOutputs(t)
	}
	b.check(t)
	code, body, err := f.get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.Equal(t, 200, code, body)
	require.Contains(t, body, "refused: NOPERM this user may call the script, but not SET on key")
	require.Contains(t, body, "verdicts unaffected")
	t.Log(strings.TrimSpace(body))
	log, err := os.ReadFile(f.log)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(log), "Redis refuses a command"), "%s", log)
	require.Contains(t, string(log), hot.Grant(b.redisUser, b.redisPrefix, false))

	b.setRedisUser(t, rules...)
	f.awaitMetric(t, "dedup_hot_circuit_open", nil, func(v float64) bool { return v == 0 })
	b.produce(t, orders("acme:edifact", 100, 5)...)
	b.check(t)
	b.awaitFacts(t, redisClient(t, shared.services.RedisAddr), 5)
	f.term(t)
	b.checkStopped(t)
}

// TestReadOnlyPostgres: a role that may only read and one that is set read only
// end the start with the repair; a standby is waited for.
func TestReadOnlyPostgres(t *testing.T) {
	t.Parallel()
	pg := ownPostgres(t)
	b := newBundle(t, setup{Postgres: pg})
	b.requireFailure(t, []string{"DEDUP_POSTGRES_URL=" + b.db.ReadURL}, "PostgreSQL role dedup_read lacks INSERT on dedup_ledger", "connect as dedup_app")
	readOnly := "alter role dedup_app in database " + b.db.Name + " %s default_transaction_read_only"
	require.NoError(t, b.query(t.Context(), fmt.Sprintf(readOnly, "set")+" = on", nil))
	b.requireFailure(t, nil, "default_transaction_read_only is on", fmt.Sprintf(readOnly, "reset"))
	require.NoError(t, b.query(t.Context(), fmt.Sprintf(readOnly, "reset"), nil))

	b.produce(t, orders("acme:edifact", 0, 5)...)
	require.NoError(t, pg.Demote(t.Context()))
	f := b.launch(t, 0)
	f.awaitReason(t, "PostgreSQL is a standby and takes no writes")
	f.awaitLog(t, "waiting for postgres")
	require.NoError(t, pg.Promote(t.Context()))
	f.awaitReady(t)
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}

// TestPostgresRightTakenAwayAndGranted: a privilege is revoked while the filter
// runs and granted again. Meanwhile nothing is consumed, readiness is red without
// a break and names the privilege and the repair; then the same process goes on.
func TestPostgresRightTakenAwayAndGranted(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 1})
	f := b.start(t, 0)
	for i, c := range []struct{ privilege, on, named string }{
		{"insert", "dedup_ledger", "INSERT on dedup_ledger"},
		{"update", "dedup_position", "UPDATE on dedup_position"},
		{"execute", "function " + ask[string](t, b, `select oid::regprocedure::text from pg_proc where proname = 'dedup_register_3'`), "EXECUTE on dedup_register_3"},
	} {
		b.produce(t, orders("acme:edifact", 100*i, 5)...)
		b.awaitOutputs(t)
		b.asOwner(t, "revoke "+c.privilege+" on "+c.on+" from dedup_app")
		already := len(b.books())
		b.produce(t, orders("acme:edifact", 100*i+50, 5)...)
		f.awaitReason(t, "PostgreSQL role dedup_app lacks "+c.named+": run `dedup migrate up` as the schema's owner")
		f.awaitReason(t, `"postgres":"rights missing for`)
		var waiting []place
		for _, s := range b.books()[already:] {
			waiting = append(waiting, s.Place)
		}
		b.nothingCameOf(t, waiting)
		b.asOwner(t, "grant "+c.privilege+" on "+c.on+" to dedup_app")
		f.awaitReady(t)
		b.awaitOutputs(t)
		require.Equal(t, i+1, strings.Count(f.text(t), "the ledger answers again"), "it was red without a break")
	}
	b.check(t)
	f.term(t)
	b.checkStopped(t)
}
