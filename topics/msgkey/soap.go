package msgkey

import "bytes"

// Namespace names of the envelope and of ebMS 3.0.
const (
	soap11 = "http://schemas.xmlsoap.org/soap/envelope/"
	soap12 = "http://www.w3.org/2003/05/soap-envelope"
	ebms   = "http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/"
)

// Places in the envelope. The header is one place for each version, as it must
// be of the envelope's own namespace.
const (
	soapEnvelope11 = firstOwn + iota
	soapEnvelope12
	soapHeader
	ebMessaging
	ebUserMessage
	ebMessageInfo
	ebMessageID
	ebPartyInfo
	ebFrom
	ebPartyID
)

// soapSteps is a table, never changed.
var soapSteps = []step{
	{from: document, space: soap11, local: "Envelope", to: soapEnvelope11},
	{from: document, space: soap12, local: "Envelope", to: soapEnvelope12},
	{from: soapEnvelope11, space: soap11, local: "Header", to: soapHeader},
	{from: soapEnvelope12, space: soap12, local: "Header", to: soapHeader},
	{from: soapHeader, space: ebms, local: "Messaging", to: ebMessaging},
	{from: ebMessaging, space: ebms, local: "UserMessage", to: ebUserMessage},
	{from: ebUserMessage, space: ebms, local: "MessageInfo", to: ebMessageInfo},
	{from: ebMessageInfo, space: ebms, local: "MessageId", to: ebMessageID, text: true},
	{from: ebUserMessage, space: ebms, local: "PartyInfo", to: ebPartyInfo},
	{from: ebPartyInfo, space: ebms, local: "From", to: ebFrom},
	{from: ebFrom, space: ebms, local: "PartyId", to: ebPartyID, text: true},
}

// as4FromSOAP reads the UserMessage of an ebMS 3.0 envelope: the SOAP part of a
// multipart message, or the whole of a bare one, byte order mark and blanks in
// front included. from is the first PartyId of From, messageID the eb:MessageId
// without a pair of angle brackets, both as UTF-8 with white space collapsed.
// The codes are those of AS4 from AS4NotSOAP on, and those of XML. AS4NotSOAP
// means that another format was found, all others that the envelope was.
func as4FromSOAP(data []byte) (from, messageID string, code Code) {
	p := clean(data)
	switch {
	case p.format != FormatXML, !p.mayBe("Envelope"):
		return "", "", AS4NotSOAP
	case p.utf16:
		return "", "", XMLEncoding
	}
	w := newWalker(p.data, soapSteps, AS4NotSOAP)
	var u userMessage
	if code, _ := w.read(&u); code != "" {
		return "", "", code
	}
	return u.from, u.id, ""
}

// userMessage is what is read of an envelope.
type userMessage struct {
	messaging bool
	messages  int
	from, id  string
}

func (u *userMessage) take(w *walker, at place, ended bool) Code {
	switch {
	case at == ebMessaging:
		u.messaging = true
	case at == ebUserMessage && !ended:
		u.messages++
	case at == ebMessageID && ended && u.id == "":
		u.id = string(unbracketed(w.content()))
	case at == ebPartyID && ended && u.from == "":
		u.from = string(w.content())
	}
	return ""
}

func (u *userMessage) finish() Code {
	switch {
	case !u.messaging:
		return AS4NoMessaging
	case u.messages == 0:
		return AS4NoUserMessage
	case u.messages > 1:
		return AS4MultipleUserMessages
	case u.id == "":
		return AS4MissingMessageID
	case u.from == "":
		return AS4MissingFrom
	}
	return ""
}

// unbracketed takes one pair of angle brackets off a message id.
func unbracketed(id []byte) []byte {
	if len(id) >= 2 && id[0] == '<' && id[len(id)-1] == '>' {
		return bytes.Trim(id[1:len(id)-1], " ")
	}
	return id
}
