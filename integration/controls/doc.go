// Command controls breaks the product, one rule at a time, and requires that the
// test which guards the rule says so. A test that passes on the broken product
// guards nothing.
//
// A control replaces a few lines of one file. Nothing is written into the tree:
// the toolchain is told of the changed file by -overlay, for the test program
// and, through GOFLAGS, for the filter that the test builds and runs.
//
//	go run ./integration/controls [-run REGEXP] [-timeout 20m]
//
// It prints a line per control and exits with 1 if one was not caught.
package main
