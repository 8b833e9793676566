// Package access is how connections to Kafka, Redis and PostgreSQL are secured:
// passwords and certificates that are read anew whenever a connection is made,
// so that what was rotated needs no restart; the age at which a connection gives
// way to a new one; and one sentence for each way in which a connection is
// refused.
package access
