// Package devservices says where Kafka, Redis and PostgreSQL come from for the
// tests and for the demo, and starts them.
//
// Start gives real services to tests. Each is looked for in this order: an
// endpoint in the environment (DEDUP_TEST_KAFKA, DEDUP_TEST_REDIS,
// DEDUP_TEST_POSTGRES), a container where a Docker engine answers, a native
// process on free loopback ports. DEDUP_TEST_SERVICES=docker or native leaves
// the other of the two out. It never falls back to a stand-in. StartEmbedded
// gives the demo its stand-ins for Kafka and Redis and a real PostgreSQL.
//
// Servers that a test starts for itself come from the same of the two. Those
// with certificates and users (StartSecureKafka and its like) are native in any
// case: their files are changed while they run.
//
// Everything started here listens on loopback only and lives in one temporary
// folder that Close removes. A native process is ended by process id, and also
// ends with its parent (on Linux by the parent-death signal). Only the folder of
// a parent that was killed stays. Containers carry the labels of
// testcontainers-go and of the run; Close removes them, and so do with-services
// and the engine's reaper when a test was killed.
package devservices

import "runtime"

// The environment variables that name services which are there already.
const (
	EnvKafka    = "DEDUP_TEST_KAFKA"    // host:port,host:port
	EnvRedis    = "DEDUP_TEST_REDIS"    // host:port
	EnvPostgres = "DEDUP_TEST_POSTGRES" // postgres:// URL of a role that may create roles and databases
	// EnvRestricted is host:port of that Kafka where a client is held to its rights
	// (Services.KafkaRestricted). with-services sets it beside EnvKafka.
	EnvRestricted = "DEDUP_TEST_KAFKA_RESTRICTED"
	// EnvFolder is the folder install.sh fills, if it is not .services under
	// the repository root.
	EnvFolder = "DEDUP_SERVICES"
	// EnvServices is ServicesDocker or ServicesNative; empty takes what is there.
	EnvServices = "DEDUP_TEST_SERVICES"
	// EnvLine hands the line of Describe to programs that were given all
	// endpoints by with-services, so that they can still say what is native.
	EnvLine = "DEDUP_TEST_SERVICES_LINE"
)

// What EnvServices may say.
const (
	ServicesDocker = "docker"
	ServicesNative = "native"
)

const onLinux = runtime.GOOS == "linux"
