package msgkey

// Code says why there is no key. The list is closed, so a Code may be a metric
// label and a header value; "" means that there is a key.
type Code string

// Codes of the chain and of the clean-up every format shares.
const (
	KeyNotFound  Code = "key.not_found" // no extractor of the chain found its format
	EmptyPayload Code = "empty_payload" // null, or nothing but blanks
)

// Codes of formats that are recognised only to be refused by name.
const (
	TradacomsNotSupported Code = "tradacoms.not_supported"
	HL7NotSupported       Code = "hl7.not_supported"
)

// Codes of the explicit key.
const (
	HeaderMissingKey Code = "header.missing_key"
	HeaderEmptyKey   Code = "header.empty_key"    // present, but blank
	HeaderKeyTooLong Code = "header.key_too_long" // more than MaxExplicit octets
)

// Codes of EDIFACT interchanges (ISO 9735).
const (
	EDIFACTNoUNB                Code = "edifact.no_unb"
	EDIFACTBadUNA               Code = "edifact.bad_una"
	EDIFACTUNBUnterminated      Code = "edifact.unb_unterminated"
	EDIFACTBadSyntaxID          Code = "edifact.bad_syntax_id"
	EDIFACTMissingSender        Code = "edifact.missing_sender"
	EDIFACTMissingRecipient     Code = "edifact.missing_recipient"
	EDIFACTMissingControlRef    Code = "edifact.missing_control_ref"
	EDIFACTControlRefTooLong    Code = "edifact.control_ref_too_long"
	EDIFACTNoUNZ                Code = "edifact.no_unz" // the record does not end with a complete UNZ
	EDIFACTUNZMismatch          Code = "edifact.unz_mismatch"
	EDIFACTMultipleInterchanges Code = "edifact.multiple_interchanges"
	EDIFACTInteractive          Code = "edifact.interactive" // UIB (ISO 9735-3)
	EDIFACTEncoding             Code = "edifact.encoding"    // UTF-16
)

// Codes of X12 interchanges (X12.5).
const (
	X12NoISA                Code = "x12.no_isa"
	X12ISATruncated         Code = "x12.isa_truncated"
	X12ISALayout            Code = "x12.isa_layout"
	X12BadSeparators        Code = "x12.bad_separators"
	X12MissingSender        Code = "x12.missing_sender"
	X12MissingReceiver      Code = "x12.missing_receiver"
	X12BadControlNumber     Code = "x12.bad_control_number"
	X12NoIEA                Code = "x12.no_iea" // the record does not end with an IEA
	X12IEAMismatch          Code = "x12.iea_mismatch"
	X12MultipleInterchanges Code = "x12.multiple_interchanges"
	X12Encoding             Code = "x12.encoding" // UTF-16
)

// Codes of every XML format.
const (
	XMLNotWellFormed Code = "xml.not_well_formed" // not XML 1.0 with namespaces, or cut short
	XMLDTDForbidden  Code = "xml.dtd_forbidden"   // a DOCTYPE, in cXML one with an internal subset
	XMLTooDeep       Code = "xml.too_deep"        // beyond a limit of the reader
	XMLEncoding      Code = "xml.encoding"        // UTF-16, or a declared encoding that is not read
)

// Codes of UBL invoices (OASIS UBL 2.1).
const (
	UBLUnknownRoot      Code = "ubl.unknown_root" // neither Invoice nor CreditNote
	UBLMissingID        Code = "ubl.missing_id"
	UBLMissingIssueDate Code = "ubl.missing_issue_date"
	UBLBadIssueDate     Code = "ubl.bad_issue_date"
	UBLMissingSeller    Code = "ubl.missing_seller"
)

// Codes of CII invoices (UN/CEFACT CrossIndustryInvoice).
const (
	CIIUnknownRoot      Code = "cii.unknown_root"
	CIIMissingID        Code = "cii.missing_id"
	CIIMissingIssueDate Code = "cii.missing_issue_date"
	CIIBadIssueDate     Code = "cii.bad_issue_date"
	CIIMissingSeller    Code = "cii.missing_seller"
)

// Codes of the Standard Business Document Header.
const (
	SBDHUnknownRoot        Code = "sbdh.unknown_root"
	SBDHNoHeader           Code = "sbdh.no_header"
	SBDHMissingInstanceID  Code = "sbdh.missing_instance_id"
	SBDHMissingSender      Code = "sbdh.missing_sender"
	SBDHNoBusinessDocument Code = "sbdh.no_business_document" // an invoice was looked for in an envelope that is empty
)

// Codes of cXML.
const (
	CXMLUnknownRoot      Code = "cxml.unknown_root"
	CXMLMissingPayloadID Code = "cxml.missing_payload_id"
)

// Codes of AS4 messages (ebMS 3.0).
const (
	AS4BadMultipart         Code = "as4.bad_multipart" // no boundary, or no delimiter where one must be
	AS4NoSOAPPart           Code = "as4.no_soap_part"  // no MIME and no XML, or the root part is no XML
	AS4NotSOAP              Code = "as4.not_soap"
	AS4NoMessaging          Code = "as4.no_messaging"    // SOAP without the ebMS header
	AS4NoUserMessage        Code = "as4.no_user_message" // signals alone: a receipt, an error, a pull
	AS4MultipleUserMessages Code = "as4.multiple_user_messages"
	AS4MissingMessageID     Code = "as4.missing_message_id"
	AS4MissingFrom          Code = "as4.missing_from"
)

