package config

import (
	"time"

	"dedupledger/internal/setting"
	"dedupledger/ledger"
)

// Bounds that several keys share.
const (
	kib = 1 << 10
	gib = 1 << 30
	// mostRetention is ten years: what a topic may be asked to keep.
	mostRetention = 10 * setting.Year
)

// keys is the whole configuration but `flows`, in the order of the
// documentation: path, where it goes, default, what is allowed.
func (c *Config) keys() []key {
	var all []key
	for _, section := range [][]key{
		c.logKeys(), c.httpKeys(), c.kafkaKeys(), c.topicKeys(), c.processorKeys(), c.redisKeys(), c.postgresKeys(),
		c.ledgerKeys(), c.restKeys(),
	} {
		all = append(all, section...)
	}
	return append(all, flag("builtin_rules", &c.BuiltinRules, "true"))
}

func (c *Config) logKeys() []key {
	return []key{
		level("log.level", &c.Log.Level),
		choice("log.format", &c.Log.Format, "json", "json", "text"),
	}
}

func (c *Config) httpKeys() []key {
	return []key{
		text("http.listen", &c.HTTP.Listen, ":8080", listenAddress),
		text("http.ops_listen", &c.HTTP.OpsListen, "", listenAddress),
		later(setting.Scalar, "http.tls.cert_file", ""),
		later(setting.Scalar, "http.tls.key_file", ""),
		later(setting.Scalar, "http.tls.client_ca_file", ""),
		later(setting.Scalar, "http.tokens_file", ""),
		later(setting.Scalar, "http.default_tenant", ""),
		later(setting.Scalar, "http.user_header", ""),
		later(setting.List, "http.trusted_proxies", ""),
		later(setting.Scalar, "http.max_body", "10MiB"),
		later(setting.Scalar, "http.batch_limit", "1000"),
		later(setting.Scalar, "http.search_timeout", "5s"),
	}
}

func (c *Config) kafkaKeys() []key {
	k := &c.Kafka
	return []key{
		list("kafka.brokers", &k.Brokers, address),
		text("kafka.group", &k.Group, "dedup-ledger", groupName),
		flag("kafka.tls.enabled", &k.TLS.Enabled, "false"),
		text("kafka.tls.ca_file", &k.TLS.CAFile, "", anything),
		text("kafka.tls.cert_file", &k.TLS.CertFile, "", anything),
		text("kafka.tls.key_file", &k.TLS.KeyFile, "", anything),
		text("kafka.tls.server_name", &k.TLS.ServerName, "", anything),
		saslMechanism("kafka.sasl.mechanism", &k.SASL.Mechanism),
		text("kafka.sasl.username", &k.SASL.Username, "", anything),
		secret("kafka.sasl.password", &k.SASL.Password.Inline, anything),
		text("kafka.sasl.password_file", &k.SASL.Password.File, "", anything),
		duration("kafka.connection_lifetime", &k.ConnectionLifetime, "30m", time.Second, setting.Day),
		duration("kafka.rebalance_timeout", &k.RebalanceTimeout, "30s", time.Second, 15*time.Minute),
		duration("kafka.transaction_timeout", &k.TransactionTimeout, "60s", time.Second, 15*time.Minute),
		duration("kafka.session_timeout", &k.SessionTimeout, "10s", time.Second, 30*time.Minute),
		size("kafka.fetch_max", &k.FetchMax, "16MiB", 64*kib, gib),
		choice("kafka.compression", &k.Compression, "lz4", "none", "snappy", "lz4", "zstd"),
	}
}

func (c *Config) topicKeys() []key {
	t, create := &c.Topics, &c.Topics.Create
	return []key{
		text("topics.raw", &t.Names.Raw, `^raw-ingest\.(.+)$`, anything),
		operatorTopic("topics.operator", &t.Names.Operator),
		text("topics.clean", &t.Names.Clean, "clean.$1", anything),
		text("topics.duplicates", &t.Names.Duplicates, "duplicates", anything),
		text("topics.dead_letter", &t.Names.DeadLetter, "dead-letter", anything),
		some("topics.scope_from", &t.ScopeFrom, "key"),
		pairs("topics.header_names", &t.HeaderNames),
		text("topics.tenant_from_topic", &t.Names.TenantFromTopic, "", anything),
		size("topics.max_record_bytes", &t.MaxRecordBytes, "32MiB", kib, gib),
		whole("topics.create.partitions", &create.Partitions, "12", 1, 10_000),
		whole("topics.create.replication", &create.Replication, "3", 1, 15),
		duration("topics.create.raw_retention", &create.RawRetention, "3d", time.Minute, mostRetention),
		duration("topics.create.clean_retention", &create.CleanRetention, "7d", time.Minute, mostRetention),
		duration("topics.create.duplicates_retention", &create.DuplicatesRetention, "30d", time.Minute, mostRetention),
		duration("topics.create.dead_letter_retention", &create.DeadLetterRetention, "30d", time.Minute, mostRetention),
	}
}

