// Package house holds tests of the tree itself: which package may import which,
// that the documents name only what exists, and words that do not belong.
//
// It has no code of its own. It is a package apart because the tests look at
// all others: in internal/app they would tie the wiring to the documents, and
// in cmd/dedup the borders to one program.
package house
