#!/bin/bash
# Starts docker-compose.yml with the sample, looks at what became of it, takes
# everything down and up again, and looks whether anything came a second time.
# It needs a Docker engine with Compose and a built bin/dedup; it has a project,
# volumes and ports of its own and removes them. DEDUP_TARGET=source builds the
# image from the tree instead.
set -euo pipefail
cd "$(dirname "$0")/../.."

within=180           # seconds for each wait
image_limit=40000000 # bytes
project=dedup-ledger-check-$$

# Ports below those the system gives to outgoing connections.
free_port() {
	local port
	for _ in $(seq 200); do
		port=$((RANDOM % 17000 + 15000))
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
	done
	echo "no free port found" >&2
	return 1
}
export DEDUP_TARGET=${DEDUP_TARGET:-binary}
KAFKA_PORT=$(free_port) REDIS_PORT=$(free_port) POSTGRES_PORT=$(free_port) HTTP_PORT=$(free_port)
export KAFKA_PORT REDIS_PORT POSTGRES_PORT HTTP_PORT

compose() { docker compose -p "$project" --profile sample "$@"; }

finish() {
	local code=$?
	trap - EXIT INT TERM
	if [ "$code" != 0 ]; then
		compose ps || true
		compose logs --no-color --tail 40 || true
	fi
	compose down -v --remove-orphans >/dev/null 2>&1 || true
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What a reader has printed of verdicts: the line of the header.
printed() { compose logs --no-color "$1" 2>/dev/null | grep -E " dedup-status: ($2)\$" || true; }
count() { printed "$1" "$2" | wc -l; }

await() { # WHAT COMMAND...: until the command says yes
	local what=$1 end=$((SECONDS + within))
	shift
	until "$@"; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "compose-check: waited ${within} s in vain for $what"
			return 1
		fi
		sleep 0.5
	done
}
holds() { [ "$(count "$1" "$2")" -ge "$3" ]; }
healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$(compose ps -q dedup)")" = healthy ]; }
# The topics as they are, partition by partition.
ends() {
	compose exec -T kafka /opt/kafka/bin/kafka-get-offsets.sh --bootstrap-server kafka:9092 --topic-partitions clean.as2,duplicates,dead-letter
}
expect() { # WHAT WANT GOT
	echo "   $1: $3"
	if [ "$2" != "$3" ]; then
		echo "compose-check: $1: expected $2"
		return 1
	fi
}

docker compose version
echo "1. up with the sample"
compose up -d --build >/dev/null 2>&1 || compose up -d --build
size=$(docker image inspect -f '{{.Size}}' dedup-ledger:local)
echo "   image: $((size / 1000)) kB"
[ "$size" -le "$image_limit" ] || { echo "compose-check: the image is above $image_limit bytes"; exit 1; }
await "4 records in clean" holds clean NEW 4
await "3 records in duplicates" holds duplicates 'SEEN|DRIFT' 3
compose logs --no-color clean duplicates
if [ -x bin/dedup ]; then
	echo "   a client on this machine, at 127.0.0.1:$KAFKA_PORT, sees:"
	DEDUP_KAFKA_BROKERS=127.0.0.1:$KAFKA_PORT DEDUP_TOPICS_CREATE_REPLICATION=1 DEDUP_TOPICS_CREATE_PARTITIONS=4 \
		bin/dedup topics ensure raw-ingest.as2 --dry-run
fi
before=$(ends)

echo "2. down, and up again without the sample"
compose down >/dev/null 2>&1
docker compose -p "$project" up -d >/dev/null 2>&1
await "the filter to be ready" healthy
expect "ends of the outputs, clean before and after" "$before" "$(ends)"

echo "3. the sample once more: all are repeats"
compose up -d >/dev/null 2>&1
await "10 records in duplicates" holds duplicates 'SEEN|DRIFT' 10
await "4 records in clean" holds clean NEW 4
expect "clean" 4 "$(count clean NEW)"
expect "duplicates, SEEN" 8 "$(count duplicates SEEN)"
expect "duplicates, DRIFT" 2 "$(count duplicates DRIFT)"
accounts=$(compose exec -T postgres psql -U postgres -d dedup -Atc \
	"select string_agg(status || ' ' || n, ' ' order by status) from (select status::text, sum(count) n from dedup_hour group by 1) s")
echo "   accounts of the ledger: $accounts"
echo "compose-check: passed in $SECONDS s"
