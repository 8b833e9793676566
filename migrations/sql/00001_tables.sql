-- +goose Up
-- The tables of the ledger. All are here from the first migration, also those
-- whose feature comes later, so that a rollout never waits for an ALTER.
-- All text is COLLATE "C": keys are bytes to us, and prefix search needs it.

-- One row per first acceptance of a key. By month of first_seen_at, so that old
-- months leave as whole tables.
--
-- There is no primary key and no unique index: PostgreSQL could enforce one only
-- together with first_seen_at, where it would never bite. One writer per scope
-- (the lock on dedup_scope) plus a look-back is what keeps a key single, so
-- everything that inserts or closes rows takes that lock.
--
-- 8-byte columns first, then 4, 2, then what varies: no padding between them.
create table dedup_ledger (
    h                bigint      not null,
    first_seen_at    timestamptz not null,
    last_seen_at     timestamptz not null,
    expires_at       timestamptz not null,
    closed_at        timestamptz,
    retry_count      bigint      not null default 0,
    drift_count      bigint      not null default 0,
    origin_offset    bigint,
    origin_partition integer,
    origin_epoch     integer,
    origin_gate      smallint    not null,
    origin_topic     uuid,
    scope            varchar(81)  collate "C" not null,
    key              varchar(200) collate "C" not null,
    payload_sha256   bytea        not null,
    canonical_sha256 bytea,
    hash_mode        varchar(40)  collate "C" not null,
    source_service   varchar(40)  collate "C",
    flow             varchar(40)  collate "C" not null,
    origin_client    varchar(200) collate "C",
    origin_attempt   varchar(200) collate "C",
    closed_by        varchar(64)  collate "C",
    alias_of         varchar(200) collate "C",
    constraint dedup_ledger_window check (expires_at > first_seen_at),
    constraint dedup_ledger_hash check (octet_length(payload_sha256) = 32),
    constraint dedup_ledger_closed check ((closed_at is null) = (closed_by is null)),
    -- A Kafka origin is whole or it is none: a NULL in it would equal nothing,
    -- and the first message would meet its own row as a stranger's.
    constraint dedup_ledger_origin check (
        (origin_gate = 1) = (origin_topic is not null and origin_partition is not null
                             and origin_epoch is not null and origin_offset is not null))
) partition by range (first_seen_at);

comment on table dedup_ledger is 'who registered a key first; one row per acceptance, live until closed or expired';
comment on column dedup_ledger.h is 'first 8 bytes of SHA-256(scope, 0, key), big endian; finds candidates only, scope and key are always compared too';
comment on column dedup_ledger.origin_gate is '1 Kafka record, 2 API call, 3 import';
comment on column dedup_ledger.alias_of is 'the primary key this row is an alias of';

-- A hash index touches one or two pages per probe where a B-tree descends
-- through cold pages; measured twice as fast once a month holds millions.
create index dedup_ledger_h on dedup_ledger using hash (h);
create index dedup_ledger_payload on dedup_ledger using hash (payload_sha256);

-- One row per repeat and per INVALID, for audit and review. At most
-- sightings.keep_per_key per key; later ones are only counted.
create table dedup_sighting (
    seen_at           timestamptz not null,
    row_first_seen_at timestamptz,
    origin_offset     bigint,
    origin_partition  integer,
    origin_epoch      integer,
    origin_gate       smallint    not null,
    origin_topic      uuid,
    scope             varchar(81)  collate "C" not null,
    key               varchar(200) collate "C",
    status            varchar(7)   collate "C" not null,
    state             varchar(9)   collate "C",
    reason            varchar(64)  collate "C",
    payload_sha256    bytea        not null,
    source_service    varchar(40)  collate "C",
    flow              varchar(40)  collate "C" not null,
    origin_client     varchar(200) collate "C",
    origin_attempt    varchar(200) collate "C",
    constraint dedup_sighting_status check (status in ('SEEN', 'DRIFT', 'INVALID')),
    constraint dedup_sighting_state check (state in ('open', 'released', 'dismissed', 'redriven'))
) partition by range (seen_at);

comment on column dedup_sighting.key is 'null where an INVALID record had no key';
comment on column dedup_sighting.state is 'of the review: DRIFT and INVALID start open, SEEN has none';
comment on column dedup_sighting.row_first_seen_at is 'which row of the key it was compared with';

create index dedup_sighting_key on dedup_sighting (scope, key);

-- The accounts: every decided record is in exactly one of them, once.
-- Few rows, updated by every chunk: room on each page keeps the updates HOT.
create table dedup_hour (
    hour   timestamptz not null,
    count  bigint      not null,
    bytes  bigint      not null,
    scope  varchar(81) collate "C" not null,
    status varchar(7)  collate "C" not null,
    constraint dedup_hour_pkey primary key (scope, hour, status),
    constraint dedup_hour_status check (status in ('NEW', 'SEEN', 'DRIFT', 'INVALID'))
) with (fillfactor = 50);

