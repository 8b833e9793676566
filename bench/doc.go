// Command bench measures the filter on real services against its own limits:
//
//	go run ./bench [-messages N] [-repeat N] [-sessions N] [-phases LIST] [-o text|json] [-profile FILE]
//	go run ./bench -phases outage [-rate N] [-away D] [-messages N] [-repeat N]
//	go run ./bench -idle 1000 [-sessions N] [-o text|json]
//
// It fills a raw topic once, then in each repetition drains it with
//
//   - filter: `dedup run`, built here and run as a process of its own;
//   - tls (only if it is named, as in -phases filter,tls): the filter again, with
//     TLS and a login to all three services; the other phases then use the same
//     Kafka broker by its port without TLS;
//   - copy: a plain exactly-once copy, the same loop without a ledger, likewise
//     a process of its own;
//   - register: the registration alone, chunks of 500 of the same records, on one
//     connection and on as many as the filter has sessions;
//   - insert: a bare INSERT..SELECT unnest of the rows that the registration
//     makes, into the same tables, on one connection;
//   - learn (only if it is named): the filter after PostgreSQL was put back to
//     the moment before the first record;
//   - outage (only if it is named): the filter at a backlog of its own, with more
//     messages coming at a fixed rate, while Redis is killed, Redis is frozen
//     (SIGSTOP: it takes connections and answers nothing), and PostgreSQL is
//     stopped for a minute. Each stretch has one as usual before and behind it,
//     and is told as a ratio to their mean. Redis and PostgreSQL are started for
//     it.
//
// Each phase has its own database, topics and consumer group, so none meets
// what another left. What the filter and the registration decided is compared
// with what was sent: a fast wrong answer is an error.
//
// With -idle it measures instead what `dedup run` takes that has nothing to do,
// in a cluster with so many topics, five of them raw.
//
// Nothing here is a test, and no test depends on a figure: other load on the
// machine changes them by half. Compare figures of one run only.
package main
