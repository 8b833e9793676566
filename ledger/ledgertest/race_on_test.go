//go:build race

package ledgertest_test

// shrink divides the load: the race detector looks at the code, for which a
// tenth is plenty; the million is for the rules and runs without it.
const shrink = 10
