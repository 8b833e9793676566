// Package demo shows the filter at work: what it decides, that a kill in the
// middle of a batch loses and doubles nothing, that a group set back to offset
// 0 is not obeyed, and that Redis is not needed for a verdict.
//
// The filter is the real program as a child process; Kafka and Redis are the
// stand-ins of internal/devservices in this process, PostgreSQL is a real one.
// Nothing is asserted from the filter's own words: what was sent is booked here,
// and verdicts, losses and doubles are counted from the committed outputs.
package demo
