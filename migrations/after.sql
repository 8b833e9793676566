-- Rights, for the roles that exist, and the months ahead. Harmless when repeated.
-- plan: locks dedup_ledger, dedup_sighting SHARE UPDATE EXCLUSIVE
do $$
declare
    v_function text;
begin
    -- Two at once would be "tuple concurrently updated".
    perform pg_advisory_xact_lock(hashtext('dedup_grants'));
    for v_function in
        select p.oid::regprocedure::text from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname ~ '^dedup_[a-z_]+_[0-9]+$'
          and pg_has_role(current_user, p.proowner, 'usage')
    loop
        execute format('revoke all on function %s from public', v_function);
        if to_regrole('dedup_app') is not null then
            execute format('grant execute on function %s to dedup_app', v_function);
        end if;
    end loop;
    if to_regrole('dedup_app') is not null then
        grant usage on schema public to dedup_app;
        grant select on dedup_migration, dedup_ledger_v to dedup_app;
        grant select, insert, update on dedup_ledger, dedup_hour, dedup_scope, dedup_position to dedup_app;
        grant select, insert on dedup_gap to dedup_app;
        grant select, insert, update, delete on dedup_sighting to dedup_app;
        grant select, insert on dedup_action to dedup_app;
        -- Everything but the ledger's id.
        grant select, update (fingerprint, rules, rules_at, witness_kafka, witness_api, witness_last_at, witness_last) on dedup_meta to dedup_app;
    end if;
    if to_regrole('dedup_read') is not null then
        grant usage on schema public to dedup_read;
        grant select on dedup_migration, dedup_ledger, dedup_ledger_v, dedup_sighting, dedup_hour, dedup_scope,
                        dedup_position, dedup_gap, dedup_action, dedup_meta to dedup_read;
    end if;
    perform dedup_months_1(3);
end
$$;
