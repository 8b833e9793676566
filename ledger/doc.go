// Package ledger is the contract between the filter and what remembers its
// messages: who registered a key first, what the verdict on a record is, and
// how far a raw partition has been decided and committed.
//
// The children hold one technology each and never import each other:
// ledger/cold is PostgreSQL (the truth), ledger/hot is Redis (a memory of it).
// This package holds no I/O.
package ledger
