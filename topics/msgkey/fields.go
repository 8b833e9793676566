package msgkey

import "strings"

// KeyField is one field of a key: what it is in its format's standard, its text as the
// key has it, and where in the message that stands.
type KeyField struct {
	Name, Value string
	// Header is the name of the record header that holds it, in lower case, or "".
	Header string
	// Offset is how many octets of the value stand before the field's own, or Nowhere:
	// it is in a header, in a part with a transfer encoding, or made of the content. A
	// field of several parts is where the first of them is that is not empty. It stands
	// there as the message has it, before references, case and line breaks are resolved.
	Offset int
}

// Nowhere is the offset of what does not stand in the value.
const Nowhere = -1

// Fields tells what a key is made of, in its order, without saying where that stands.
// A date that with_date adds is not among them (Attempt.Date).
func (f Found) Fields() []KeyField {
	scheme, rest, ok := strings.Cut(f.full, ":")
	switch {
	case !ok:
		return nil
	case f.Extractor == Header:
		return []KeyField{{"header " + HeaderName, f.full, HeaderName, Nowhere}}
	}
	names, more := fieldNames(scheme)
	values := strings.Split(rest, "/") // an encoded part has none
	fields := make([]KeyField, len(values))
	for i, value := range values {
		name := more
		switch {
		case i == len(values)-1 && f.test():
			name = "test indicator"
		case i < len(names):
			name = names[i]
		}
		fields[i] = KeyField{Name: name, Value: value, Offset: Nowhere}
	}
	return fields
}

// test reports whether the last field tells test traffic.
func (f Found) test() bool {
	if strings.HasPrefix(f.full, CXML+":") {
		return strings.HasSuffix(f.full, "/T") && strings.Count(f.full, "/")%2 == 1 // of payloadID, or of it, sender and order
	}
	return f.suffix > 0
}

// fieldNames are those of a scheme, and of what stands behind them.
func fieldNames(scheme string) (names []string, more string) {
	switch scheme {
	case EDIFACT:
		return []string{"UNB S002 sender", "UNB S003 recipient", "UNB 0020 control reference"}, "UNH 0062:0065 message"
	case X12:
		return []string{"ISA05:ISA06 sender", "ISA07:ISA08 receiver", "ISA13 control number"}, "GS01:GS02:GS03:GS06 group, or ST01:ST02 transaction set"
	case UBL, CII, sharedScheme:
		return []string{"invoice or credit note", "seller (BT-31, BT-30, BT-29, BT-34)", "BT-1 invoice number", "BT-2 issue date"}, ""
	case SBDH:
		return []string{"Sender/Identifier", "DocumentIdentification/InstanceIdentifier"}, ""
	case AS4:
		return []string{"From/PartyId", "eb:MessageId"}, ""
	case AS2:
		return []string{"header " + HeaderAS2From, "header " + HeaderMessageID}, ""
	case OFTP2:
		return []string{"SFIDORIG", "SFIDDEST", "SFIDDSN", "SFIDDATE", "SFIDTIME"}, ""
	case SFTP:
		return []string{"header " + HeaderSFTPAccount, "file name, or the groups of file_pattern", "SHA-256 of the content, first half"}, ""
	case REST:
		return []string{"header " + HeaderClientID, "header " + HeaderIdempotencyKey}, ""
	case JSON:
		return nil, "value of the next JSON pointer"
	case CE:
		return []string{"source", "id"}, ""
	case CXML:
		return []string{"payloadID", "From/Credential: domain and Identity", "orderID"}, ""
	}
	return nil, "field"
}