// Codes of AS2 messages (RFC 4130).
const (
	AS2MissingMessageID  Code = "as2.missing_message_id"
	AS2EmptyMessageID    Code = "as2.empty_message_id"
	AS2BadMessageID      Code = "as2.bad_message_id"      // blanks or controls in it, or more than 998 octets
	AS2MultipleMessageID Code = "as2.multiple_message_id" // headers with different values
	AS2MissingFrom       Code = "as2.missing_from"
)

// Codes of OFTP2 files (RFC 5024).
const (
	OFTP2MissingDSN  Code = "oftp2.missing_dsn"
	OFTP2MissingOrig Code = "oftp2.missing_orig"
	OFTP2MissingDest Code = "oftp2.missing_dest"
	OFTP2BadDate     Code = "oftp2.bad_date" // not CCYYMMDD
	OFTP2BadTime     Code = "oftp2.bad_time" // not HHMMSScccc
	OFTP2BadSFID     Code = "oftp2.bad_sfid" // no command SFID in base64
)

// Codes of files.
const (
	SFTPMissingFilename Code = "sftp.missing_filename"
	SFTPMissingAccount  Code = "sftp.missing_account"
)

// Codes of HTTP requests (Idempotency-Key).
const (
	RESTMissingKey    Code = "rest.missing_key"
	RESTBadSFString   Code = "rest.bad_sf_string" // no Structured Field String, and no bare key
	RESTKeyTooLong    Code = "rest.key_too_long"  // more than 255 octets
	RESTMissingClient Code = "rest.missing_client"
)

// Codes of JSON documents.
const (
	JSONNotJSON         Code = "json.not_json"
	JSONPointerNotFound Code = "json.pointer_not_found"
	JSONNotScalar       Code = "json.not_scalar" // null, an object, an array, or more than 64 KiB
	JSONEmptyValue      Code = "json.empty_value"
	JSONDuplicateMember Code = "json.duplicate_member" // a name on the pointer's path stands twice
)

// Codes of CloudEvents.
const (
	CEMissingSpecversion Code = "ce.missing_specversion"
	CEMissingID          Code = "ce.missing_id"
	CEMissingSource      Code = "ce.missing_source"
	CENotJSON            Code = "ce.not_json"
	CEUnsupportedFormat  Code = "ce.unsupported_format" // structured, in another format than JSON
	CEBatchUnsupported   Code = "ce.batch_unsupported"
)

// Codes lists every code that this package can give, in the order of the
// documentation.
func Codes() []Code {
	return []Code{
		KeyNotFound, EmptyPayload, TradacomsNotSupported, HL7NotSupported,
		HeaderMissingKey, HeaderEmptyKey, HeaderKeyTooLong,
		EDIFACTNoUNB, EDIFACTBadUNA, EDIFACTUNBUnterminated, EDIFACTBadSyntaxID,
		EDIFACTMissingSender, EDIFACTMissingRecipient, EDIFACTMissingControlRef,
		EDIFACTControlRefTooLong, EDIFACTNoUNZ, EDIFACTUNZMismatch,
		EDIFACTMultipleInterchanges, EDIFACTInteractive, EDIFACTEncoding,
		X12NoISA, X12ISATruncated, X12ISALayout, X12BadSeparators, X12MissingSender,
		X12MissingReceiver, X12BadControlNumber, X12NoIEA, X12IEAMismatch,
		X12MultipleInterchanges, X12Encoding,
		XMLNotWellFormed, XMLDTDForbidden, XMLTooDeep, XMLEncoding,
		UBLUnknownRoot, UBLMissingID, UBLMissingIssueDate, UBLBadIssueDate, UBLMissingSeller,
		CIIUnknownRoot, CIIMissingID, CIIMissingIssueDate, CIIBadIssueDate, CIIMissingSeller,
		SBDHUnknownRoot, SBDHNoHeader, SBDHMissingInstanceID, SBDHMissingSender, SBDHNoBusinessDocument,
		AS4BadMultipart, AS4NoSOAPPart, AS4NotSOAP, AS4NoMessaging, AS4NoUserMessage, AS4MultipleUserMessages,
		AS4MissingMessageID, AS4MissingFrom,
		AS2MissingMessageID, AS2EmptyMessageID, AS2BadMessageID, AS2MultipleMessageID, AS2MissingFrom,
		OFTP2MissingDSN, OFTP2MissingOrig, OFTP2MissingDest, OFTP2BadDate, OFTP2BadTime, OFTP2BadSFID,
		SFTPMissingFilename, SFTPMissingAccount,
		RESTMissingKey, RESTBadSFString, RESTKeyTooLong, RESTMissingClient,
		JSONNotJSON, JSONPointerNotFound, JSONNotScalar, JSONEmptyValue, JSONDuplicateMember,
		CEMissingSpecversion, CEMissingID, CEMissingSource, CENotJSON, CEUnsupportedFormat, CEBatchUnsupported,
		CXMLUnknownRoot, CXMLMissingPayloadID,
	}
}
