// Package ledgertest is the conformance suite of a ledger, for tests only.
//
// Exercise drives a ledger with random chunks from a printed seed. One phase is
// a single session whose every answer is compared with Reference, a ledger in
// memory that is given the same clock readings. The other has writers that race
// for the same keys; its answers are kept as a history, and the history is
// checked: one owner per key and window, a redelivery meets its own row, repeats
// are numbered without a hole, the accounts close.
//
// DEDUP_TEST_SEED repeats a run's random choices. How writers interleave, and
// which windows end between two chunks, is up to the machine.
package ledgertest
