package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestScopeFromAndHeaderNames: the first place that says anything decides, a
// record without a key goes by its raw partition, and renamed headers make the
// keys and pass on untouched.
func TestScopeFromAndHeaderNames(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Partitions: 3, Unprepared: true})
	b.migrate(t)
	b.createTopic(t, b.raw[0], nil)
	b.partitions = 2 // of the outputs: by key, and by raw partition without one
	for _, name := range b.outputs() {
		b.createTopic(t, name, nil)
	}
	b.partitions = 3
	env := []string{
		"DEDUP_TOPICS_SCOPE_FROM=key,header",
		"DEDUP_TOPICS_HEADER_NAMES=dedup-key=X-AS2-Message-ID,source-service=Gateway",
	}
	say := func(key, scope, id, account string) message {
		m := message{Partition: 2, Key: key, Value: []byte("payload"), Want: want{Account: account, Key: "hdr:" + id}}
		m.Headers = append(m.Headers, kgo.RecordHeader{Key: "x-as2-message-id", Value: []byte(id)}, kgo.RecordHeader{Key: "Gateway", Value: []byte("gw-7")})
		if scope != "" {
			m.Headers = append(m.Headers, kgo.RecordHeader{Key: "dedup-scope", Value: []byte(scope)})
		}
		return m
	}
	invalid := func(m message, code string) message {
		m.Want = want{Account: m.Want.Account, Code: code}
		return m
	}
	ignored := say("acme:rest", "", "5", "acme:rest")
	ignored.Headers[0].Key = "dedup-key"
	b.produce(t,
		say("acme:rest", "", "1", "acme:rest"),
		say("acme:rest", "beta:rest", "1", "acme:rest"), // the key says it first
		say(noKey, "acme:rest", "1", "acme:rest"),
		say("", "beta:rest", "1", "beta:rest"),
		say(noKey, "beta:rest", "1", "beta:rest"),
		invalid(say("4711", "beta:rest", "2", unreadable), "scope.malformed"), // no falling through
		invalid(say(noKey, "beta", "3", unreadable), "scope.malformed"),
		invalid(say(noKey, "", "4", unreadable), "scope.malformed"),
		invalid(ignored, "key.not_found"),
	)
	f := b.start(t, 0, env...)
	b.awaitOutputs(t)
	b.judgeUnordered(t)
	require.Equal(t, map[string]int{"NEW": 2, "SEEN": 3, "INVALID": 4}, b.statuses(t))
	require.EqualValues(t, 0, b.outputOf(t, 2).Record.Partition, "no key: raw partition 2 of 2")
	require.Equal(t, "gw-7", ask[string](t, b, `select distinct source_service from dedup_ledger`))
	f.term(t)

	env = append(env, "DEDUP_TOPICS_SCOPE_FROM=header,key")
	b.command(t, env, "config", "activate") // the same record is in another scope now
	f = b.start(t, 0, env...)
	b.produce(t, say("acme:rest", "beta:rest", "6", "beta:rest"), say("acme:rest", "", "6", "acme:rest"),
		invalid(say("acme:rest", "beta", "7", unreadable), "scope.malformed"))
	b.awaitOutputs(t)
	b.judgeUnordered(t)
	f.term(t)
}
