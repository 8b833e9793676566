-- +goose Up
-- The oldest schema whose program runs on this one, too. A rolling upgrade
-- migrates first, and programs of the release before are started again under the
-- new schema until the last is replaced; only this database can tell them that
-- they may. A release that adds migrations sets it to the last migration of the
-- release before.
-- plan: locks dedup_meta ACCESS EXCLUSIVE
alter table dedup_meta add column runs_from bigint not null default 6;
