// Package devservices says where Kafka, Redis and PostgreSQL come from for the
// tests and for the demo, and starts them.
//
// Start gives real services to tests. Each is looked for in this order: an
// endpoint in the environment (DEDUP_TEST_KAFKA, DEDUP_TEST_REDIS,
// DEDUP_TEST_POSTGRES), then a native process on free loopback ports. It never
// falls back to a stand-in. StartEmbedded gives the demo its stand-ins for
// Kafka and Redis and a real PostgreSQL.
//
// Everything started here listens on loopback only, lives in one temporary
// folder that Close removes, and is ended by process id; a native process also
// ends with its parent (on Linux by the parent-death signal). Only the folder of
// a parent that was killed stays.
package devservices

import "runtime"

// The environment variables that name services which are there already.
const (
	EnvKafka    = "DEDUP_TEST_KAFKA"    // host:port,host:port
	EnvRedis    = "DEDUP_TEST_REDIS"    // host:port
	EnvPostgres = "DEDUP_TEST_POSTGRES" // postgres:// URL of a role that may create roles and databases
	// EnvFolder is the folder install.sh fills, if it is not .services under
	// the repository root.
	EnvFolder = "DEDUP_SERVICES"
	// EnvLine hands the line of Describe to programs that were given all
	// endpoints by with-services, so that they can still say what is native.
	EnvLine = "DEDUP_TEST_SERVICES"
)

const onLinux = runtime.GOOS == "linux"
