package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ofEachFormat are messages of every format with a key, as the sender knows it, each in a
// flow of its format's name.
func ofEachFormat(t *testing.T) (messages []message) {
	t.Helper()
	f, err := os.Open("../topics/msgkey/testdata/message-keys.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	formats := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v struct {
			Format  string
			Payload []byte          `json:"payload_base64"`
			Headers json.RawMessage `json:"headers"`
			Key     string          `json:"expect_key"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		pointers := bytes.Contains(v.Headers, []byte("x-dedup-pointers"))
		if v.Key == "" || pointers && !bytes.Contains(v.Headers, []byte(`"/orderId"`)) {
			continue // the flow json has the pointer /orderId
		}
		formats[v.Format] = true
		m := message{Key: "acme:" + v.Format, Value: v.Payload, Want: want{Key: v.Key, Window: builtinWindow(v.Key)}}
		d := json.NewDecoder(bytes.NewReader(v.Headers))
		next := func() string { token, err := d.Token(); require.NoError(t, err); return fmt.Sprint(token) }
		for next(); d.More(); {
			m.Headers = append(m.Headers, kgo.RecordHeader{Key: next(), Value: []byte(next())})
		}
		messages = append(messages, m)
	}
	require.NoError(t, lines.Err())
	require.Len(t, formats, 14)
	return messages
}

// builtinWindow is what docs/configuration.md says of a key.
func builtinWindow(key string) time.Duration {
	days := map[string]int{"as2": 7, "as4": 30, "edifact": 60, "x12": 60, "ubl": 90, "cii": 90}
	scheme, _, _ := strings.Cut(key, ":")
	if days[scheme] == 0 {
		return 0
	}
	return time.Duration(days[scheme]) * 24 * time.Hour
}

// peppolInvoice is an invoice in an envelope, which has an id of its own.
func peppolInvoice(scope, number, instance string) message {
	const document = `<StandardBusinessDocument xmlns="http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"><StandardBusinessDocumentHeader>
<Sender><Identifier>0088:1</Identifier></Sender><DocumentIdentification><InstanceIdentifier>%s</InstanceIdentifier></DocumentIdentification></StandardBusinessDocumentHeader>
<i:Invoice xmlns:i="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:b="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2"
 xmlns:a="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"><b:ID>%s</b:ID><b:IssueDate>2026-11-02</b:IssueDate>
<a:AccountingSupplierParty><a:Party><b:EndpointID schemeID="0088">1</b:EndpointID></a:Party></a:AccountingSupplierParty></i:Invoice></StandardBusinessDocument>`
	return message{
		Key: scope, Value: fmt.Appendf(nil, document, instance, number),
		Want: want{Key: "ubl:inv/ep:0088:1/" + number + "/2026-11-02", Aliases: []string{"sbdh:0088%3A1/" + instance}, Window: 90 * 24 * time.Hour},
	}
}

// TestEveryFormatInOneTopic: whatever the hub takes in, mixed in one raw topic, each by
// the rules of its flow: built-in chains and windows, a flow's own extractor, a chain that
// goes on behind a key error, a partner's window, a further key, and a tenant who is only
// observed. What is in clean, and by which key, is judged by the laws.
func TestEveryFormatInOneTopic(t *testing.T) {
	t.Parallel()
	b := newBundle(t, setup{Topics: []string{"mixed"}, Partitions: 1, Flows: `- {match: "acme:partner", key: "edifact:4098765000014:14/*", window: 1d, with_date: true}
		- {match: "acme:json", extractors: [json], json_pointers: [/orderId]}
		- {match: "acme:as2", extractors: [as2]}
		- {match: "acme:oftp2", extractors: [oftp2]}
		- {match: "acme:sftp", extractors: [sftp]}
		- {match: "acme:rest", extractors: [rest]}
		- {match: "acme:cloudevents", extractors: [ce]}
		- {match: "newco:*", mode: observe}`})
	messages := ofEachFormat(t)

	// An interchange that is cut: its number is not taken, the transport's id is.
	cut := cutOrder("acme:as2-orders", "7")
	cut.Headers = []kgo.RecordHeader{{Key: "Message-ID", Value: []byte("<7@acme>")}, {Key: "AS2-From", Value: []byte("ACME")}}
	cut.Want = want{Key: "as2:ACME/7@acme", Window: 7 * 24 * time.Hour}
	whole := order("acme:as2-orders", "7", 5)
	whole.Headers, whole.Want.Window = cut.Headers, 60*24*time.Hour

	partner, other := order("acme:partner", "9", 5), order("acme:partner", "9", 5)
	partner.Want.Key += "/261129"
	partner.Want.Window = 24 * time.Hour
	other.Value = bytes.Replace(other.Value, []byte("4098765000014"), []byte("4098765000021"), 1)
	other.Want.Key, other.Want.Window = strings.Replace(other.Want.Key, "4098765000014", "4098765000021", 1), 60*24*time.Hour

	special := len(messages)
	messages = append(messages,
		cut, whole, cut,
		partner, other, partner,
		peppolInvoice("acme:peppol", "77", "a1"), peppolInvoice("acme:peppol", "78", "a1"), peppolInvoice("acme:peppol", "78", "a2"),
		watching(order("newco:edifact", "1", 5)), watching(order("newco:edifact", "1", 5)), watching(order("newco:edifact", "1", 6)), watching(cutOrder("newco:edifact", "2")),
	)
	for i := range messages {
		messages[i].Partition = 0
		if w := &messages[i].Want; w.Window == 0 {
			w.Window = builtinWindow(w.Key)
		}
	}
	b.produce(t, messages...)
	f := b.start(t, 0)
	b.check(t)

	for n, status := range []string{
		"NEW", "NEW", "SEEN", // by the chain
		"NEW", "NEW", "SEEN", // by partner
		"NEW", "DRIFT", "NEW", // by alias
		"NEW", "SEEN", "DRIFT", "INVALID", // observed
	} {
		out := b.outputOf(t, special+n)
		require.Equal(t, status, out.Status(), "%d: %s", n, messages[special+n].Want.Key)
		if n >= 9 {
			require.Equal(t, b.clean[0], out.Record.Topic, "observed")
		}
	}
	hit := b.outputOf(t, special+7).Record
	require.Equal(t, "sbdh:0088%3A1/a1", header(hit, "dedup-matched"))
	require.Equal(t, "alias", header(hit, "dedup-reason"))
	require.Equal(t, 2, ask[int](t, b, `select count(*) from dedup_ledger where alias_of is not null`))
	f.term(t)
	b.checkStopped(t)
}
