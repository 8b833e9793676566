// Package cold is the ledger on PostgreSQL: the truth about who registered a
// key first and how far each raw partition was decided.
//
// Everything that decides is one SQL function and one statement with autocommit
// (migrations, ARCHITECTURE §5): no lock is ever held while PostgreSQL waits for this
// program, and an answer that got lost is asked for again by the same origin.
package cold
