// Package crash holds what concerns the named points between two steps of the
// filter (processor/fault_off.go): that the program as it is delivered has none.
package crash
