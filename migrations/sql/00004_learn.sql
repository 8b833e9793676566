-- +goose Up
-- Learning (ARCHITECTURE §4): PostgreSQL lost commits, and what Kafka has committed
-- is read back from the outputs. One step takes outputs in order of their
-- origins and moves W behind them. Given twice it changes nothing: the second
-- time D and W are there already.

-- Lines are parallel: the output's verdict, its origin in this partition, and
-- what its headers tell. l_first is the row's first acceptance; it and
-- l_expires are null for INVALID. p_scopes are the keyed lines' ledger scopes,
-- distinct and sorted by byte.
-- +goose StatementBegin
create function dedup_learn_1(
    p_topic uuid, p_partition integer, p_claim uuid, p_seq bigint,
    p_to_epoch integer, p_to_offset bigint, p_outputs text, p_keep integer, p_scopes text[],
    l_status text[], l_epoch integer[], l_offset bigint[], l_account text[],
    l_scope text[], l_h bigint[], l_key text[], l_reason text[], l_bytes bigint[],
    l_payload bytea[], l_source text[], l_first timestamptz[], l_expires timestamptz[],
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
    v_epoch    integer;  -- behind the last output so far, for gaps
    v_offset   bigint;
    v_account  text;
    v_place    tid;
    v_first    timestamptz;
    v_kept     bigint;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'dedup_learn_1 works under read committed only, not %', current_setting('transaction_isolation')
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
    if not found or v_position.claim <> p_claim or v_position.timeline <> dedup_timeline_1() then
        raise exception 'claim or timeline is not what the session left' using errcode = 'DL002';
    end if;
    v_epoch := v_position.w_epoch;
    v_offset := v_position.w_offset;

    update dedup_scope s set max_window = x.win
    from (select y.scope, max(ceil(extract(epoch from y.expires - y.first)))::integer win
          from (select unnest(l_scope) scope, unnest(l_first) first, unnest(l_expires) expires) y where y.scope is not null group by 1) x
    where s.scope = x.scope and s.max_window < x.win;
    if to_regclass('public.dedup_sighting' || to_char(v_now at time zone 'UTC', '_YYYY_MM')) is null then
        perform dedup_months_1(3);
    end if;

    for i in 1 .. coalesce(cardinality(l_status), 0) loop
        -- Exact ends only: behind the output before, up to this one.
        if l_offset[i] > v_offset and (l_epoch[i], l_offset[i]) >= (v_epoch, v_offset) then
            perform dedup_hole_1(p_topic, p_partition, v_epoch, v_offset, l_epoch[i], l_offset[i], v_now);
        end if;
        if (l_epoch[i], l_offset[i]) >= (v_epoch, v_offset) then
            v_epoch := l_epoch[i];
            v_offset := l_offset[i] + 1;
        end if;
        v_account := coalesce(l_account[i], '?:?');

        if l_status[i] = 'NEW' then
            continue when exists (
                select from dedup_ledger d
                where d.h = l_h[i] and d.key = l_key[i] and d.scope = l_scope[i]
                  and d.origin_offset = l_offset[i] and d.origin_epoch = l_epoch[i]
                  and d.origin_partition = p_partition and d.origin_topic = p_topic);
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
        if l_status[i] in ('SEEN', 'DRIFT') then
            select d.ctid, d.first_seen_at, d.retry_count + 1 into v_place, v_first, v_kept from dedup_ledger d
            where d.h = l_h[i] and d.key = l_key[i] and d.scope = l_scope[i]
              and d.first_seen_at = l_first[i]
            order by d.closed_at is null desc limit 1;
            if found then
                update dedup_ledger d set retry_count = d.retry_count + 1, last_seen_at = v_now,
                       drift_count = d.drift_count + case when l_status[i] = 'DRIFT' then 1 else 0 end
                where d.ctid = v_place and d.first_seen_at = v_first;
            else
                v_kept := 0;
            end if;
        end if;
        if v_kept <= p_keep then
            insert into dedup_sighting (seen_at, row_first_seen_at, origin_offset, origin_partition, origin_epoch, origin_gate, origin_topic,
                                        scope, key, status, state, reason, payload_sha256, source_service, flow)
            values (v_now, case when v_kept > 0 then v_first else l_first[i] end,
                    l_offset[i], p_partition, l_epoch[i], 1, p_topic,
                    coalesce(l_scope[i], v_account), l_key[i], l_status[i],
                    case when l_status[i] <> 'SEEN' then 'open' end, l_reason[i], l_payload[i], l_source[i], split_part(v_account, ':', 2));
        end if;
    end loop;
    if p_to_offset > v_offset and (p_to_epoch, p_to_offset) > (v_epoch, v_offset) then
        perform dedup_hole_1(p_topic, p_partition, v_epoch, v_offset, p_to_epoch, p_to_offset, v_now);
    end if;

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

-- A range in which learning found no output.
-- plan: locks dedup_gap ROW EXCLUSIVE
-- +goose StatementBegin
create function dedup_hole_1(p_topic uuid, p_partition integer, p_from_epoch integer, p_from bigint, p_to_epoch integer, p_to bigint, p_at timestamptz) returns void
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    insert into dedup_gap (found_at, topic_id, partition, from_epoch, from_offset, to_epoch, to_offset, kind)
    values (p_at, p_topic, p_partition, p_from_epoch, p_from, p_to_epoch, p_to, 'no_output')
    on conflict do nothing
$$;
-- +goose StatementEnd
