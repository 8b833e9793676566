package config

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"dedupledger/internal/access"
	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
	"dedupledger/topics"
)

// Config is the configuration, complete and checked if it comes from Load.
// Printing it shows no secret.
type Config struct {
	Log        Log
	HTTP       HTTP
	Kafka      Kafka
	Topics     Topics
	Processor  Processor
	Redis      Redis
	Postgres   Postgres
	Months     Months
	Sightings  Sightings
	Duplicates Duplicates
	Metrics    Metrics

	BuiltinRules bool         // the built-in rules follow Flows
	Flows        []rules.Rule // the user's own

	Places map[string]setting.Place // of every key that was written
}

// Log says what is logged and how.
type Log struct {
	Level  slog.Level
	Format string // json, text
}

// HTTP is where /healthz, /readyz and /metrics are served: at OpsListen if it is
// set, else at Listen.
type HTTP struct {
	Listen    string // host:port; "" = nowhere
	OpsListen string // host:port; "" = at Listen
}

// Kafka is the cluster and this filter's place in it.
type Kafka struct {
	Brokers            []string // host:port
	Group              string   // consumer group, and prefix of the transactional ids
	TLS                access.TLS
	SASL               SASL
	ConnectionLifetime time.Duration // then a connection gives way to a new one
	RebalanceTimeout   time.Duration
	TransactionTimeout time.Duration // above RebalanceTimeout
	SessionTimeout     time.Duration
	FetchMax           int32  // bytes per broker and client session
	Compression        string // none, snappy, lz4, zstd
}

// SASL is who we are for Kafka.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; "" = no login
	Username  string
	Password  access.Password
}

// Principal is what the cluster's rights are granted to; "" where only the broker
// knows it: it makes one of a client certificate (ssl.principal.mapping.rules).
func (k Kafka) Principal() string {
	switch {
	case k.SASL.Mechanism != "":
		return "User:" + k.SASL.Username
	case k.TLS.CertFile != "":
		return ""
	}
	return "User:ANONYMOUS"
}

// Topics are the names and limits of topics.
type Topics struct {
	Names          topics.Names
	ScopeFrom      []string          // key, header: the first that says anything counts
	HeaderNames    map[string]string // of input headers: the filter's name -> the sender's
	MaxRecordBytes int64             // of the value, uncompressed
	Create         Create
}

// Create is what `dedup topics ensure` gives a topic that is missing.
type Create struct {
	Partitions          int32
	Replication         int16
	RawRetention        time.Duration
	CleanRetention      time.Duration
	DuplicatesRetention time.Duration
	DeadLetterRetention time.Duration
}

// Processor shapes the loop.
type Processor struct {
	Sessions         int    // client sessions in this process
	Slot             string // auto, $ordinal or a number: SlotOn. <group>-<slot>-<i> is the transactional id
	StaticMembership bool
	BatchRecords     int // per poll and Kafka transaction
	ChunkRecords     int // per registration statement
	BatchWait        time.Duration
	StallExit        time.Duration
	ShutdownGrace    time.Duration
}

// Redis is the hot tier.
type Redis struct {
	Addrs      []string // one = single, several = Cluster, with MasterName = Sentinel
	MasterName string
	Username   string
	Password   access.Password
	TLS        access.TLS
	Prefix     string        // the ledger's id follows it
	TTLCap     time.Duration // 0 = facts live to the window's end
	Timeout    time.Duration
	Circuit    Circuit
}

// Circuit opens after Errors failures in a row and tries again after Open.
type Circuit struct {
	Errors int
	Open   time.Duration
}

// Postgres is the cold tier.
type Postgres struct {
	URL              setting.Secret  // postgres://user@host/db?...; it may hold a password
	Password         access.Password // its File only; Inline is never set
	Pool             Pool
	StatementCache   bool // false behind PgBouncer in transaction mode
	LockTimeout      time.Duration
	StatementTimeout time.Duration // above LockTimeout

	RequireSyncStandby bool // no start without a synchronous standby
}

// Pool bounds the connections of a process.
type Pool struct {
	Max            int
	Lifetime       time.Duration
	ConnectTimeout time.Duration
	TCPUserTimeout time.Duration
}

// Months are the partitions of the ledger.
type Months struct {
	Ahead int // made ahead
	Keep  int // kept beside the current one; they cover the longest window
}

// Sightings are the repeats kept one by one.
type Sightings struct {
	KeepPerKey int
}

// Duplicates is what the duplicates topics carry.
type Duplicates struct {
	// PayloadCopies is how many repeats of a row, and how many changed ones, carry
	// their payload; later ones have headers only.
	PayloadCopies int
}

// Metrics bounds the labels of metrics.
type Metrics struct {
	Scopes int // tenant/flow pairs of dedup_scope_messages_total; 0 = no such metric
}

// Rules compiles the flows. After Load it cannot fail; of a Config put together
// by hand the error is setting.Problems.
func (c *Config) Rules() (*rules.Set, error) {
	return rules.New(c.Flows, c.BuiltinRules)
}

// Contradictions are windows that end while raw still keeps the records: a resend
// after its window is NEW again although its original could be read, and an outage
// that takes longer lets it through twice. They are told, not refused.
func (c *Config) Contradictions(set *rules.Set) (told []Warning) {
	kept := c.Topics.Create.RawRetention
	for _, r := range set.Rules() {
		if r.Window.Set && r.Window.Value < kept {
			told = append(told, Warning{r.Window.At, fmt.Sprintf("%s: %s is below topics.create.raw_retention (%s)",
				strings.TrimPrefix(r.Path+".window", "."), setting.FormatDuration(r.Window.Value), setting.FormatDuration(kept))})
		}
	}
	return told
}

// Input compiles how raw records are read, as Rules does the flows.
func (c *Config) Input() (topics.Input, error) {
	return topics.NewInput(c.Topics.ScopeFrom, c.Topics.HeaderNames)
}

// Router compiles the topic names, as Rules does the flows.
func (c *Config) Router() (*topics.Router, error) {
	return topics.New(c.Topics.Names)
}
