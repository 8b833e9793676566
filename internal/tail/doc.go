// Package tail reads the last records of topics, over all partitions in the
// order of their times, and follows them: what `dedup topics tail` shows. It
// reads committed records only and keeps no more than it is asked to show.
package tail
