package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

const envelope = `<?xml version="1.0" encoding="UTF-8"?>
<S:Envelope xmlns:S="http://www.w3.org/2003/05/soap-envelope"><S:Header><x:Other xmlns:x="urn:x"><x:MessageId>no</x:MessageId></x:Other>
<eb:Messaging xmlns:eb="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/" S:mustUnderstand="true">
<eb:UserMessage mpc="m"><eb:MessageInfo><eb:Timestamp>2026-11-02T09:30:00Z</eb:Timestamp><eb:MessageId>
 &lt;5f6b@c2.example&gt; </eb:MessageId><eb:RefToMessageId>ref@c3</eb:RefToMessageId></eb:MessageInfo>
<eb:PartyInfo><eb:From><eb:PartyId type="urn:t">POP000123</eb:PartyId><eb:PartyId>second</eb:PartyId><eb:Role>r</eb:Role></eb:From>
<eb:To><eb:PartyId>POP9</eb:PartyId></eb:To></eb:PartyInfo></eb:UserMessage>
</eb:Messaging></S:Header><S:Body><eb:UserMessage xmlns:eb="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/"/></S:Body></S:Envelope>
`

// envelopeWith replaces parts of envelope, in pairs.
func envelopeWith(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(envelope) }

func TestAS4FromSOAP(t *testing.T) {
	t.Parallel()
	const signal = "<eb:SignalMessage><eb:MessageInfo><eb:MessageId>sig@c3</eb:MessageId></eb:MessageInfo></eb:SignalMessage>"
	tests := map[string]struct {
		data, from, id string
		code           msgkey.Code
	}{
		"soap 1.2":           {data: envelope, from: "POP000123", id: "5f6b@c2.example"},
		"soap 1.1":           {data: envelopeWith("http://www.w3.org/2003/05/soap-envelope", "http://schemas.xmlsoap.org/soap/envelope/"), from: "POP000123", id: "5f6b@c2.example"},
		"mark and blanks":    {data: "\xEF\xBB\xBF\r\n" + envelope, from: "POP000123", id: "5f6b@c2.example"},
		"one pair of <> off": {data: envelopeWith("&lt;5f6b", "&lt;&lt;5f6b", "example&gt;", "example&gt;>"), from: "POP000123", id: "<5f6b@c2.example>"},
		"bundled signal":     {data: envelopeWith("<eb:UserMessage mpc", signal+"<eb:UserMessage mpc"), from: "POP000123", id: "5f6b@c2.example"},
		"empty party id":     {data: envelopeWith("POP000123", " "), from: "second", id: "5f6b@c2.example"},

		"not XML":             {data: "hello", code: msgkey.AS4NotSOAP},
		"nothing":             {data: "", code: msgkey.AS4NotSOAP},
		"other root":          {data: "<Envelope/>", code: msgkey.AS4NotSOAP},
		"UTF-16":              {data: "\xFF\xFE<\x00a\x00", code: msgkey.XMLEncoding},
		"DOCTYPE":             {data: "<!DOCTYPE a>" + envelope[len(`<?xml version="1.0" encoding="UTF-8"?>`):], code: msgkey.XMLDTDForbidden},
		"cut short":           {data: envelope[:len(envelope)-5], code: msgkey.XMLNotWellFormed},
		"header of the other": {data: envelopeWith("<S:Header>", `<S:Header xmlns:S="http://schemas.xmlsoap.org/soap/envelope/">`), code: msgkey.AS4NoMessaging},
		"other messaging":     {data: envelopeWith("200704/\" S:", "200704\" S:"), code: msgkey.AS4NoMessaging},
		"no user message":     {data: envelopeWith("<eb:UserMessage mpc", "<eb:SignalMessage mpc", "</eb:UserMessage>", "</eb:SignalMessage>"), code: msgkey.AS4NoUserMessage},
		"two":                 {data: envelopeWith("</eb:Messaging>", "<eb:UserMessage/></eb:Messaging>"), code: msgkey.AS4MultipleUserMessages},
		"no message id":       {data: envelopeWith("MessageId", "MessageID"), code: msgkey.AS4MissingMessageID},
		"empty message id":    {data: envelopeWith("5f6b@c2.example", " "), code: msgkey.AS4MissingMessageID},
		"no from":             {data: envelopeWith("eb:From", "eb:Sender"), code: msgkey.AS4MissingFrom},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, id, code := msgkey.AS4FromSOAP([]byte(tt.data))
			require.Equal(t, tt.code, code)
			require.Equal(t, tt.from, from)
			require.Equal(t, tt.id, id)
		})
	}
}

// TestTruncatedEnvelope cuts an envelope at every octet.
func TestTruncatedEnvelope(t *testing.T) {
	t.Parallel()
	for cut := range strings.TrimRight(envelope, "\n") {
		_, _, code := msgkey.AS4FromSOAP([]byte(envelope[:cut]))
		require.NotEmpty(t, code, "cut at %d", cut)
	}
}
