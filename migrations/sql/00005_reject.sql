-- +goose Up
-- An output topic refused a record that was registered: it becomes INVALID, its
-- own row is closed, and its account moves. Told by origin, so that a second
-- call finds nothing left to do.
--
-- p_scope, p_key and p_h are null for a record without a key; p_mode and
-- p_canonical are its hashes as registered.
-- +goose StatementBegin
create function dedup_reject_1(
    p_topic uuid, p_partition integer, p_claim uuid, p_epoch integer, p_offset bigint,
    p_account text, p_scope text, p_key text, p_h bigint, p_bytes bigint,
    p_payload bytea, p_canonical bytea, p_mode text, p_source text, p_reason text
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
        raise exception 'dedup_reject_1 works under read committed only, not %', current_setting('transaction_isolation')
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
        v_was := 'NEW';
        v_at := v_row.counted_at; -- the hour where it was counted
    end if;

    if v_was is null then
        select d.ctid as place, d.seen_at, d.status into v_seen from dedup_sighting d
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
        else
            -- A repeat beyond those that are kept: only counted, with the row's
            -- last repeats.
            v_at := v_now;
            select case when d.payload_sha256 = p_payload or d.hash_mode <> p_mode then 'SEEN'
                        when p_mode = 'raw' or d.canonical_sha256 is distinct from p_canonical then 'DRIFT'
                        else 'SEEN' end as status, d.last_seen_at
            into v_seen from dedup_ledger d
            where d.h = p_h and d.key = p_key and d.scope = p_scope and d.closed_at is null and d.expires_at > v_now
            order by d.first_seen_at desc limit 1;
            if found then
                v_was := v_seen.status;
                v_at := v_seen.last_seen_at;
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
