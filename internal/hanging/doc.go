// Package hanging finds the filter's transactions that Kafka has decided on and
// never ended, and ends them as decided.
//
// A transaction ends by a marker in each of its partitions. Kafka 4.3.1 takes a
// partition without a leader for one that was deleted when it sends the markers:
// it leaves the marker out and notes the transaction as complete. A lone broker
// that is stopped cleanly takes the leadership of all its partitions away first,
// so a commit that was answered in that moment gets no marker:
//
//	the filter commits, the coordinator writes PrepareCommit and answers "committed"
//	the controller takes the leaders away, the broker is stopping
//	the coordinator finds no leader, skips all markers and writes CompleteCommit
//	the broker comes back: nobody owes these partitions a marker any more
//
// Its records stay invisible to read_committed, with all behind them, and the
// group's offset stays unstable. kafka-transactions.sh can only abort it, which
// would lose what was reported as committed.
package hanging