comment on column dedup_hour.scope is 'tenant:flow of the record, not its ledger scope; ?:? where it cannot be read';

-- The lock of a scope, its gate, and the longest window it ever had, which is
-- how far a look-back must go.
create table dedup_scope (
    max_window integer     not null default 0,
    gate       smallint,
    scope      varchar(81) collate "C" not null,
    constraint dedup_scope_pkey primary key (scope),
    constraint dedup_scope_gate check (gate in (1, 2)),
    constraint dedup_scope_window check (max_window between 0 and 34560000)
) with (fillfactor = 50);

comment on column dedup_scope.gate is '1 Kafka, 2 API: set by the first registration; null until then, or where only imports came';
comment on column dedup_scope.max_window is 'seconds; raised before a longer row goes in, never lowered';

create table dedup_position (
    seq        bigint      not null,
    d_offset   bigint      not null,
    w_offset   bigint      not null,
    updated_at timestamptz not null,
    partition  integer     not null,
    d_epoch    integer     not null,
    w_epoch    integer     not null,
    timeline   integer     not null,
    topic_id   uuid        not null,
    claim      uuid        not null,
    topic      varchar(249) collate "C" not null,
    group_name text         collate "C" not null,
    outputs    jsonb        not null,
    constraint dedup_position_pkey primary key (topic_id, partition),
    -- An unknown epoch (-1) sorts before every known one; stored, it would let
    -- a position fall behind records that were decided long ago.
    constraint dedup_position_epochs check (d_epoch >= 0 and w_epoch >= 0),
    constraint dedup_position_order check ((w_epoch, w_offset) <= (d_epoch, d_offset))
) with (fillfactor = 50);

comment on column dedup_position.claim is 'incarnation of the session that works on the partition; a write with another claim is refused';
comment on column dedup_position.timeline is 'of PostgreSQL when the claim was written; another one now means a failover in between';
comment on column dedup_position.outputs is 'where the outputs of W end: {topic: {partition: next offset}}';

create table dedup_gap (
    id              bigint      generated always as identity,
    found_at        timestamptz not null,
    from_offset     bigint      not null,
    to_offset       bigint      not null,
    acknowledged_at timestamptz,
    partition       integer     not null,
    from_epoch      integer     not null,
    to_epoch        integer     not null,
    topic_id        uuid        not null,
    kind            varchar(20) collate "C" not null,
    note            text        collate "C",
    constraint dedup_gap_pkey primary key (id),
    constraint dedup_gap_kind check (kind in ('log_start', 'epoch', 'skip', 'retired', 'no_output')),
    constraint dedup_gap_once unique (topic_id, partition, from_epoch, from_offset, to_epoch, to_offset, kind)
);

-- What operators did. The application may add to it, never change it.
create table dedup_action (
    id     bigint      generated always as identity,
    at     timestamptz not null default clock_timestamp(),
    actor  text         collate "C" not null,
    kind   varchar(40)  collate "C" not null,
    scope  varchar(81)  collate "C",
    key    varchar(200) collate "C",
    place  varchar(300) collate "C",
    reason text         collate "C" not null,
    detail jsonb        not null default '{}',
    constraint dedup_action_pkey primary key (id)
);
create index dedup_action_key on dedup_action (scope, key);

-- One row. Its id is made here, once, and marks our Kafka offsets and the keys
-- in Redis as belonging to this ledger and no other.
create table dedup_meta (
    one              boolean not null default true,
    ledger_id        uuid    not null default gen_random_uuid(),
    fingerprint      text    collate "C",
    witness_kafka    bigint  not null default 0,
    witness_api      bigint  not null default 0,
    witness_last_at  timestamptz,
    witness_last     text    collate "C",
    constraint dedup_meta_pkey primary key (one),
    constraint dedup_meta_one check (one)
);
insert into dedup_meta default values;

comment on column dedup_meta.fingerprint is 'of the active rules that make keys';
comment on column dedup_meta.witness_last is 'origin that Redis remembered and PostgreSQL had no row of';

create view dedup_ledger_v as
select scope, key, flow, source_service,
       encode(payload_sha256, 'hex') as payload_sha256,
       encode(canonical_sha256, 'hex') as canonical_sha256,
       hash_mode, first_seen_at, last_seen_at, expires_at, closed_at, closed_by,
       closed_at is null and expires_at > clock_timestamp() as live,
       retry_count, drift_count, alias_of,
       case origin_gate
           when 1 then format('kafka:%s/%s/%s/%s', origin_topic, origin_partition, origin_epoch, origin_offset)
           when 2 then format('api:%s/%s', origin_client, origin_attempt)
           else 'import'
       end as origin
from dedup_ledger;

comment on view dedup_ledger_v is 'dedup_ledger for people: hashes as hex, origin as kafka:topic id/partition/epoch/offset or api:client/attempt';
