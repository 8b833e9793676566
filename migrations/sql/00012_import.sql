-- +goose Up
-- What other systems have accepted before, entered by `dedup import`.
--
-- dedup_register_3 is not it: that one dates its rows by the clock. Here a row
-- keeps the time that is told of it, and its window counts from there.

-- Lines are parallel. l_scope is the ledger scope, l_flow the flow, l_window in
-- seconds, l_first the first acceptance. p_client names where they come from.
-- p_dry: the same answer, and nothing is written.
--
-- Answers a state per line: 1 entered; 2 known, by a row with this hash; 3 known,
-- by a row with another one; 4 its window is over; 5 it lies in the future; 6 the
-- month of its row was taken away. Only 1 has written anything. A key of several
-- lines is entered by the first of them.
--
-- Known is a key with a live row, of any origin, and a key with a row that began
-- at this time or later, whatever became of it: it was accepted, closed or
-- reopened here since, and what an older system remembers says nothing about that.
-- So lines that come again change nothing, and no row overlaps one that is younger.
--
-- The gate of a scope is not touched: who feeds it is told by who comes.
-- +goose StatementBegin
create function dedup_import_1(
    p_dry boolean, p_client text,
    l_scope text[], l_flow text[], l_h bigint[], l_key text[], l_window integer[],
    l_first timestamptz[], l_payload bytea[],
    out states smallint[]
)
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
as $$
declare
    v_before timestamptz := clock_timestamp();
    v_at     timestamptz;
    v_scopes text[];
    v_locked integer;
    v_window integer;
    v_from   timestamptz;
    v_month  record;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'dedup_import_1 works under read committed only, not %', current_setting('transaction_isolation')
            using errcode = 'DL001';
    end if;

    -- The scopes of lines that may make a row; one whose lines are all over gets none.
    v_scopes := array(
        select distinct x.scope collate "C"
        from (select unnest(l_scope) scope, unnest(l_first) first, unnest(l_window) win) x
        where x.first <= v_before and x.first + make_interval(secs => x.win) > v_before
        order by 1);
    if not p_dry and cardinality(v_scopes) > 0 then
        -- Upsert before the lock, never after, and in sorted order, as the registration does.
        insert into dedup_scope (scope) select s from unnest(v_scopes) s order by s collate "C" on conflict do nothing;
        select count(*) into v_locked
        from (select s.scope from dedup_scope s where s.scope = any(v_scopes) order by s.scope
              for no key update /* the scope lock */) x;
        if v_locked < cardinality(v_scopes) then
            raise exception 'a scope vanished before it was locked' using errcode = 'serialization_failure';
        end if;
    end if;

    -- A line that was in the future before the locks has perhaps no locked scope,
    -- and stays there. Whose window is over is told behind them.
    v_at := clock_timestamp();
    states := array(
        select case when x.first > v_before then 5 when x.first + make_interval(secs => x.win) <= v_at then 4 else 0 end
        from (select generate_subscripts(l_first, 1) i, unnest(l_first) first, unnest(l_window) win) x order by x.i);

    select greatest((select max(s.max_window) from dedup_scope s where s.scope = any(v_scopes)),
                    (select max(y.win) from (select unnest(l_window) win, unnest(states) state) y where y.state = 0))
    into v_window;

    if v_window is not null then
        -- A window that runs began behind v_from, so this finds both: rows that
        -- live, and rows that began at the line's time or later.
        v_from := v_at - make_interval(secs => v_window) - interval '1 hour';
        states := array(
            select case when z.state > 0 then z.state
                        when z.known is not null then case when z.known = z.payload then 2 else 3 end
                        when z.ordinal = 1 then 1
                        when z.head = z.payload then 2 else 3 end
            from (select x.*, l.payload_sha256 as known,
                         row_number() over same as ordinal, first_value(x.payload) over same as head
                  from (select generate_subscripts(l_h, 1) i, unnest(l_scope) scope, unnest(l_h) h, unnest(l_key) key,
                               unnest(l_first) first, unnest(l_payload) payload, unnest(states) state) x
                  left join lateral (
                      select d.payload_sha256 from dedup_ledger d
                      where x.state = 0 and d.h = x.h and d.first_seen_at >= v_from and d.key = x.key and d.scope = x.scope
                        and (d.closed_at is null and d.expires_at > v_at or d.first_seen_at >= x.first)
                      order by d.closed_at is null and d.expires_at > v_at desc, d.first_seen_at desc limit 1) l on true
                  window same as (partition by x.state, l.payload_sha256 is null, x.scope, x.key order by x.i)) z
            order by z.i);
    end if;

    -- Months of rows that began long ago may be missing. One that was taken away
    -- is not made again: its windows were said to be over.
    for v_month in
        select x.month, m.oid is not null as there,
               exists (select from pg_inherits i where i.inhrelid = m.oid and i.inhparent = 'public.dedup_ledger'::regclass
                       and not i.inhdetachpending) as attached
        from (select distinct date_trunc('month', y.first at time zone 'UTC') as month
              from (select unnest(l_first) first, unnest(states) state) y where y.state = 1) x
        left join pg_class m on m.relnamespace = 'public'::regnamespace and m.relname = 'dedup_ledger' || to_char(x.month, '_YYYY_MM')
        order by 1
    loop
        if v_month.there and not v_month.attached then
            states := array(
                select case when y.state = 1 and date_trunc('month', y.first at time zone 'UTC') = v_month.month then 6 else y.state end
                from (select generate_subscripts(l_first, 1) i, unnest(l_first) first, unnest(states) state) y order by y.i);
        elsif not v_month.there and not p_dry then
            perform dedup_month_1(v_month.month at time zone 'UTC');
        end if;
    end loop;

    if not p_dry and 1 = any(states) then
        -- Before a longer row goes in, as the registration does.
        update dedup_scope s set max_window = x.win
        from (select y.scope, max(y.win) win
              from (select unnest(l_scope) scope, unnest(l_window) win, unnest(states) state) y where y.state = 1 group by 1) x
        where s.scope = x.scope and s.max_window < x.win;
        insert into dedup_ledger (h, first_seen_at, last_seen_at, expires_at, origin_gate, scope, key, payload_sha256, hash_mode,
                                  flow, origin_client)
        select x.h, x.first, x.first, x.first + make_interval(secs => x.win), 3, x.scope, x.key, x.payload, 'raw', x.flow, p_client
        from (select unnest(l_h) h, unnest(l_first) first, unnest(l_window) win, unnest(l_scope) scope, unnest(l_key) key,
                     unnest(l_payload) payload, unnest(l_flow) flow, unnest(states) state) x
        where x.state = 1;
    end if;
end
$$;
-- +goose StatementEnd
