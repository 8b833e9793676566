-- +goose Up
-- The registration again, under its name: it takes and answers the same.
--
-- It left a repeat counted at the row of which it is none any more:
--
--	R is registered; a copy C is SEEN of R, and R counts it
--	the batch of C is thrown back, and R's window ends
--	C comes again: it makes a row of its own and is NEW
--
-- The account and the sighting of C were corrected then, retry_count and
-- drift_count of R were not. Nothing else differs. A repeat beyond
-- sightings.keep_per_key has no sighting and stays counted.

-- plan: nothing
create type dedup_left_1 as (line integer, first_seen_at timestamptz, drift boolean);

-- plan: nothing
-- +goose StatementBegin
create or replace function dedup_register_2(
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
    out at timestamptz, out seqs bigint[],
    out refused_scopes integer[], out refused_lines integer[],
    out repeat_line integer[], out repeat_head integer[], out repeat_hit integer[], out repeat_counted boolean[], out orphans integer[],
    out hit_first timestamptz[], out hit_expires timestamptz[], out hit_retry bigint[], out hit_drift bigint[],
    out hit_gate smallint[], out hit_topic uuid[], out hit_partition integer[], out hit_epoch integer[],
    out hit_offset bigint[], out hit_client text[], out hit_attempt text[],
    out hit_payload bytea[], out hit_canonical bytea[], out hit_mode text[]
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
    v_names    text[];
    v_max      integer[];
    v_bound    integer;
    v_from     timestamptz;
    v_long     boolean;
    v_timeline integer;
    v_d_epoch  integer[];
    v_d_offset bigint[];
    v_below    boolean := false;
    v_left     dedup_left_1[] := '{}';
    v_invalid  boolean;
    v_copies   boolean;
    v_hits     dedup_hit_1[] := '{}';
    v_some     dedup_hit_1[];
    v_hit_of   integer[];
    v_repeats  dedup_repeat_1[] := '{}';
    v_retry    bigint[];
    v_drift    bigint[];
    v_row      record;
    v_next     integer;
begin
    -- Under repeatable read the snapshot is older than the scope lock: the
    -- writer before us has committed, the look-back does not see its row, and
    -- one key is NEW twice without an error.
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'dedup_register_2 works under read committed only, not %', current_setting('transaction_isolation')
            using errcode = 'DL001';
    end if;
    if v_n > 0 and l_record[v_n] <> v_n then
        raise exception 'several keys of one record: aliases come later' using errcode = 'feature_not_supported';
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
        into v_names, v_max, v_found, v_strange
        from (select s.scope, s.max_window, s.gate from dedup_scope s
              where s.scope = any(p_scopes) order by s.scope
              for no key update /* the scope lock */) x;
        -- Fewer rows than asked for: one vanished between upsert and lock, and
        -- FOR UPDATE locks nothing and goes on. Start again.
        if coalesce(cardinality(v_names), 0) < v_scopes then
            raise exception 'a scope vanished before it was locked' using errcode = 'serialization_failure';
        end if;
        if v_names <> p_scopes then
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
                             l.payload_sha256, l.canonical_sha256, l.hash_mode)::dedup_hit_1)
        into v_some
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
                                     d.payload_sha256, d.canonical_sha256, d.hash_mode)::dedup_hit_1 as hit, d.expires_at
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
        end loop;
    end if;

    -- Orphans: the row's record is in a gap, so it was decided and never
    -- committed, and never comes again. Whoever comes now is the first.
    if cardinality(v_hits) > 0 and exists (
        select from dedup_gap g where g.topic_id = any(array(select distinct h.topic from unnest(v_hits) h where h.topic is not null)))
    then
        for v_row in
            select x.i, (v_hits[v_hit_of[x.i]]).*
            from (select generate_subscripts(l_head, 1) i, unnest(l_head) head) x
            where x.head = x.i and v_hit_of[x.i] > 0
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
            v_hit_of[v_row.i] := 0;
            orphans := orphans || v_row.i;
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

    -- Every line that met a row, repeats an earlier line or is INVALID, judged
    -- as ledger.Judge does.
    if v_invalid or v_copies or cardinality(v_hits) > 0 then
        select array_agg(row(z.i, z.head, z.hit, z.fresh, z.adds, z.status,
                             case z.status when 'INVALID' then z.invalid_reason
                                 when 'DRIFT' then case when z.mode <> 'raw' then 'hash.' || z.mode end
                                 when 'SEEN' then case when not z.same and z.mode <> z.row_mode then 'hash.not_comparable' end
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
            select x.i, s.ctid as place, s.seen_at, s.status, s.row_first_seen_at, p_accounts[l_account[x.i]] as account, l_bytes[x.i] as bytes,
                   array_position(array(select r.line from unnest(v_repeats) r), x.i) as rep
            from (select generate_subscripts(l_h, 1) i, unnest(l_head) head, unnest(l_advance) a, unnest(l_epoch) epoch, unnest(l_offset) o) x,
                 lateral (select d.ctid, d.* from dedup_sighting d
                          where d.scope = p_scopes[l_scope[x.i]] and d.key = l_key[x.i]
                            and d.origin_offset = x.o and d.origin_epoch = x.epoch
                            and d.origin_partition = a_partition[x.a] and d.origin_topic = a_topic[x.a] limit 1) s
            where x.head is not null and (x.epoch, x.o) < (v_d_epoch[x.a], v_d_offset[x.a])
              and s.row_first_seen_at is distinct from
                  case when v_hit_of[x.head] > 0 then (v_hits[v_hit_of[x.head]]).first_seen_at else at end
        loop
            v_left := v_left || row(v_row.i, v_row.row_first_seen_at, v_row.status = 'DRIFT')::dedup_left_1;
            if v_row.rep is null or v_repeats[v_row.rep].status = 'NEW' then
                delete from dedup_sighting d where d.ctid = v_row.place and d.seen_at = v_row.seen_at;
            else
                update dedup_sighting d set status = v_repeats[v_row.rep].status, reason = v_repeats[v_row.rep].reason,
                       state = case when v_repeats[v_row.rep].status = 'DRIFT' then coalesce(d.state, 'open') end,
                       row_first_seen_at = case when v_repeats[v_row.rep].hit > 0
                                                then v_hits[v_repeats[v_row.rep].hit].first_seen_at else at end
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
                   case when (v_repeats[x.rep]).hit > 0 then (v_hits[(v_repeats[x.rep]).hit]).first_seen_at else at end as row_first_seen_at
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
            insert into dedup_sighting (seen_at, row_first_seen_at, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                        scope, key, status, state, reason, payload_sha256, source_service, flow)
            values (at, v_row.row_first_seen_at, l_offset[v_row.i], a_partition[l_advance[v_row.i]], l_epoch[v_row.i], p_gate, a_topic[l_advance[v_row.i]],
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
        insert into dedup_sighting (seen_at, row_first_seen_at, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                    scope, key, status, state, reason, payload_sha256, source_service, flow, origin_client, origin_attempt)
        select at, case when r.status <> 'INVALID' then case when r.hit > 0 then (v_hits[r.hit]).first_seen_at else at end end,
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
        select l_h[x.line] as h, p_scopes[l_scope[x.line]] as scope, l_key[x.line] as key, x.first_seen_at,
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
end
$$;
-- +goose StatementEnd
