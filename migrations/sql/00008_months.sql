-- +goose Up
-- The makers of months again, under their names: they take and answer the same.
--
-- They asked to_regclass whether a month is there. That goes by the session's
-- catalog cache, which remembers what is not there, and the wait for the makers'
-- lock does not renew it:
--
--	A and B find that a month is missing
--	A takes the lock, makes the month, commits
--	B gets the lock, is told by its cache that the month is missing, and fails
--	with "already exists"
--
-- A query looks at the catalog itself.

-- plan: nothing
-- +goose StatementBegin
create or replace function dedup_month_1(p_at timestamptz) returns void
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
        continue when exists (select from pg_class where relname = v_month and relnamespace = 'public'::regnamespace);
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

-- plan: nothing
-- +goose StatementBegin
create or replace function dedup_months_1(p_ahead integer) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_month timestamp := date_trunc('month', v_now at time zone 'UTC');
    v_there boolean;
begin
    for i in 0 .. least(greatest(p_ahead, 0), 24) loop
        select count(*) = 2 into v_there from pg_class
        where relnamespace = 'public'::regnamespace
          and relname in ('dedup_ledger' || to_char(v_month + make_interval(months => i), '_YYYY_MM'),
                          'dedup_sighting' || to_char(v_month + make_interval(months => i), '_YYYY_MM'));
        if not v_there then
            perform public.dedup_month_1((v_month + make_interval(months => i)) at time zone 'UTC');
        end if;
    end loop;
    loop
        select count(*) = 2 into v_there from pg_class
        where relnamespace = 'public'::regnamespace
          and relname in ('dedup_ledger' || to_char(v_month, '_YYYY_MM'), 'dedup_sighting' || to_char(v_month, '_YYYY_MM'));
        exit when not v_there;
        v_month := v_month + interval '1 month';
    end loop;
    return floor(extract(epoch from (v_month at time zone 'UTC') - v_now) / 86400);
end
$$;
-- +goose StatementEnd
