// Package integration holds tests only: the real program, as child processes,
// against real Kafka, Redis and PostgreSQL.
//
// A test takes a bundle (own topics, group, database, Redis prefix), starts
// filters on it, produces records and says of each what is expected, does harm,
// and at the end lets the bundle check the laws of ARCHITECTURE §2 against its own
// bookkeeping of the input. The checker never asks the product what is right.
package integration
