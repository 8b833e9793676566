// Package importer reads what other systems have accepted before, as CSV or JSON
// lines, and enters it into the ledger: what `dedup import` does.
//
// A line that cannot be read is named and left out, and the others go on. Memory
// does not grow with the file, but for a dry run, which keeps 16 bytes and some
// per key to tell lines of one key.
package importer
