#!/bin/bash
# read.sh TOPIC: prints its committed records from the start, and goes on.
set -euo pipefail

exec /opt/kafka/bin/kafka-console-consumer.sh --bootstrap-server kafka:9092 --topic "$1" \
	--from-beginning --isolation-level read_committed \
	--formatter-property print.partition=true --formatter-property print.offset=true \
	--formatter-property print.headers=true --formatter-property print.key=true --formatter-property $'key.separator= | '
