package importer

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"dedupledger/ledger"
)

// maxRepeats bounds what a dry run keeps, some 40 bytes each.
const maxRepeats = 20_000_000

// repeats tells a dry run which keys a real one would have entered by then: digest
// of the key to begin of its hash. Two of twenty million keys share a digest once
// in a hundred thousand files; a count would be off by one.
type repeats struct {
	hashes map[int64]uint64
	full   bool
}

// look is what would have become of a line: one whose key an earlier line would
// have entered is known by that line's hash.
func (r *repeats) look(l *ledger.ImportLine, s ledger.Imported) ledger.Imported {
	if s != ledger.Entered && s != ledger.Known && s != ledger.KnownOtherHash {
		return s
	}
	digest, hash := l.Key.Digest(), binary.BigEndian.Uint64(l.PayloadSHA256[:8])
	was, met := r.hashes[digest]
	switch {
	case met && was == hash:
		return ledger.Known
	case met:
		return ledger.KnownOtherHash
	case s != ledger.Entered:
		return s
	case len(r.hashes) >= maxRepeats:
		r.full = true
		return s
	case r.hashes == nil:
		r.hashes = map[int64]uint64{}
	}
	r.hashes[digest] = hash
	return s
}

// kept is a file's name as the ledger's columns take it.
func kept(name string) string {
	name = strings.ReplaceAll(strings.ToValidUTF8(name, "?"), "\x00", "?")
	for utf8.RuneCountInString(name) > badKept {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}
