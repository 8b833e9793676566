#!/bin/bash
# Sends sample.tsv to raw-ingest.as2. A line is a message: headers, record key
# and value, with tabs between.
set -euo pipefail

/opt/kafka/bin/kafka-console-producer.sh --bootstrap-server kafka:9092 --topic raw-ingest.as2 \
	--request-required-acks all \
	--reader-property parse.headers=true --reader-property parse.key=true \
	--reader-property $'headers.delimiter=\t' --reader-property $'key.separator=\t' </sample/sample.tsv
echo "sent $(wc -l </sample/sample.tsv) messages to raw-ingest.as2"
