-- +goose Up
-- The rules that make keys, beside their fingerprint: a process with others is not
-- ready, and says in what they differ. null until the first process sets them, or
-- `dedup config activate`.
-- plan: locks dedup_meta ACCESS EXCLUSIVE
alter table dedup_meta add column rules jsonb, add column rules_at timestamptz;

-- plan: nothing
comment on column dedup_meta.rules is 'the active rules that make keys, as their fingerprint stands for them';
