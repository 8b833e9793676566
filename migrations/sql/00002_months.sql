-- +goose Up
-- Month partitions, made ahead by the owner's right although the application
-- asks for them. All months are UTC, whatever the session's TimeZone.

-- Makes the month that holds p_at, of both tables. CREATE plus ATTACH, not
-- PARTITION OF: that one takes ACCESS EXCLUSIVE on the parent and so waits
-- behind, and then stops, every registration; ATTACH lets them pass.
-- +goose StatementBegin
create function dedup_month_1(p_at timestamptz) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_from  timestamp := date_trunc('month', p_at at time zone 'UTC');
    v_table text;
    v_month text;
begin
    -- Two makers: the second waits here, then finds the month.
    perform pg_advisory_xact_lock(hashtext('dedup_months'));
    foreach v_table in array array['dedup_ledger', 'dedup_sighting'] loop
        v_month := v_table || to_char(v_from, '_YYYY_MM');
        continue when to_regclass(format('public.%I', v_month)) is not null;
        execute format('create table public.%I (like public.%I including defaults including constraints including storage)',
            v_month, v_table);
        execute format('alter table public.%I attach partition public.%I for values from (%L) to (%L)',
            v_table, v_month,
            to_char(v_from, 'YYYY-MM-DD') || ' 00:00:00+00',
            to_char(v_from + interval '1 month', 'YYYY-MM-DD') || ' 00:00:00+00');
    end loop;
end
$$;
-- +goose StatementEnd

-- Makes the present month and p_ahead more, and says for how many whole days
-- from now months exist without a hole.
-- +goose StatementBegin
create function dedup_months_1(p_ahead integer) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_month timestamp := date_trunc('month', v_now at time zone 'UTC');
begin
    for i in 0 .. least(greatest(p_ahead, 0), 24) loop
        if to_regclass('public.dedup_ledger' || to_char(v_month + make_interval(months => i), '_YYYY_MM')) is null
           or to_regclass('public.dedup_sighting' || to_char(v_month + make_interval(months => i), '_YYYY_MM')) is null then
            perform public.dedup_month_1((v_month + make_interval(months => i)) at time zone 'UTC');
        end if;
    end loop;
    while to_regclass('public.dedup_ledger' || to_char(v_month, '_YYYY_MM')) is not null
          and to_regclass('public.dedup_sighting' || to_char(v_month, '_YYYY_MM')) is not null loop
        v_month := v_month + interval '1 month';
    end loop;
    return floor(extract(epoch from (v_month at time zone 'UTC') - v_now) / 86400);
end
$$;
-- +goose StatementEnd

comment on function dedup_months_1(integer) is 'makes this month and so many more; answers the days of head-room';

-- PostgreSQL's timeline: a failover or a restore from the archive starts a new
-- one, and may have lost the last commits.
-- +goose StatementBegin
create function dedup_timeline_1() returns integer
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    select ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::integer
$$;
-- +goose StatementEnd

-- plan: locks dedup_ledger, dedup_sighting SHARE UPDATE EXCLUSIVE
select dedup_months_1(3);
