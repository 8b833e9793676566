// Package crash holds tests that break the filter at every step of a batch and
// of a session's life, in process, thousands of times, and require each time that
// nothing was lost, doubled or counted twice.
//
//	make crash
package crash
