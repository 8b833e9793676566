// Package topics is the wire contract of the filter: which clean topic belongs
// to a raw one, the names and the grammar of the record headers, how an output
// record is built from a raw one and read back, and how the topics are created
// and checked.
//
// Nothing here judges a message or talks to the ledger; a [Builder] writes what
// the ledger and the decision have said. Of kgo only the record type is used;
// the calls to Kafka, in Ensure, Check and FetchLayout, go through kadm.
package topics

// Closed codes of header dedup-reason, beside those of the key extractors
// (README.md). They are metric labels too, so the list never grows by
// input.
const (
	CodeScopeMalformed = "scope.malformed"
	CodeTenantMismatch = "scope.tenant_mismatch"
	CodeFedByAPI       = "scope.fed_by_api"
	CodeFlowUnknown    = "flow.unknown"
	CodeKeyNotFound    = "key.not_found"
	CodeRecordTooLarge = "record.too_large"
	CodeOutputRejected = "output.rejected"
	CodeLedgerRejected = "ledger.rejected"
)

// Limits, in characters or bytes as the tables and Kafka count them.
const (
	maxKey              = 200
	maxScopePart        = 40
	maxSourceService    = 40
	maxReason           = 64  // the longest code known has half of it
	maxTopicName        = 249 // Kafka's, whose own is that of file names
	maxOurHeaders       = 1 << 10
	maxWithAliases      = 1280     // of a record that has aliases, or is a repeat by one
	maxReferenceCarries = 32 << 10 // key and foreign headers of a reference
)
