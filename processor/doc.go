// Package processor is the filter's loop (ARCHITECTURE §5): poll, decode, register,
// decide, produce, commit, confirm; and the rule that says where a partition
// starts (ARCHITECTURE §4).
//
// Who does what:
//
//	processor.go   sessions, their supervision, the watchdog
//	loop.go        one session's life: the order of the steps
//	flush.go       what is done when nothing came: W, outputs' ends
//	failure.go     which errors wait, which end
//	session.go     the Kafka client: poll, transaction, seek; with group.go and
//	               compress.go (its callbacks and settings), reader.go and limit.go
//	               no other file calls kgo
//	admin.go       what is asked of brokers and coordinators
//	assign.go      applies the position rule to newly assigned partitions
//	position.go    the rule itself, pure
//	partition.go   what a session knows of one raw partition
//	decode.go      record -> registration or closed code, pure
//	batch.go       a poll, cut into chunks
//	register.go    a batch through the ledger
//	decide.go      registration + row -> verdict, pure
//	isolate.go     finds the record that an output refuses
//	output.go      verdict -> output record; where outputs lie
//	learn.go       reads the committed outputs back after Postgres lost commits
//	reader.go      the committed outputs in the order of their origins
//	replaced.go    another process with the same slot
//	slot.go        the process's slot, and its change under way
//	leave.go       a stop that is for good
//	idle.go        more sessions than partitions, said once
//	names.go       topic ids -> present names
//	status.go      what /readyz tells
//	metrics.go     and ages.go: docs/operations.md, what exists so far
//
// It never imports pgx or go-redis: the ledger is what config.go asks for.
package processor
