// Package hot is the hot tier: facts about live ledger rows in Redis, or in a
// server that speaks its protocol. It remembers and never decides: a fact that
// is missing, stale, foreign or a lie changes no verdict of the filter.
//
// # Keys
//
// One Redis string per ledger key:
//
//	<prefix><ledger id>:<22 characters>
//
// The 22 characters are the unpadded base64url (RFC 4648 §5) of the first 16
// bytes of SHA-256(ledger scope ‖ 0 ‖ key). Hashing keeps partner-supplied bytes out of
// the key, above all braces: in Redis Cluster the first {…} of a key chooses its
// slot, so a partner could heap every message on one node. Every key has a TTL.
//
// # Values
//
// 88 bytes, integers big endian:
//
//	 0  1  version of the format: 1
//	 1  1  flags: bit 0 set in a tombstone (the row was closed before it expired),
//	       bit 1 set when the row also has a hash of a canonical mode
//	 2  1  reserved: 0
//	 3  1  gate: 1 kafka, 2 api, 3 import
//	 4  8  first seen, microseconds since 1970 UTC, Postgres's clock
//	12 32  origin. kafka: topic id 16, partition 4, leader epoch 4, offset 8;
//	       otherwise SHA-256(client ‖ 0 ‖ attempt)
//	44  8  expires, microseconds since 1970 UTC, Postgres's clock
//	52  4  repeats so far, at most 4294967295
//	56 32  SHA-256 of the first payload
//
// Bytes 3 to 43 name a row among all rows of its key. Any other length or
// version is foreign: it is read as absent and overwritten. A later version
// takes another first byte.
//
// # Rules of writing
//
// A fact is written only after the commit of what it tells, with what is left of
// the row's window as PX, never with a fresh window. It gives way to a value
// with a later first-seen and to the tombstone of its own row; both are checked
// and written by one script of one key, so there is no moment in between. A
// value that claims a first-seen more than an hour ahead of Postgres is foreign.
package hot
