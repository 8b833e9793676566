//go:build !race

package ledgertest_test

const shrink = 1