func (c *Config) processorKeys() []key {
	p := &c.Processor
	return []key{
		later(setting.Scalar, "processor.enabled", "true"),
		whole("processor.sessions", &p.Sessions, "4", 1, 64),
		slot("processor.slot", &p.Slot),
		flag("processor.static_membership", &p.StaticMembership, "true"),
		whole("processor.batch_records", &p.BatchRecords, "2000", 1, 10_000),
		whole("processor.chunk_records", &p.ChunkRecords, "500", 1, ledger.MaxChunk),
		duration("processor.batch_wait", &p.BatchWait, "20ms", time.Millisecond, 5*time.Second),
		duration("processor.stall_exit", &p.StallExit, "5m", time.Second, setting.Day),
		duration("processor.shutdown_grace", &p.ShutdownGrace, "25s", time.Second, 10*time.Minute),
	}
}

func (c *Config) redisKeys() []key {
	r := &c.Redis
	return []key{
		list("redis.addrs", &r.Addrs, address),
		text("redis.master_name", &r.MasterName, "", anything),
		text("redis.username", &r.Username, "", anything),
		secret("redis.password", &r.Password.Inline, anything),
		text("redis.password_file", &r.Password.File, "", anything),
		flag("redis.tls.enabled", &r.TLS.Enabled, "false"),
		text("redis.tls.ca_file", &r.TLS.CAFile, "", anything),
		text("redis.tls.cert_file", &r.TLS.CertFile, "", anything),
		text("redis.tls.key_file", &r.TLS.KeyFile, "", anything),
		text("redis.prefix", &r.Prefix, "dedup:", redisPrefix),
		ttlCap("redis.ttl_cap", &r.TTLCap),
		duration("redis.timeout", &r.Timeout, "50ms", time.Millisecond, 10*time.Second),
		whole("redis.circuit.errors", &r.Circuit.Errors, "5", 1, 1000),
		duration("redis.circuit.open", &r.Circuit.Open, "2s", 10*time.Millisecond, 10*time.Minute),
		later(setting.Scalar, "redis.fast_queue", "1000000"),
	}
}

func (c *Config) postgresKeys() []key {
	p := &c.Postgres
	return []key{
		secret("postgres.url", &p.URL, postgresURL),
		text("postgres.password_file", &p.Password.File, "", anything),
		later(setting.Scalar, "postgres.search_url", ""),
		whole("postgres.pool.max", &p.Pool.Max, "12", 1, 1000),
		duration("postgres.pool.lifetime", &p.Pool.Lifetime, "30m", time.Second, setting.Day),
		duration("postgres.pool.connect_timeout", &p.Pool.ConnectTimeout, "5s", 100*time.Millisecond, time.Minute),
		duration("postgres.pool.tcp_user_timeout", &p.Pool.TCPUserTimeout, "5s", 100*time.Millisecond, 5*time.Minute),
		flag("postgres.statement_cache", &p.StatementCache, "true"),
		duration("postgres.lock_timeout", &p.LockTimeout, "5s", 10*time.Millisecond, 5*time.Minute),
		duration("postgres.statement_timeout", &p.StatementTimeout, "15s", 100*time.Millisecond, time.Hour),
		flag("postgres.require_sync_standby", &p.RequireSyncStandby, "false"),
	}
}

func (c *Config) ledgerKeys() []key {
	return []key{
		whole("months.ahead", &c.Months.Ahead, "3", 1, 24),
		whole("months.keep", &c.Months.Keep, "14", 1, 240),
		later(setting.Scalar, "months.prefix_index", "closed"),
		whole("sightings.keep_per_key", &c.Sightings.KeepPerKey, "100", 1, 10_000),
		later(setting.Scalar, "sightings.loop_threshold", "20"),
		whole("duplicates.payload_copies", &c.Duplicates.PayloadCopies, "20", 0, 10_000),
	}
}

func (c *Config) restKeys() []key {
	return []key{
		later(setting.Scalar, "archive.enabled", "false"),
		later(setting.Scalar, "archive.s3.endpoint", ""),
		later(setting.Scalar, "archive.s3.bucket", ""),
		later(setting.Scalar, "archive.s3.prefix", "dedup"),
		later(setting.Scalar, "archive.s3.region", ""),
		later(setting.Scalar, "archive.s3.storage_class", "STANDARD_IA"),
		later(setting.Scalar, "archive.s3.access_key_file", ""),
		later(setting.Scalar, "archive.s3.secret_key_file", ""),
		later(setting.Scalar, "archive.keep", "10y"),
		whole("metrics.scopes", &c.Metrics.Scopes, "200", 0, 10_000),
		later(setting.Scalar, "otel.endpoint", ""),
		later(setting.Scalar, "otel.sample_ratio", "0"),
	}
}
