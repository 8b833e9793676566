#!/bin/sh
# Makes the ledger's roles and database, at the first start of PostgreSQL. The
# official image runs or sources it, as the superuser. Passwords come from the
# environment and are quoted by psql.
set -eu

psql -v ON_ERROR_STOP=1 --no-psqlrc --username "${POSTGRES_USER:-postgres}" --dbname postgres \
	-v owner="$DEDUP_OWNER_PASSWORD" -v app="$DEDUP_APP_PASSWORD" -v read="$DEDUP_READ_PASSWORD" <<'SQL'
create role dedup_owner login password :'owner';
create role dedup_app login password :'app';
create role dedup_read login password :'read';
create database dedup owner dedup_owner;
SQL
