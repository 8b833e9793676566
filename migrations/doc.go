// Package migrations holds the schema of the ledger as numbered SQL, embedded,
// and applies it. Several processes may do so at once: one works, the others
// wait and find nothing left to do.
//
// Migrations only go forward. Each is safe under the previous version's running
// program; a changed SQL function is a new function (dedup_register_2), and the
// old one goes a release later. Rights are granted to the roles dedup_app and
// dedup_read where they exist; roles and passwords are never created here.
package migrations
