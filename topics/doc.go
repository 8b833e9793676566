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
// (product.md §4). They are metric labels too, so the list never grows by
// input.
const (
	CodeScopeMalformed  = "scope.malformed"
	CodeTenantMismatch  = "scope.tenant_mismatch"
	CodeFedByAPI        = "scope.fed_by_api"
	CodeFlowUnknown     = "flow.unknown"
	CodeKeyNotFound     = "key.not_found"
	CodeRecordTooLarge  = "record.too_large"
	CodeOutputRejected  = "output.rejected"
	CodeLedgerRejected  = "ledger.rejected"
	maxReason           = 64 // characters; the longest code known has 31
	maxKey              = 200
	maxScopePart        = 40
	maxSourceService    = 40
	maxTopicName        = 249 // of Kafka, whose limit is the length of a file name
	maxOurHeaders       = 1 << 10
	maxReferenceCarries = 32 << 10
)
