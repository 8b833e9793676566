package devservices

// The images of the services, for tests in containers and in
// docker-compose.yml. This is the one place: internal/house compares the others.
const (
	KafkaImage    = "apache/kafka:4.3.1"
	RedisImage    = "redis:7.4.5-alpine"
	PostgresImage = "postgres:17.6-alpine"
)
