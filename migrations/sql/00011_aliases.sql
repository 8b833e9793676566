-- +goose Up
-- Aliases: further keys of a record beside its primary key (docs/message-keys.md).
--
-- A record is NEW if each of its keys is free or its own. Then all of them are
-- registered, and none where one is another's. An alias is a row as any other, of
-- the same origin, times and hashes, with alias_of; repeats are counted at the row
-- of the primary key, whichever they met. All keys of a record lie in one ledger
-- scope, so the scope lock holds them all, and have one window.

-- A repeat by an alias has another key than its row has. Where they are the same,
-- both columns are null.
-- plan: locks dedup_sighting ACCESS EXCLUSIVE
alter table dedup_sighting
    add column row_key varchar(200) collate "C",
    add column matched varchar(200) collate "C";

-- plan: nothing
comment on column dedup_sighting.row_key is 'primary key of the row it was compared with, where that is not key';
-- plan: nothing
comment on column dedup_sighting.matched is 'the key by which it was known, where an alias had part in it';

-- The number of a repeat is its place among its row's. The table is locked already.
-- plan: scans dedup_sighting
create index dedup_sighting_row on dedup_sighting (scope, row_key) where row_key is not null;

create type dedup_left_2 as (line integer, first_seen_at timestamptz, drift boolean, key text);

-- A live row that a key has met. line: the head, or the key's number. key and the
-- counters become those of the primary key's row where the row met is an alias.
create type dedup_hit_2 as (
    line             integer,
    ctid             tid,
    first_seen_at    timestamptz,
    expires_at       timestamptz,
    retry_count      bigint,
    drift_count      bigint,
    gate             smallint,
    topic            uuid,
    partition        integer,
    epoch            integer,
    "offset"         bigint,
    client           text,
    attempt          text,
    payload_sha256   bytea,
    canonical_sha256 bytea,
    hash_mode        text,
    scope            integer,
    key              text,
    alias_of         text
);

