package msgkey

// The root element of an SBDH envelope.
const (
	sbdhSpace = "http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"
	sbdhRoot  = "StandardBusinessDocument"
)

// Places in an SBDH envelope that formats within it share.
const (
	envelope       = firstOwn + iota
	envelopeHeader // its header
	otherBody      // what it holds is of another format
	firstOfBody    // the first place of that format
)

// Places in the header.
const (
	sbdhSender = firstOfBody + iota
	sbdhSenderID
	sbdhIdentification
	sbdhInstanceID
)

// sbdhSteps is a table, never changed.
var sbdhSteps = []step{
	{from: document, space: sbdhSpace, local: sbdhRoot, to: envelope},
	{from: envelope, space: sbdhSpace, local: "StandardBusinessDocumentHeader", to: envelopeHeader},
	{from: envelopeHeader, space: sbdhSpace, local: "Sender", to: sbdhSender},
	{from: sbdhSender, space: sbdhSpace, local: "Identifier", to: sbdhSenderID, text: true},
	{from: envelopeHeader, space: sbdhSpace, local: "DocumentIdentification", to: sbdhIdentification},
	{from: sbdhIdentification, space: sbdhSpace, local: "InstanceIdentifier", to: sbdhInstanceID, text: true},
}

// fromSBDH is the extractor "sbdh": sbdh:{sender}/{InstanceIdentifier} of a
// Standard Business Document Header.
func fromSBDH(_ *Message, p payload, _ *settings) (Found, Code, bool) {
	if !p.mayBe(sbdhRoot) {
		return Found{}, SBDHUnknownRoot, false
	}
	w := newWalker(p.data, sbdhSteps, SBDHUnknownRoot)
	var s sbdh
	if code, found := w.read(&s); code != "" {
		return Found{}, code, found
	}
	return newKey(SBDH, Field{s.sender}, Field{s.id}), "", true
}

type sbdh struct {
	header     bool
	sender, id string
}

func (s *sbdh) take(w *walker, at place, ended bool) Code {
	switch {
	case at == envelopeHeader:
		s.header = true
	case at == sbdhSenderID && ended:
		first(&s.sender, w.content())
	case at == sbdhInstanceID && ended:
		first(&s.id, w.content())
	}
	return ""
}

func (s *sbdh) finish() Code {
	switch {
	case !s.header:
		return SBDHNoHeader
	case s.id == "":
		return SBDHMissingInstanceID
	case s.sender == "":
		return SBDHMissingSender
	}
	return ""
}
