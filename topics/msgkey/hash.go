package msgkey

import "crypto/sha256"

// PayloadSHA256 is the raw payload hash: SHA-256 of the record value as it is.
// A null value has the hash of the empty string.
func PayloadSHA256(value []byte) [sha256.Size]byte { return sha256.Sum256(value) }