-- The column h of a scope and key.
-- +goose StatementBegin
create function dedup_digest_1(p_scope text, p_key text) returns bigint
language sql immutable strict parallel safe
set search_path = pg_catalog, public, pg_temp
as $$
    select ('x' || substr(encode(sha256(convert_to(p_scope, 'UTF8') || '\x00'::bytea || convert_to(p_key, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint
$$;
-- +goose StatementEnd

-- The registration of one chunk, as dedup_register_2 does it, with aliases.
--
-- l_*: one line per record. k_*: the aliases of the lines that have some, in the
-- order of lines: k_line is the line, k_name tells keys of a scope apart: the head
-- of the lines that have it for their primary key, else a number behind the lines,
-- the same for the same scope and key. They are null where no record has an alias;
-- then nothing is done that dedup_register_2 does not do, unless a row that was
-- met is an alias. A record names no key twice.
--
-- Two more answers, null unless aliases had part: hit_key is the primary key of the
-- row's record; repeat_matched the key by which a line is a repeat, null where it
-- is the primary key of both.
-- +goose StatementBegin
create function dedup_register_3(
    p_gate smallint, p_keep integer, p_scopes text[], p_entry text[], p_accounts text[],
    a_topic uuid[], a_partition integer[], a_claim uuid[], a_seq bigint[],
    a_d_epoch integer[], a_d_offset bigint[], a_new_epoch integer[], a_new_offset bigint[],
    a_w_epoch integer[], a_w_offset bigint[], a_outputs text[],
    a_min_epoch integer[], a_min_offset bigint[],
    l_record integer[], l_advance integer[], l_epoch integer[], l_offset bigint[],
    l_account integer[], l_bytes bigint[], l_reason text[],
    l_scope integer[], l_h bigint[], l_key text[], l_window integer[], l_head integer[],
    l_payload bytea[], l_canonical bytea[], l_mode text[], l_source text[],
    l_client text[], l_attempt text[], l_takeover text[],
    k_line integer[], k_h bigint[], k_key text[], k_name integer[],
    out at timestamptz, out seqs bigint[],
    out refused_scopes integer[], out refused_lines integer[],
    out repeat_line integer[], out repeat_head integer[], out repeat_hit integer[], out repeat_counted boolean[], out orphans integer[],
    out hit_first timestamptz[], out hit_expires timestamptz[], out hit_retry bigint[], out hit_drift bigint[],
    out hit_gate smallint[], out hit_topic uuid[], out hit_partition integer[], out hit_epoch integer[],
    out hit_offset bigint[], out hit_client text[], out hit_attempt text[],
    out hit_payload bytea[], out hit_canonical bytea[], out hit_mode text[],
    out hit_key text[], out repeat_matched text[]
)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
-- The arrays' sizes are unknown to the planner anyway; with these settings it
-- plans once, for the index, and keeps that plan while tables grow from empty.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
as $$
declare
    -- 62 days: two look-backs, or one row of 400 days in a chunk's scopes would
    -- make every other scope pay for 14 months.
    c_short    constant integer := 5356800;
    v_n        integer := coalesce(cardinality(l_record), 0);
    v_scopes   integer := coalesce(cardinality(p_scopes), 0);
    v_advances integer := coalesce(cardinality(a_topic), 0);
    v_found    integer;
    v_strange  integer;
    v_locked   text[];
    v_max      integer[];
    v_bound    integer;
    v_from     timestamptz;
    v_long     boolean;
    v_timeline integer;
    v_d_epoch  integer[];
    v_d_offset bigint[];
    v_below    boolean := false;
    v_left     dedup_left_2[] := '{}';
    v_invalid  boolean;
    v_copies   boolean;
    v_hits     dedup_hit_2[] := '{}';
    v_some     dedup_hit_2[];
    v_hit_of   integer[];
    v_repeats  dedup_repeat_1[] := '{}';
    v_retry    bigint[];
    v_drift    bigint[];
    v_row      record;
    v_next     integer;
    -- With aliases only. By line: v_name, v_mine (a row of its own), v_stays (the row
    -- that it was a repeat of), v_matched; by key number: v_met (the live row), v_maker
    -- (the line that makes it here); by row: v_same, v_first; by alias: v_claim.
    v_alias    boolean := coalesce(cardinality(k_line), 0) > 0;
    v_k        integer := coalesce(cardinality(k_line), 0);
    v_names    integer;
    v_name     integer[];
    v_met      integer[];
    v_mine     integer[];
    v_stays    integer[];
    v_maker    integer[];
    v_same     integer[];
    v_first    integer[];
    v_claim    boolean[];
    v_matched  text[];
    v_hit      integer;
    v_by       integer;
    v_a        integer := 1;
    v_z        integer;
begin
    -- Under repeatable read the snapshot is older than the scope lock: the
    -- writer before us has committed, the look-back does not see its row, and
    -- one key is NEW twice without an error.
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'dedup_register_3 works under read committed only, not %', current_setting('transaction_isolation')
            using errcode = 'DL001';
    end if;

    if v_scopes > 0 then
        -- Upsert before the lock, never after: who holds "b" and then waits for
        -- the maker of "a" meets one who made "a" and waits for "b".
        select count(*), count(*) filter (where s.gate is distinct from p_gate) into v_found, v_strange
        from dedup_scope s where s.scope = any(p_scopes);
        if v_strange > 0 and p_gate <> 3 then
            refused_scopes := array(
                select x.i from (select generate_subscripts(p_scopes, 1) i, unnest(p_scopes) scope) x
                join dedup_scope s on s.scope = x.scope
                where s.gate <> p_gate and coalesce(p_entry[x.i], 'auto') <> 'both' order by 1);
            if cardinality(refused_scopes) > 0 then
                return;
            end if;
        end if;
        if v_found < v_scopes then
            insert into dedup_scope (scope, gate) select s, nullif(p_gate, 3)
            from unnest(p_scopes) s order by s collate "C" on conflict do nothing;
        end if;

        -- The scope lock: one writer per ledger scope from here to the commit.
        select array_agg(x.scope::text), array_agg(x.max_window),
               count(*) filter (where x.gate is null), count(*) filter (where x.gate <> p_gate and p_gate <> 3)
        into v_locked, v_max, v_found, v_strange
        from (select s.scope, s.max_window, s.gate from dedup_scope s
              where s.scope = any(p_scopes) order by s.scope
              for no key update /* the scope lock */) x;
        -- Fewer rows than asked for: one vanished between upsert and lock, and
        -- FOR UPDATE locks nothing and goes on. Start again.
        if coalesce(cardinality(v_locked), 0) < v_scopes then
            raise exception 'a scope vanished before it was locked' using errcode = 'serialization_failure';
        end if;
        if v_locked <> p_scopes then
            raise exception 'the scopes are not distinct and sorted' using errcode = 'invalid_parameter_value';
        end if;
        if v_strange > 0 then
            -- The other gate came first, between the look above and the lock.
            refused_scopes := array(
                select x.i from (select generate_subscripts(p_scopes, 1) i, unnest(p_scopes) scope) x
                join dedup_scope s on s.scope = x.scope
                where s.gate <> p_gate and coalesce(p_entry[x.i], 'auto') <> 'both' order by 1);
            if cardinality(refused_scopes) > 0 then
                return;
            end if;
        end if;
        if v_found > 0 and p_gate <> 3 then
            update dedup_scope s set gate = p_gate where s.scope = any(p_scopes) and s.gate is null;
        end if;
    end if;

    -- The only reading of the clock, after the locks: a writer that waited
    -- never dates its rows before those it waited for.
    at := clock_timestamp();

    if v_advances > 0 then
        -- dedup_timeline_1, spelled out: a call of it costs as much as the locks.
        v_timeline := ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::integer;
        select count(*) filter (where not x.stale), array_agg(x.d_epoch), array_agg(x.d_offset),
               array_agg(x.seq + 1), coalesce(bool_or(x.below), false)
        into v_found, v_d_epoch, v_d_offset, seqs, v_below
        from (select p.d_epoch, p.d_offset, p.seq,
                     p.claim <> i.claim or p.timeline <> v_timeline or p.seq < i.seq
                         or (p.d_epoch, p.d_offset) < (i.d_epoch, i.d_offset) as stale,
                     (i.min_epoch, i.min_offset) < (p.d_epoch, p.d_offset) as below
              from (select unnest(a_topic) topic, unnest(a_partition) partition, unnest(a_claim) claim, unnest(a_seq) seq,
                           unnest(a_d_epoch) d_epoch, unnest(a_d_offset) d_offset,
                           unnest(a_min_epoch) min_epoch, unnest(a_min_offset) min_offset) i
              join dedup_position p on p.topic_id = i.topic and p.partition = i.partition
              order by p.topic_id, p.partition
              for no key update of p) x;
        if v_found <> v_advances then
            raise exception 'claim, timeline, seq or D of % of % partitions is not what the session left', v_advances - v_found, v_advances
                using errcode = 'DL002';
        end if;
    end if;

    if to_regclass('public.dedup_ledger' || to_char(at at time zone 'UTC', '_YYYY_MM')) is null
       or to_regclass('public.dedup_sighting' || to_char(at at time zone 'UTC', '_YYYY_MM')) is null then
        perform dedup_months_1(3);
    end if;

    select coalesce(bool_or(x.head is null), false), coalesce(bool_or(x.head <> x.i), false), coalesce(bool_or(x.win > v_max[x.scope]), false)
    into v_invalid, v_copies, v_long
    from (select generate_subscripts(l_head, 1) i, unnest(l_head) head, unnest(l_scope) scope, unnest(l_window) win) x;

    if v_long then
        -- Before the longer row goes in, or a later look-back of the shorter
        -- window would not reach it: two live rows of one key.
        update dedup_scope s set max_window = x.win
        from (select p_scopes[y.scope] scope, max(y.win) win
              from (select unnest(l_scope) scope, unnest(l_window) win) y where y.scope is not null group by 1) x
        where s.scope = x.scope and s.max_window < x.win;
        select array_agg(x.max_window) into v_max
        from (select s.max_window from dedup_scope s where s.scope = any(p_scopes) order by s.scope) x;
    end if;

    -- The look-back. No upper bound: the clock may have been ahead. Liveness is
    -- tested before the latest is picked, or a closed row would hide a live one.
    foreach v_long in array array[false, true] loop
        select max(w) into v_bound from unnest(v_max) w where (w > c_short) = v_long;
        continue when v_bound is null;
        v_from := at - make_interval(secs => v_bound) - interval '1 hour';
        select array_agg(row(x.i, l.ctid, l.first_seen_at, l.expires_at, l.retry_count, l.drift_count,
                             l.origin_gate, l.origin_topic, l.origin_partition, l.origin_epoch, l.origin_offset,
                             l.origin_client, l.origin_attempt,
                             l.payload_sha256, l.canonical_sha256, l.hash_mode, x.scope, l.key, l.alias_of)::dedup_hit_2),
               v_alias or coalesce(bool_or(l.alias_of is not null), false)
        into v_some, v_alias
        from (select generate_subscripts(l_h, 1) i, unnest(l_head) head, unnest(l_h) h, unnest(l_scope) scope, unnest(l_key) key) x,
             lateral (select d.ctid, d.* from dedup_ledger d
                      where d.h = x.h and d.first_seen_at >= v_from
                        and d.closed_at is null and d.expires_at > at
                        and d.key = x.key and d.scope = p_scopes[x.scope]
                      order by d.first_seen_at desc limit 1) l
        where x.head = x.i and (v_max[x.scope] > c_short) = v_long;
        v_hits := v_hits || v_some;
    end loop;

    if v_n > 0 then
        v_hit_of := array_fill(0, array[v_n]);
        v_retry := v_hit_of;
        v_drift := v_hit_of;
    end if;
    for i in 1 .. cardinality(v_hits) loop
        v_hit_of[v_hits[i].line] := i;
    end loop;

    if v_alias then
        -- Keys are told apart by a number: that of a primary key is its head, and
        -- an alias that no line has for its primary key stands behind the lines.
        v_name := l_head;
        v_names := greatest(v_n, coalesce((select max(n) from unnest(k_name) n), 0));
        v_met := array_fill(0, array[v_names]);
        v_maker := v_met;
        v_mine := array_fill(0, array[v_n]);
        v_stays := v_mine;
        v_matched := array_fill(null::text, array[v_n]);
        foreach v_long in array array[false, true] loop
            select max(w) into v_bound from unnest(v_max) w where (w > c_short) = v_long;
            continue when v_bound is null;
            v_from := at - make_interval(secs => v_bound) - interval '1 hour';
            select array_agg(row(x.name, l.ctid, l.first_seen_at, l.expires_at, l.retry_count, l.drift_count,
                                 l.origin_gate, l.origin_topic, l.origin_partition, l.origin_epoch, l.origin_offset,
                                 l.origin_client, l.origin_attempt,
                                 l.payload_sha256, l.canonical_sha256, l.hash_mode, x.scope, l.key, l.alias_of)::dedup_hit_2)
            into v_some
            from (select y.name, min(y.h) as h, min(l_scope[y.line]) as scope, min(y.key) as key
                  from (select unnest(k_name) name, unnest(k_line) line, unnest(k_h) h, unnest(k_key) key) y
                  where y.name > v_n group by y.name) x,
                 lateral (select d.ctid, d.* from dedup_ledger d
                          where d.h = x.h and d.first_seen_at >= v_from
                            and d.closed_at is null and d.expires_at > at
                            and d.key = x.key and d.scope = p_scopes[x.scope]
                          order by d.first_seen_at desc limit 1) l
            where (v_max[x.scope] > c_short) = v_long;
            v_hits := v_hits || v_some;
        end loop;
        for i in 1 .. cardinality(v_hits) loop
            v_met[v_hits[i].line] := i;
        end loop;
    end if;

    if v_below then
        -- About a record that comes again its own row decides, also when that
        -- has expired meanwhile. Otherwise:
        --
        --     R is registered; its batch is thrown back
        --     a copy is SEEN of R
        --     R's window ends; another copy makes the next row and is NEW
        --     R comes again and is SEEN of that one
        --
        -- and of R's window, of which a copy was SEEN, nothing is in clean. What
        -- stands behind R in the chunk is compared with the live row, or makes it.
        for v_row in
            select x.i, own.*
            from (select generate_subscripts(l_h, 1) i, unnest(l_head) head, unnest(l_h) h, unnest(l_advance) a, unnest(l_epoch) epoch, unnest(l_offset) o) x,
                 lateral (select row(x.i, d.ctid, d.first_seen_at, d.expires_at, d.retry_count, d.drift_count,
                                     d.origin_gate, d.origin_topic, d.origin_partition, d.origin_epoch, d.origin_offset,
                                     d.origin_client, d.origin_attempt,
                                     d.payload_sha256, d.canonical_sha256, d.hash_mode, l_scope[x.i], d.key, d.alias_of)::dedup_hit_2 as hit, d.expires_at
                          from dedup_ledger d
                          where d.h = x.h and d.key = l_key[x.i] and d.scope = p_scopes[l_scope[x.i]] and d.closed_at is null
                            and d.origin_offset = x.o and d.origin_epoch = x.epoch
                            and d.origin_partition = a_partition[x.a] and d.origin_topic = a_topic[x.a]
                          order by d.first_seen_at desc limit 1) own
            where x.head is not null and (x.epoch, x.o) < (v_d_epoch[x.a], v_d_offset[x.a]) and own.expires_at <= at
            order by x.i
        loop
            if l_head[v_row.i] = v_row.i then
                select min(x.i) into v_next from (select generate_subscripts(l_head, 1) i, unnest(l_head) head) x
                where x.head = v_row.i and x.i <> v_row.i;
                if v_next is not null then
                    v_hit_of[v_next] := v_hit_of[v_row.i];
                    l_head := array(select case when x.head = v_row.i and x.i <> v_row.i then v_next else x.head end
                                    from (select generate_subscripts(l_head, 1) i, unnest(l_head) head) x order by x.i);
                end if;
            end if;
            v_hits := v_hits || v_row.hit;
            l_head[v_row.i] := v_row.i;
            v_hit_of[v_row.i] := cardinality(v_hits);
            if v_alias then
                v_mine[v_row.i] := cardinality(v_hits);
            end if;
        end loop;
        -- Its alias' row speaks for it where the row of the primary key was closed
        -- by a learned fact.
        for v_row in
            select x.line, own.hit
            from (select unnest(k_line) line, unnest(k_h) h, unnest(k_key) key) x,
                 lateral (select row(x.line, d.ctid, d.first_seen_at, d.expires_at, d.retry_count, d.drift_count,
                                     d.origin_gate, d.origin_topic, d.origin_partition, d.origin_epoch, d.origin_offset,
                                     d.origin_client, d.origin_attempt,
                                     d.payload_sha256, d.canonical_sha256, d.hash_mode, l_scope[x.line], d.key, d.alias_of)::dedup_hit_2 as hit, d.expires_at
                          from dedup_ledger d
                          where d.h = x.h and d.key = x.key and d.scope = p_scopes[l_scope[x.line]] and d.closed_at is null
                            and d.origin_offset = l_offset[x.line] and d.origin_epoch = l_epoch[x.line]
                            and d.origin_partition = a_partition[l_advance[x.line]] and d.origin_topic = a_topic[l_advance[x.line]]
                          order by d.first_seen_at desc limit 1) own
            where (l_epoch[x.line], l_offset[x.line]) < (v_d_epoch[l_advance[x.line]], v_d_offset[l_advance[x.line]])
              and own.expires_at <= at and v_mine[x.line] = 0
        loop
            v_hits := v_hits || v_row.hit;
            v_mine[v_row.line] := cardinality(v_hits);
        end loop;
    end if;

    -- Orphans: the row's record is in a gap, so it was decided and never
    -- committed, and never comes again. Whoever comes now is the first.
    if cardinality(v_hits) > 0 and exists (
        select from dedup_gap g where g.topic_id = any(array(select distinct h.topic from unnest(v_hits) h where h.topic is not null)))
    then
        for v_row in
            select x.i, x.i as number, (v_hits[v_hit_of[x.i]]).*
            from (select generate_subscripts(l_head, 1) i, unnest(l_head) head) x
            where not v_alias and x.head = x.i and v_hit_of[x.i] > 0
            union all
            -- With aliases each live row that was met, by the first line that has its key.
            select x.i, x.number, (v_hits[v_met[x.number]]).*
            from (select min(y.line) as i, y.number
                  from (select generate_subscripts(v_name, 1) line, unnest(v_name) number
                        union all
                        select unnest(k_line), unnest(k_name)) y
                  where v_alias and y.number is not null group by y.number) x
            where v_met[x.number] > 0
            order by i
        loop
            continue when not exists (
                select from dedup_gap g
                where g.topic_id = v_row.topic and g.partition = v_row.partition
                  and (g.from_epoch, g.from_offset) <= (v_row.epoch, v_row."offset")
                  and (v_row.epoch, v_row."offset") < (g.to_epoch, g.to_offset));
            continue when v_row."offset" is not distinct from l_offset[v_row.i] and v_row.epoch is not distinct from l_epoch[v_row.i]
                and v_row.partition is not distinct from a_partition[l_advance[v_row.i]]
                and v_row.topic is not distinct from a_topic[l_advance[v_row.i]];
            update dedup_ledger d set closed_at = at, closed_by = 'orphan'
            where d.ctid = v_row.ctid and d.first_seen_at = v_row.first_seen_at;
            if v_alias then
                v_met[v_row.number] := 0;
            else
                v_hit_of[v_row.i] := 0;
            end if;
            if v_row.i = any(orphans) is not true then
                orphans := orphans || v_row.i;
            end if;
        end loop;
    end if;

    if v_below then
        -- Records judged before. One whose own row was closed because an output
        -- refused it keeps that verdict, or it would be NEW and refused for ever.
        refused_lines := array(
            select x.i
            from (select generate_subscripts(l_h, 1) i, unnest(l_h) h, unnest(l_advance) a, unnest(l_epoch) epoch, unnest(l_offset) o) x
            where x.h is not null and (x.epoch, x.o) < (v_d_epoch[x.a], v_d_offset[x.a])
              and exists (select from dedup_ledger d
                          where d.h = x.h and d.key = l_key[x.i] and d.scope = p_scopes[l_scope[x.i]]
                            and d.closed_by = 'output.rejected'
                            and d.origin_offset = x.o and d.origin_epoch = x.epoch
                            and d.origin_partition = a_partition[x.a] and d.origin_topic = a_topic[x.a])
            order by 1);
        if cardinality(refused_lines) > 0 then
            return;
        end if;
    end if;

    if v_alias then
        -- Repeats are counted at the row of the primary key, whichever of a record's
        -- rows they met.
        for v_row in
            select x.nth::integer as nth,
                   row(x.line, d.ctid, x.first_seen_at, x.expires_at, d.retry_count, d.drift_count, x.gate, x.topic, x.partition, x.epoch, x.o,
                       x.client, x.attempt, x.payload, x.canonical, x.mode, x.scope, d.key, x.alias_of)::dedup_hit_2 as hit
            from unnest(v_hits) with ordinality x(line, place, first_seen_at, expires_at, retry_count, drift_count, gate, topic, partition, epoch, o,
                                                  client, attempt, payload, canonical, mode, scope, key, alias_of, nth),
                 lateral (select d.ctid, d.* from dedup_ledger d
                          where d.h = dedup_digest_1(p_scopes[x.scope], x.alias_of) and d.key = x.alias_of and d.scope = p_scopes[x.scope]
                            and d.first_seen_at = x.first_seen_at and d.alias_of is null and d.origin_gate = x.gate
                            and d.origin_topic is not distinct from x.topic and d.origin_partition is not distinct from x.partition
                            and d.origin_epoch is not distinct from x.epoch and d.origin_offset is not distinct from x.o
                            and d.origin_client is not distinct from x.client and d.origin_attempt is not distinct from x.attempt
                          limit 1) d
            where x.alias_of is not null
        loop
            v_hits[v_row.nth] := v_row.hit;
        end loop;
        v_same := array(select min(x.nth) over (partition by x.place, x.first_seen_at)::integer
                        from unnest(v_hits) with ordinality x(line, place, first_seen_at, expires_at, retry_count, drift_count, gate, topic, partition, epoch, o,
                                                              client, attempt, payload, canonical, mode, scope, key, alias_of, nth)
                        order by x.nth);
        v_first := array_fill(0, array[cardinality(v_hits)]);
        v_claim := array_fill(false, array[v_k]);
        for v_row in
            select x.line, x.hit
            from (select y.line, y.nth, v_met[y.number] as hit
                  from (select generate_subscripts(v_name, 1) line, 0 nth, unnest(v_name) number
                        union all
                        select unnest(k_line), generate_subscripts(k_line, 1), unnest(k_name)) y
                  where y.number is not null) x
            where x.hit > 0 and (v_hits[x.hit])."offset" is not distinct from l_offset[x.line]
              and (v_hits[x.hit]).gate = p_gate
              and (v_hits[x.hit]).epoch is not distinct from l_epoch[x.line]
              and (v_hits[x.hit]).partition is not distinct from a_partition[l_advance[x.line]]
              and (v_hits[x.hit]).topic is not distinct from a_topic[l_advance[x.line]]
              and (v_hits[x.hit]).client is not distinct from l_client[x.line]
              and (v_hits[x.hit]).attempt is not distinct from l_attempt[x.line]
            order by x.line, x.nth
        loop
            if v_mine[v_row.line] = 0 then
                v_mine[v_row.line] := v_row.hit;
            end if;
        end loop;

        if v_below then
            -- A repeat stays one of the same row as long as that lives:
            --
            --     A has the keys p1 and a1; B has p2 and a1, and is a repeat of A
            --     B's batch is thrown back; C with p2 is NEW
            --     B comes again: p2 is known now, and says another verdict perhaps
            for v_row in
                select x.line, x.hit, x.key
                from (select y.line, y.nth, y.key, v_met[y.number] as hit
                      from (select generate_subscripts(v_name, 1) line, 0 nth, unnest(v_name) number, unnest(l_key) key
                            union all
                            select unnest(k_line), generate_subscripts(k_line, 1), unnest(k_name), unnest(k_key)) y
                      where y.line = any(k_line)) x,
                     lateral (select s.row_first_seen_at, coalesce(s.row_key, s.key) as row_key, coalesce(s.matched, s.key) as matched
                              from dedup_sighting s
                              where s.scope = p_scopes[l_scope[x.line]] and s.key = l_key[x.line] and s.status in ('SEEN', 'DRIFT')
                                and s.origin_offset = l_offset[x.line] and s.origin_epoch = l_epoch[x.line]
                                and s.origin_partition = a_partition[l_advance[x.line]] and s.origin_topic = a_topic[l_advance[x.line]]
                              limit 1) s
                where x.hit > 0 and (v_hits[x.hit]).first_seen_at = s.row_first_seen_at and (v_hits[x.hit]).key = s.row_key
                  and (l_epoch[x.line], l_offset[x.line]) < (v_d_epoch[l_advance[x.line]], v_d_offset[l_advance[x.line]])
                order by x.line, x.key = s.matched desc, x.nth
            loop
                if v_stays[v_row.line] = 0 then
                    v_stays[v_row.line] := v_row.hit;
                    if v_row.key <> l_key[v_row.line] or v_hits[v_row.hit].alias_of is not null then
                        v_matched[v_row.line] := v_row.key;
                    end if;
                end if;
            end loop;
        end if;

        -- In poll order, since keys form chains:
        --
        --     A has the keys p1 and a1, B has p2 and a1, C has p2
        --     A is NEW; B is a repeat of A by a1, so p2 is not registered for it
        --     C is NEW and registers p2
        --
        -- Of a record with several known keys the first one names the row: the
        -- primary key, then the aliases in their order. A row of its own comes
        -- before any other's. It can have both only where learning found that one of
        -- its keys was somebody else's, while PostgreSQL did not know:
        --
        --     PostgreSQL loses A, which is in clean with the key a1
        --     B with p2 and a1 is registered; C with p2 is SEEN of B
        --     A is learned: it takes a1 from B, and p2 stays B's
        --     B's batch comes again
        --
        -- Were B a repeat of A now, nothing of p2 would be in clean, of which C was
        -- SEEN. It stays NEW, and a1 is in clean twice: what a loss may cost.
        for i in 1 .. v_n loop
            v_z := v_a;
            while v_z <= v_k and k_line[v_z] = i loop
                v_z := v_z + 1;
            end loop;
            if v_name[i] is not null then
                v_hit := v_mine[i];
                v_by := 0;
                if v_hit > 0 then
                    v_matched[i] := null;
                else
                    v_hit := v_stays[i];
                end if;
                if v_hit = 0 then
                    v_hit := v_met[v_name[i]];
                    v_by := v_maker[v_name[i]];
                    if v_hit > 0 and v_hits[v_hit].alias_of is not null or v_by > 0 and v_name[v_by] <> v_name[i] then
                        v_matched[i] := l_key[i];
                    end if;
                    v_next := v_a;
                    while v_hit = 0 and v_by = 0 and v_next < v_z loop
                        v_hit := v_met[k_name[v_next]];
                        v_by := v_maker[k_name[v_next]];
                        if v_hit > 0 or v_by > 0 then
                            v_matched[i] := k_key[v_next];
                        end if;
                        v_next := v_next + 1;
                    end loop;
                end if;
                v_hit_of[i] := 0;
                if v_hit > 0 then
                    v_hit := v_same[v_hit];
                    if v_first[v_hit] = 0 then
                        v_first[v_hit] := i;
                        v_hit_of[i] := v_hit;
                    end if;
                    l_head[i] := v_first[v_hit];
                elsif v_by > 0 then
                    l_head[i] := v_by;
                else
                    l_head[i] := i;
                    v_maker[v_name[i]] := i;
                    for a in v_a .. v_z - 1 loop
                        if v_maker[k_name[a]] = 0 then
                            v_maker[k_name[a]] := i;
                            v_claim[a] := true;
                        end if;
                    end loop;
                end if;
            end if;
            v_a := v_z;
        end loop;
        v_copies := true;
    end if;

    -- Every line that met a row, repeats an earlier line or is INVALID, judged
    -- as ledger.Judge does.
    if v_invalid or v_copies or cardinality(v_hits) > 0 then
        select array_agg(row(z.i, z.head, z.hit, z.fresh, z.adds, z.status,
                             case z.status when 'INVALID' then z.invalid_reason
                                 when 'DRIFT' then case when z.mode <> 'raw' then 'hash.' || z.mode
                                                        when v_matched[z.i] is not null then 'alias' end
                                 when 'SEEN' then case when not z.same and z.mode <> z.row_mode then 'hash.not_comparable'
                                                       when v_matched[z.i] is not null then 'alias' end
                             end)::dedup_repeat_1 order by z.i)
        into v_repeats
        from (select j.*, j.fresh and j.status in ('SEEN', 'DRIFT') as adds
        from (select y.*,
                     case when y.head is null then 'INVALID'
                          when y.own then 'NEW'
                          when y.same or y.mode <> y.row_mode then 'SEEN'
                          when y.mode = 'raw' or y.canonical is distinct from y.row_canonical then 'DRIFT'
                          else 'SEEN' end as status
              from (select x.i, x.head, coalesce(v_hit_of[x.head], 0) as hit, l_reason[x.i] as invalid_reason,
                           p_gate <> 1 or not v_below
                               or (l_epoch[x.i], l_offset[x.i]) >= (v_d_epoch[l_advance[x.i]], v_d_offset[l_advance[x.i]]) as fresh,
                           coalesce(l_mode[x.i], 'raw') as mode, l_canonical[x.i] as canonical,
                           case when v_hit_of[x.head] > 0 then (v_hits[v_hit_of[x.head]]).hash_mode
                                else coalesce(l_mode[x.head], 'raw') end as row_mode,
                           case when v_hit_of[x.head] > 0 then (v_hits[v_hit_of[x.head]]).canonical_sha256
                                else l_canonical[x.head] end as row_canonical,
                           l_payload[x.i] = case when v_hit_of[x.head] > 0 then (v_hits[v_hit_of[x.head]]).payload_sha256
                                                 else l_payload[x.head] end as same,
                           case when v_hit_of[x.head] > 0 then
                                    (select h.gate = p_gate
                                            and h."offset" is not distinct from l_offset[x.i]
                                            and h.epoch is not distinct from l_epoch[x.i]
                                            and h.partition is not distinct from a_partition[l_advance[x.i]]
                                            and h.topic is not distinct from a_topic[l_advance[x.i]]
                                            and h.client is not distinct from l_client[x.i]
                                            and h.attempt is not distinct from l_attempt[x.i]
                                     from (select (v_hits[v_hit_of[x.head]]).*) h)
                                else l_offset[x.head] is not distinct from l_offset[x.i]
                                     and l_epoch[x.head] is not distinct from l_epoch[x.i]
                                     and l_advance[x.head] is not distinct from l_advance[x.i]
                                     and l_client[x.head] is not distinct from l_client[x.i]
                                     and l_attempt[x.head] is not distinct from l_attempt[x.i] end as own
                    from (select generate_subscripts(l_head, 1) i, unnest(l_head) head) x
                    where x.head is null or x.head <> x.i or v_hit_of[x.head] > 0) y) j) z;
    end if;

    if v_below then
        -- A record judged before may now meet another row than then: the row it
        -- repeated was closed (an output refused it). Its sighting tells, and is
        -- corrected, so that verdicts and accounts go on agreeing. NEW counts in
        -- the hour of the row, everything else in the hour of its sighting.
        for v_row in
            select x.i, s.ctid as place, s.seen_at, s.status, s.row_first_seen_at, coalesce(s.row_key, s.key) as row_key,
                   p_accounts[l_account[x.i]] as account, l_bytes[x.i] as bytes,
                   case when v_alias then nullif(coalesce((v_hits[v_hit_of[x.head]]).key, l_key[x.head]), l_key[x.i]) end as now_key,
                   array_position(array(select r.line from unnest(v_repeats) r), x.i) as rep
            from (select generate_subscripts(l_h, 1) i, unnest(l_head) head, unnest(l_advance) a, unnest(l_epoch) epoch, unnest(l_offset) o) x,
                 lateral (select d.ctid, d.* from dedup_sighting d
                          where d.scope = p_scopes[l_scope[x.i]] and d.key = l_key[x.i]
                            and d.origin_offset = x.o and d.origin_epoch = x.epoch
                            and d.origin_partition = a_partition[x.a] and d.origin_topic = a_topic[x.a] limit 1) s
            where x.head is not null and (x.epoch, x.o) < (v_d_epoch[x.a], v_d_offset[x.a])
              and (s.row_first_seen_at is distinct from
                   case when v_hit_of[x.head] > 0 then (v_hits[v_hit_of[x.head]]).first_seen_at else at end
                   or s.row_key is distinct from
                   case when v_alias then nullif(coalesce((v_hits[v_hit_of[x.head]]).key, l_key[x.head]), l_key[x.i]) end)
        loop
            if v_row.status <> 'INVALID' then -- an output refused it, and its row counts it no more
                v_left := v_left || row(v_row.i, v_row.row_first_seen_at, v_row.status = 'DRIFT', v_row.row_key)::dedup_left_2;
            end if;
            if v_row.rep is null or v_repeats[v_row.rep].status = 'NEW' then
                delete from dedup_sighting d where d.ctid = v_row.place and d.seen_at = v_row.seen_at;
            else
                update dedup_sighting d set status = v_repeats[v_row.rep].status, reason = v_repeats[v_row.rep].reason,
                       state = case when v_repeats[v_row.rep].status = 'DRIFT' then coalesce(d.state, 'open') end,
                       row_first_seen_at = case when v_repeats[v_row.rep].hit > 0
                                                then v_hits[v_repeats[v_row.rep].hit].first_seen_at else at end,
                       row_key = v_row.now_key, matched = v_matched[v_row.i]
                where d.ctid = v_row.place and d.seen_at = v_row.seen_at;
                v_repeats[v_row.rep].adds := true;
            end if;
            perform dedup_account_1(v_row.account, date_trunc('hour', v_row.seen_at, 'UTC'), v_row.status, -1, -v_row.bytes);
            if v_row.rep is null then
                perform dedup_account_1(v_row.account, date_trunc('hour', at, 'UTC'), 'NEW', 1, v_row.bytes);
            elsif v_repeats[v_row.rep].status = 'NEW' then
                perform dedup_account_1(v_row.account, date_trunc('hour', v_hits[v_repeats[v_row.rep].hit].first_seen_at, 'UTC'),
                                        'NEW', 1, v_row.bytes);
            else
                perform dedup_account_1(v_row.account, date_trunc('hour', v_row.seen_at, 'UTC'),
                                        v_repeats[v_row.rep].status, 1, v_row.bytes);
            end if;
        end loop;
        -- The other way round: it was NEW then, and its own row was closed by a
        -- learned fact, or has expired, before it came again. It has no sighting.
        for v_row in
            select x.i, x.rep, o.first_seen_at, p_accounts[l_account[x.i]] as account, l_bytes[x.i] as bytes,
                   case when (v_repeats[x.rep]).hit > 0 then (v_hits[(v_repeats[x.rep]).hit]).first_seen_at else at end as row_first_seen_at,
                   case when v_alias then nullif(coalesce((v_hits[(v_repeats[x.rep]).hit]).key, l_key[(v_repeats[x.rep]).head]), x.key) end as row_key
            from (select r.line as i, r.rep::integer as rep, l_h[r.line] as h, l_key[r.line] as key, p_scopes[l_scope[r.line]] as scope,
                         l_epoch[r.line] as epoch, l_offset[r.line] as o, a_partition[l_advance[r.line]] as partition, a_topic[l_advance[r.line]] as topic
                  from unnest(v_repeats) with ordinality r(line, head, hit, fresh, adds, status, reason, rep)
                  where not r.fresh and not r.adds and r.status in ('SEEN', 'DRIFT')) x,
                 lateral (select min(d.first_seen_at) as first_seen_at from dedup_ledger d
                          where d.h = x.h and d.key = x.key and d.scope = x.scope
                            and d.origin_offset = x.o and d.origin_epoch = x.epoch
                            and d.origin_partition = x.partition and d.origin_topic = x.topic) o
            where o.first_seen_at is not null
              and not exists (select from dedup_sighting d where d.scope = x.scope and d.key = x.key
                              and d.origin_offset = x.o and d.origin_epoch = x.epoch
                              and d.origin_partition = x.partition and d.origin_topic = x.topic)
        loop
            v_repeats[v_row.rep].adds := true;
            insert into dedup_sighting (seen_at, row_first_seen_at, row_key, matched, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                        scope, key, status, state, reason, payload_sha256, source_service, flow)
            values (at, v_row.row_first_seen_at, v_row.row_key, v_matched[v_row.i], l_offset[v_row.i], a_partition[l_advance[v_row.i]], l_epoch[v_row.i], p_gate, a_topic[l_advance[v_row.i]],
                    p_scopes[l_scope[v_row.i]], l_key[v_row.i], v_repeats[v_row.rep].status,
                    case when v_repeats[v_row.rep].status = 'DRIFT' then 'open' end, v_repeats[v_row.rep].reason,
                    l_payload[v_row.i], l_source[v_row.i], split_part(v_row.account, ':', 2));
            perform dedup_account_1(v_row.account, date_trunc('hour', v_row.first_seen_at, 'UTC'), 'NEW', -1, -v_row.bytes);
            perform dedup_account_1(v_row.account, date_trunc('hour', at, 'UTC'), v_repeats[v_row.rep].status, 1, v_row.bytes);
        end loop;
    end if;

    -- Three copies of one key in a chunk add two: counted first, per row, then
    -- written once. UPDATE ... FROM would add one.
    if v_copies then
        for v_row in
            select r.head, count(*) as n, count(*) filter (where r.status = 'DRIFT') as d
            from unnest(v_repeats) r where r.hit = 0 and r.adds group by r.head
        loop
            v_retry[v_row.head] := v_row.n;
            v_drift[v_row.head] := v_row.d;
        end loop;
    end if;

    insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, retry_count, drift_count,
                              origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                              scope, key, payload_sha256, canonical_sha256, hash_mode, source_service, flow,
                              origin_client, origin_attempt)
    select x.h, at, at, at + make_interval(secs => x.win), x.retry, x.drift,
           x.o, a_partition[x.a], x.epoch, p_gate, a_topic[x.a],
           p_scopes[x.scope], x.key, x.payload, x.canonical, coalesce(x.mode, 'raw'), x.source,
           split_part(p_accounts[x.account], ':', 2), x.client, x.attempt
    from (select generate_subscripts(l_h, 1) i, unnest(l_head) head, unnest(l_h) h, unnest(l_window) win,
                 unnest(v_hit_of) hit, unnest(v_retry) retry, unnest(v_drift) drift,
                 unnest(l_offset) o, unnest(l_epoch) epoch, unnest(l_advance) a, unnest(l_scope) scope, unnest(l_key) key,
                 unnest(l_payload) payload, unnest(l_canonical) canonical, unnest(l_mode) mode, unnest(l_source) source,
                 unnest(l_account) account, unnest(l_client) client, unnest(l_attempt) attempt) x
    where x.head = x.i and x.hit = 0;
    if v_k > 0 then
        insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                  scope, key, alias_of, payload_sha256, canonical_sha256, hash_mode, source_service, flow,
                                  origin_client, origin_attempt)
        select x.h, at, at, at + make_interval(secs => l_window[x.i]), l_offset[x.i], a_partition[l_advance[x.i]], l_epoch[x.i], p_gate, a_topic[l_advance[x.i]],
               p_scopes[l_scope[x.i]], x.key, l_key[x.i], l_payload[x.i], l_canonical[x.i], coalesce(l_mode[x.i], 'raw'), l_source[x.i],
               split_part(p_accounts[l_account[x.i]], ':', 2), l_client[x.i], l_attempt[x.i]
        from (select unnest(k_line) i, unnest(k_h) h, unnest(k_key) key, unnest(v_claim) claim) x
        where x.claim;
    end if;

    if cardinality(v_repeats) > 0 then
        -- By ctid: nobody else updates these rows without the scope lock.
        update dedup_ledger l
        set retry_count = l.retry_count + x.n, drift_count = l.drift_count + x.d, last_seen_at = at
        from (select (v_hits[r.hit]).ctid as place, (v_hits[r.hit]).first_seen_at as first_seen_at, r.n, r.d
              from (select r.hit, count(*) n, count(*) filter (where r.status = 'DRIFT') d
                    from unnest(v_repeats) r where r.hit > 0 and r.adds group by r.hit) r) x
        where l.ctid = x.place and l.first_seen_at = x.first_seen_at;

        -- The bound counts corrected lines of this chunk too: their sightings are
        -- the row's by now.
        insert into dedup_sighting (seen_at, row_first_seen_at, row_key, matched, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                    scope, key, status, state, reason, payload_sha256, source_service, flow, origin_client, origin_attempt)
        select at, case when r.status <> 'INVALID' then case when r.hit > 0 then (v_hits[r.hit]).first_seen_at else at end end,
               case when v_alias then nullif(coalesce((v_hits[r.hit]).key, l_key[r.head]), l_key[r.line]) end, v_matched[r.line],
               l_offset[r.line], a_partition[l_advance[r.line]], l_epoch[r.line], p_gate, a_topic[l_advance[r.line]],
               coalesce(p_scopes[l_scope[r.line]], p_accounts[l_account[r.line]]), l_key[r.line],
               r.status, case when r.status <> 'SEEN' then 'open' end, r.reason, l_payload[r.line], l_source[r.line],
               split_part(p_accounts[l_account[r.line]], ':', 2), l_client[r.line], l_attempt[r.line]
        from (select x.*, count(*) filter (where x.adds) over (partition by x.head order by x.line) as ordinal from unnest(v_repeats) x) r
        where r.fresh and (r.status = 'INVALID'
              or r.status in ('SEEN', 'DRIFT') and r.ordinal + case when r.hit > 0 then (v_hits[r.hit]).retry_count else 0 end <= p_keep);
    end if;

    -- Rows that lines were repeats of, and are none of any more. Behind all that
    -- goes by ctid, which this changes.
    for v_row in
        select case when x.key = l_key[x.line] then l_h[x.line] else dedup_digest_1(p_scopes[l_scope[x.line]], x.key) end as h,
               p_scopes[l_scope[x.line]] as scope, x.key, x.first_seen_at,
               count(*) as n, count(*) filter (where x.drift) as d
        from unnest(v_left) x group by 1, 2, 3, 4
    loop
        update dedup_ledger d
        set retry_count = greatest(0, d.retry_count - v_row.n), drift_count = greatest(0, d.drift_count - v_row.d)
        where d.h = v_row.h and d.scope = v_row.scope and d.key = v_row.key and d.first_seen_at = v_row.first_seen_at;
    end loop;

    -- The accounts, in sorted order. Everything at or above the old D is NEW but
    -- for the repeats; grouped by number, not by text.
    insert into dedup_hour as d (scope, hour, status, count, bytes)
    select p_accounts[t.account], date_trunc('hour', at, 'UTC'), t.status, sum(t.n), sum(t.bytes)
    from (select x.account, 'NEW' as status, count(*) as n, sum(x.bytes) as bytes
          from (select unnest(l_account) account, unnest(l_bytes) bytes, unnest(l_advance) a, unnest(l_epoch) epoch, unnest(l_offset) o) x
          where not v_below or p_gate <> 1 or (x.epoch, x.o) >= (v_d_epoch[x.a], v_d_offset[x.a])
          group by x.account
          union all
          select l_account[r.line], 'NEW', -count(*), -sum(l_bytes[r.line]) from unnest(v_repeats) r where r.fresh group by 1
          union all
          select l_account[r.line], r.status, count(*), sum(l_bytes[r.line]) from unnest(v_repeats) r
          where r.fresh and r.status <> 'NEW' group by 1, 2) t
    group by t.account, t.status having sum(t.n) > 0
    order by p_accounts[t.account] collate "C", t.status
    on conflict (scope, hour, status) do update set count = d.count + excluded.count, bytes = d.bytes + excluded.bytes;

    -- Last, so that a refusal above has left D where it was.
    if v_advances > 0 then
        update dedup_position p
        set seq = p.seq + 1, updated_at = at,
            d_epoch = case when i.d_grows then i.new_epoch else p.d_epoch end,
            d_offset = case when i.d_grows then i.new_offset else p.d_offset end,
            w_epoch = case when i.w_grows then i.w_epoch else p.w_epoch end,
            w_offset = case when i.w_grows then i.w_offset else p.w_offset end,
            outputs = case when i.w_grows then i.outputs::jsonb else p.outputs end
        from (select x.*, (q.d_epoch, q.d_offset) < (x.new_epoch, x.new_offset) as d_grows,
                     (q.w_epoch, q.w_offset) < (x.w_epoch, x.w_offset) as w_grows
              from (select unnest(a_topic) topic, unnest(a_partition) partition,
                           unnest(a_new_epoch) new_epoch, unnest(a_new_offset) new_offset,
                           unnest(a_w_epoch) w_epoch, unnest(a_w_offset) w_offset, unnest(a_outputs) outputs) x
              join dedup_position q on q.topic_id = x.topic and q.partition = x.partition) i
        where p.topic_id = i.topic and p.partition = i.partition;
    end if;

    -- The answer: repeats only. A line that is missing was inserted.
    select array_agg(r.line), array_agg(r.head), array_agg(r.hit), array_agg(r.adds)
    into repeat_line, repeat_head, repeat_hit, repeat_counted
    from unnest(v_repeats) r where r.head is not null;
    select array_agg(h.first_seen_at), array_agg(h.expires_at), array_agg(h.retry_count), array_agg(h.drift_count),
           array_agg(h.gate), array_agg(h.topic), array_agg(h.partition), array_agg(h.epoch), array_agg(h."offset"),
           array_agg(h.client), array_agg(h.attempt), array_agg(h.payload_sha256), array_agg(h.canonical_sha256), array_agg(h.hash_mode)
    into hit_first, hit_expires, hit_retry, hit_drift, hit_gate, hit_topic, hit_partition, hit_epoch, hit_offset,
         hit_client, hit_attempt, hit_payload, hit_canonical, hit_mode
    from unnest(v_hits) h;
    if v_alias then
        hit_key := array(select h.key from unnest(v_hits) h);
        repeat_matched := array(select v_matched[r.line] from unnest(v_repeats) r where r.head is not null);
    end if;
end
$$;
-- +goose StatementEnd

-- Learning, as dedup_learn_2 does it, with aliases. k_*: the aliases of NEW
-- outputs, in the order of lines. l_matched: the key by which a repeat was one,
-- where it is not the primary key of both.
-- +goose StatementBegin
create function dedup_learn_3(
    p_topic uuid, p_partition integer, p_claim uuid, p_seq bigint,
    p_known_seq bigint, p_known_d_epoch integer, p_known_d_offset bigint,
    p_to_epoch integer, p_to_offset bigint, p_outputs text, p_keep integer, p_scopes text[],
    l_status text[], l_epoch integer[], l_offset bigint[], l_account text[],
    l_scope text[], l_h bigint[], l_key text[], l_reason text[], l_bytes bigint[],
    l_payload bytea[], l_source text[], l_first timestamptz[], l_expires timestamptz[],
    l_matched text[], k_line integer[], k_h bigint[], k_key text[],
    g_from_epoch integer[], g_from_offset bigint[], g_to_epoch integer[], g_to_offset bigint[],
    out seq bigint, out d_epoch integer, out d_offset bigint
)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now      timestamptz;
    v_position dedup_position;
    v_locked   integer;
    v_account  text;
    v_place    tid;
    v_first    timestamptz;
    v_kept     bigint;
    v_row_key  text;
    v_known    boolean;
    v_matched  text;
    v_alias_of text;
    v_k        integer := coalesce(cardinality(k_line), 0);
    v_a        integer := 1;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'dedup_learn_3 works under read committed only, not %', current_setting('transaction_isolation')
            using errcode = 'DL001';
    end if;

    -- Scopes first, then the position, as the registration does.
    insert into dedup_scope (scope, gate) select s, 1 from unnest(p_scopes) s order by s collate "C" on conflict do nothing;
    select count(*) into v_locked
    from (select s.scope from dedup_scope s where s.scope = any(p_scopes) order by s.scope for no key update) x;
    if v_locked < coalesce(cardinality(p_scopes), 0) then
        raise exception 'a scope vanished before it was locked' using errcode = 'serialization_failure';
    end if;
    v_now := clock_timestamp();
    select * into v_position from dedup_position p
    where p.topic_id = p_topic and p.partition = p_partition for no key update;
    if not found or v_position.claim <> p_claim or v_position.timeline <> dedup_timeline_1()
       or v_position.seq < p_known_seq or (v_position.d_epoch, v_position.d_offset) < (p_known_d_epoch, p_known_d_offset) then
        raise exception 'claim, timeline, seq or D is not what the session left' using errcode = 'DL002';
    end if;

    update dedup_scope s set max_window = x.win
    from (select y.scope, max(ceil(extract(epoch from y.expires - y.first)))::integer win
          from (select unnest(l_scope) scope, unnest(l_first) first, unnest(l_expires) expires) y where y.scope is not null group by 1) x
    where s.scope = x.scope and s.max_window < x.win;
    if to_regclass('public.dedup_sighting' || to_char(v_now at time zone 'UTC', '_YYYY_MM')) is null then
        perform dedup_months_1(3);
    end if;

    for i in 1 .. coalesce(cardinality(l_status), 0) loop
        v_account := coalesce(l_account[i], '?:?');

        if l_status[i] = 'NEW' then
            v_known := exists (
                select from dedup_ledger d
                where d.h = l_h[i] and d.key = l_key[i] and d.scope = l_scope[i]
                  and d.origin_offset = l_offset[i] and d.origin_epoch = l_epoch[i]
                  and d.origin_partition = p_partition and d.origin_topic = p_topic);
            -- The aliases, each as its primary key below: of a row of another record
            -- the key alone gives way, the record's other keys are its own still.
            while v_a <= v_k and k_line[v_a] <= i loop
                if k_line[v_a] = i and not v_known then
                    if l_expires[i] > v_now then
                        update dedup_ledger d set closed_at = v_now, closed_by = 'learned'
                        where d.h = k_h[v_a] and d.key = k_key[v_a] and d.scope = l_scope[i]
                          and d.closed_at is null and d.expires_at > v_now;
                    end if;
                    if to_regclass('public.dedup_ledger' || to_char(l_first[i] at time zone 'UTC', '_YYYY_MM')) is null then
                        perform dedup_month_1(l_first[i]);
                    end if;
                    insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, origin_offset, origin_partition, origin_epoch,
                                              origin_gate, origin_topic, scope, key, alias_of, payload_sha256, hash_mode, source_service, flow)
                    values (k_h[v_a], l_first[i], l_first[i], l_expires[i], l_offset[i], p_partition, l_epoch[i],
                            1, p_topic, l_scope[i], k_key[v_a], l_key[i], l_payload[i], 'raw', l_source[i], split_part(v_account, ':', 2));
                end if;
                v_a := v_a + 1;
            end loop;
            continue when v_known;
            -- It is in clean: a fact. A live row of another origin was made
            -- while PostgreSQL did not know, and gives way; if this one has
            -- expired by now, the other stands.
            if l_expires[i] > v_now then
                update dedup_ledger d set closed_at = v_now, closed_by = 'learned'
                where d.h = l_h[i] and d.key = l_key[i] and d.scope = l_scope[i]
                  and d.closed_at is null and d.expires_at > v_now;
            end if;
            if to_regclass('public.dedup_ledger' || to_char(l_first[i] at time zone 'UTC', '_YYYY_MM')) is null then
                perform dedup_month_1(l_first[i]);
            end if;
            insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, origin_offset, origin_partition, origin_epoch,
                                      origin_gate, origin_topic, scope, key, payload_sha256, hash_mode, source_service, flow)
            values (l_h[i], l_first[i], l_first[i], l_expires[i], l_offset[i], p_partition, l_epoch[i],
                    1, p_topic, l_scope[i], l_key[i], l_payload[i], 'raw', l_source[i], split_part(v_account, ':', 2));
        end if;

        -- Below D it was counted when it was decided.
        continue when (l_epoch[i], l_offset[i]) < (v_position.d_epoch, v_position.d_offset);
        perform dedup_account_1(v_account, date_trunc('hour', case when l_status[i] = 'NEW' then l_first[i] else v_now end, 'UTC'),
                                l_status[i], 1, l_bytes[i]);
        continue when l_status[i] = 'NEW';

        v_kept := 0;
        v_row_key := null;
        if l_status[i] in ('SEEN', 'DRIFT') then
            v_matched := coalesce(l_matched[i], l_key[i]);
            select d.ctid, d.first_seen_at, d.retry_count + 1, d.key, d.alias_of into v_place, v_first, v_kept, v_row_key, v_alias_of from dedup_ledger d
            where d.h = case when v_matched = l_key[i] then l_h[i] else dedup_digest_1(l_scope[i], v_matched) end
              and d.key = v_matched and d.scope = l_scope[i]
              and d.first_seen_at = l_first[i]
            order by d.closed_at is null desc limit 1;
            if v_alias_of is not null then
                -- Counted at the row of the primary key. Rows of one time and key
                -- lie in one scope, so this is the one that the alias names.
                select d.ctid, d.first_seen_at, d.retry_count + 1, d.key into v_place, v_first, v_kept, v_row_key from dedup_ledger d
                where d.h = dedup_digest_1(l_scope[i], v_alias_of) and d.key = v_alias_of and d.scope = l_scope[i]
                  and d.first_seen_at = l_first[i]
                order by d.closed_at is null desc limit 1;
            end if;
            if found then
                update dedup_ledger d set retry_count = d.retry_count + 1, last_seen_at = v_now,
                       drift_count = d.drift_count + case when l_status[i] = 'DRIFT' then 1 else 0 end
                where d.ctid = v_place and d.first_seen_at = v_first;
            else
                v_kept := 0;
            end if;
        end if;
        if v_kept <= p_keep then
            insert into dedup_sighting (seen_at, row_first_seen_at, row_key, matched, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                        scope, key, status, state, reason, payload_sha256, source_service, flow)
            values (v_now, case when v_kept > 0 then v_first else l_first[i] end, nullif(v_row_key, l_key[i]), l_matched[i],
                    l_offset[i], p_partition, l_epoch[i], 1, p_topic,
                    coalesce(l_scope[i], v_account), l_key[i], l_status[i],
                    case when l_status[i] <> 'SEEN' then 'open' end, l_reason[i], l_payload[i], l_source[i], split_part(v_account, ':', 2));
        end if;
    end loop;
    insert into dedup_gap (found_at, topic_id, partition, from_epoch, from_offset, to_epoch, to_offset, kind)
    select v_now, p_topic, p_partition, g.*, 'no_output'
    from unnest(g_from_epoch, g_from_offset, g_to_epoch, g_to_offset) g
    on conflict do nothing;

    update dedup_position p
    set seq = greatest(p.seq, p_seq) + 1, updated_at = v_now,
        d_epoch = case when (p.d_epoch, p.d_offset) < (p_to_epoch, p_to_offset) then p_to_epoch else p.d_epoch end,
        d_offset = case when (p.d_epoch, p.d_offset) < (p_to_epoch, p_to_offset) then p_to_offset else p.d_offset end,
        -- W only grows, also when a lesson comes twice.
        w_epoch = case when (p.w_epoch, p.w_offset) < (p_to_epoch, p_to_offset) then p_to_epoch else p.w_epoch end,
        w_offset = case when (p.w_epoch, p.w_offset) < (p_to_epoch, p_to_offset) then p_to_offset else p.w_offset end,
        outputs = case when (p.w_epoch, p.w_offset) <= (p_to_epoch, p_to_offset) then p_outputs::jsonb else p.outputs end
    where p.topic_id = p_topic and p.partition = p_partition
    returning p.seq, p.d_epoch, p.d_offset into seq, d_epoch, d_offset;
end
$$;
-- +goose StatementEnd

-- An output refused a record, as dedup_reject_1 does it, with aliases: k_* are the
-- record's keys beside p_key. All its rows are closed.
-- +goose StatementBegin
create function dedup_reject_2(
    p_topic uuid, p_partition integer, p_claim uuid, p_epoch integer, p_offset bigint,
    p_account text, p_scope text, p_key text, p_h bigint, p_bytes bigint,
    p_payload bytea, p_canonical bytea, p_mode text, p_source text, p_reason text,
    k_h bigint[], k_key text[]
) returns void
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now  timestamptz;
    v_at   timestamptz;
    v_was  text;
    v_row  record;
    v_seen record;
    v_hour timestamptz;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'dedup_reject_2 works under read committed only, not %', current_setting('transaction_isolation')
            using errcode = 'DL001';
    end if;
    -- It closes a row, so it takes the scope lock as every writer does.
    perform 1 from dedup_scope s where s.scope = p_scope for no key update;
    v_now := clock_timestamp();
    -- Only a record that was decided can be refused by an output.
    perform 1 from dedup_position p
    where p.topic_id = p_topic and p.partition = p_partition and p.claim = p_claim and p.timeline = dedup_timeline_1()
      and (p_epoch, p_offset) < (p.d_epoch, p.d_offset)
    for no key update;
    if not found then
        raise exception 'claim, timeline or D is not what the session left' using errcode = 'DL002';
    end if;

    select d.ctid as place, d.first_seen_at, d.closed_by, min(d.first_seen_at) over () as counted_at into v_row from dedup_ledger d
    where d.h = p_h and d.key = p_key and d.scope = p_scope
      and d.origin_offset = p_offset and d.origin_epoch = p_epoch
      and d.origin_partition = p_partition and d.origin_topic = p_topic
    order by d.first_seen_at desc limit 1;
    if found then
        if v_row.closed_by = 'output.rejected' then
            return;
        end if;
        update dedup_ledger d set closed_at = coalesce(d.closed_at, v_now), closed_by = 'output.rejected'
        where d.ctid = v_row.place and d.first_seen_at = v_row.first_seen_at;
        -- Its keys go together, as they came.
        for i in 1 .. coalesce(cardinality(k_h), 0) loop
            update dedup_ledger d set closed_at = coalesce(d.closed_at, v_now), closed_by = 'output.rejected'
            where d.h = k_h[i] and d.key = k_key[i] and d.scope = p_scope and d.first_seen_at = v_row.first_seen_at
              and d.origin_offset = p_offset and d.origin_epoch = p_epoch
              and d.origin_partition = p_partition and d.origin_topic = p_topic;
        end loop;
        v_was := 'NEW';
        v_at := v_row.counted_at; -- the hour where it was counted
    end if;

    if v_was is null then
        select d.ctid as place, d.seen_at, d.status, d.row_first_seen_at, coalesce(d.row_key, d.key) as row_key into v_seen from dedup_sighting d
        where d.scope = coalesce(p_scope, p_account) and d.key is not distinct from p_key
          and d.origin_offset = p_offset and d.origin_epoch = p_epoch
          and d.origin_partition = p_partition and d.origin_topic = p_topic
        limit 1;
        if found then
            if v_seen.status = 'INVALID' then
                return;
            end if;
            update dedup_sighting d set status = 'INVALID', state = 'open', reason = p_reason
            where d.ctid = v_seen.place and d.seen_at = v_seen.seen_at;
            v_was := v_seen.status;
            v_hour := date_trunc('hour', v_seen.seen_at, 'UTC');
            update dedup_ledger d
            set retry_count = greatest(0, d.retry_count - 1), drift_count = greatest(0, d.drift_count - (v_was = 'DRIFT')::integer)
            where d.h = case when v_seen.row_key = p_key then p_h else dedup_digest_1(p_scope, v_seen.row_key) end
              and d.scope = p_scope and d.key = v_seen.row_key and d.first_seen_at = v_seen.row_first_seen_at;
        else
            -- A repeat beyond those that are kept: only counted, with the row's
            -- last repeats.
            v_at := v_now;
            select case when d.payload_sha256 = p_payload or d.hash_mode <> p_mode then 'SEEN'
                        when p_mode = 'raw' or d.canonical_sha256 is distinct from p_canonical then 'DRIFT'
                        else 'SEEN' end as status, coalesce(p.last_seen_at, d.last_seen_at) as last_seen_at,
                   coalesce(p.key, d.key) as row_key, coalesce(p.h, d.h) as row_h, d.first_seen_at
            into v_seen
            from (select p_h as h, p_key as key, 0 as nth
                  union all select unnest(k_h), unnest(k_key), generate_subscripts(k_h, 1)) x
            join dedup_ledger d on d.h = x.h and d.key = x.key and d.scope = p_scope and d.closed_at is null and d.expires_at > v_now
            left join dedup_ledger p on p.h = dedup_digest_1(p_scope, d.alias_of) and p.key = d.alias_of and p.scope = p_scope
                and p.first_seen_at = d.first_seen_at
            order by x.nth, d.first_seen_at desc limit 1;
            if found then
                v_was := v_seen.status;
                v_at := v_seen.last_seen_at;
                update dedup_ledger d
                set retry_count = greatest(0, d.retry_count - 1), drift_count = greatest(0, d.drift_count - (v_was = 'DRIFT')::integer)
                where d.h = v_seen.row_h and d.scope = p_scope and d.key = v_seen.row_key and d.first_seen_at = v_seen.first_seen_at;
            end if;
        end if;
    end if;

    if v_at is not null then
        v_hour := date_trunc('hour', v_at, 'UTC');
        if to_regclass('public.dedup_sighting' || to_char(v_at at time zone 'UTC', '_YYYY_MM')) is null then
            perform dedup_month_1(v_at);
        end if;
        insert into dedup_sighting (seen_at, row_first_seen_at, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                    scope, key, status, state, reason, payload_sha256, source_service, flow)
        values (v_at, null, p_offset, p_partition, p_epoch, 1, p_topic,
                coalesce(p_scope, p_account), p_key, 'INVALID', 'open', p_reason, p_payload, p_source, split_part(p_account, ':', 2));
    end if;
    if v_was is not null then
        perform dedup_account_1(p_account, v_hour, 'INVALID', 1, p_bytes);
        perform dedup_account_1(p_account, v_hour, v_was, -1, -p_bytes);
    end if;
end
$$;
-- +goose StatementEnd
