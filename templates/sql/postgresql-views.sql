-- Adapts an existing database to public-markets: six views, and a role that is granted these and nothing else. A site
-- whose markets answer questions together makes two more, `questions` and `question_members`.
--
-- A worked example: schema `app` is an invented site (tests/support/existing_schema.sql), with other names and units.
-- Keep the names of views, columns and role. Replace the tables after each FROM and JOIN by yours. Then run:
--
--     psql -v ON_ERROR_STOP=1 -f postgresql-views.sql your_database       as owner of the tables, with CREATEROLE and
--                                                                         CREATE on the database
--     \password public_markets_reader                                     in psql, which sends only a hash
--     PUBLIC_MARKETS_SOURCE__URL='postgresql://public_markets_reader:…@host/your_database'        for the job only
--     public-markets check --set source.schema=public_api                 lists every column that does not fit
--
-- It changes nothing but the schema `public_api` and that role: your application keeps every right that it has. What the
-- role may still do as any role of your database may, postgresql-hardening.sql takes away.
--
-- Run it again after every change to it, whatever changed: it replaces the views and grants their rights anew, in one
-- transaction, so that readers see the old views or the new ones. After an error, nothing has changed. It waits five
-- seconds for a build that is under way, then gives up ("lock timeout") and leaves the build alone: run it again later.
-- PostgreSQL 13 or later. The test of this file builds from it and asserts every restriction it promises.

BEGIN;
-- Shorter than the reader's (below): the workers of a build queue behind this file, and must not be the ones to give up.
SET LOCAL lock_timeout = '5s';

CREATE SCHEMA IF NOT EXISTS public_api;
COMMENT ON SCHEMA public_api IS 'What public-markets publishes: every row of these views is public.';

-- ── the secret of ids ────────────────────────────────────────────────────────────────────────────────────────────────
--
-- An id that must not be published, or is no UUID, is hashed with this secret in the form of a UUID (version 8): the same
-- at every build, and no way back or to the next one without the secret. Views read it as their owner; the reader cannot.
-- Never write it into a view: every role can read the source of views. Keep it in your backups: another one makes every
-- such id another, so that everything published under them is withdrawn.

CREATE TABLE IF NOT EXISTS public_api.fill_id_key (key bytea NOT NULL);
INSERT INTO public_api.fill_id_key
SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
WHERE NOT EXISTS (SELECT FROM public_api.fill_id_key);

-- ── the views ────────────────────────────────────────────────────────────────────────────────────────────────────────
--
-- They run with their owner's rights (so never set security_invoker): the reader needs no rights on the tables.
-- security_barrier: the reader's conditions apply only to rows that pass the view. Without it, a condition that fails
-- on purpose, such as title::int = 0, can run first and quote a hidden row in its error message.
--
-- The views exclude hidden rows, so that the reader's password gives access to public data only. The first one defines
-- which markets are visible, and the key on which the tables are joined; the reader cannot read it.
--
-- All of them are dropped first, because CREATE OR REPLACE can neither change the type of a column nor remove one. Name
-- them in this order, in which a build reads them: otherwise the two can wait for each other. No CASCADE: if a view of
-- yours depends on these, the file fails and says which.

DROP VIEW IF EXISTS
    public_api.markets,
    public_api.market_categories,
    public_api.fx_members,
    public_api.orders,
    public_api.fills,
    public_api.probabilities,
    public_api.questions,
    public_api.question_members,
    public_api.visible_contracts,
    public_api.market_ids,
    public_api.question_ids;

-- ── their definitions: replace them by yours ─────────────────────────────────────────────────────────────────────────
--
-- bigint-views.sql has others: with numbers for ids, several contracts in a question (and the two views of questions),
-- and no FX families.

CREATE VIEW public_api.visible_contracts WITH (security_barrier) AS
SELECT
    c.contract_id,
    c.public_ref AS market_id,  -- a UUID: the public address of a market
    c.state IN ('settled', 'voided') AS is_settled
FROM app.contracts AS c
JOIN app.moderation AS m USING (contract_id)
WHERE m.verdict = 'passed' AND c.is_searchable AND c.deleted_at IS NULL AND c.state <> 'draft';

CREATE VIEW public_api.markets WITH (security_barrier) AS
SELECT
    v.market_id                                                  AS id,
    c.url_name                                                   AS slug,         -- may be NULL
    c.title                                                      AS question,
    c.rules                                                      AS description,  -- may be NULL
    CASE c.state                                                                  -- open, closed, resolved or cancelled
        WHEN 'trading' THEN 'open'
        WHEN 'halted'  THEN 'open'                                                -- open, with a trading_pause_reason
        WHEN 'expired' THEN 'closed'
        WHEN 'settled' THEN 'resolved'
        WHEN 'voided'  THEN 'cancelled'
    END                                                          AS status,       -- unknown: NULL, which is quarantined
    'approved'::text                                             AS approval,     -- hidden ones are excluded
    true                                                         AS is_listed,
    c.chance_bp * 0.0001                                         AS prob,         -- basis points to 0…1, exact (numeric)
    c.turnover_cents * 0.01                                      AS volume,
    c.reserve_yes_cents * 0.01                                   AS pool_yes,
    c.reserve_no_cents * 0.01                                    AS pool_no,
    least(c.trading_ends_at, '9999-12-31 23:59:59Z')             AS close_time,   -- 'infinity' cannot be published
    -- An outcome that was entered but not announced is a secret. So is when that happened: it also counts as no activity.
    CASE WHEN v.is_settled THEN CASE c.outcome
        WHEN 'yes' THEN 'YES' WHEN 'no' THEN 'NO' WHEN 'refund' THEN 'CANCEL'
    END END                                                      AS resolution,
    c.opened_at                                                  AS created_at,
    CASE WHEN v.is_settled THEN c.settled_at END                 AS resolved_at,
    coalesce(CASE WHEN v.is_settled THEN c.settled_at END, c.last_trade_at, c.opened_at) AS last_activity_at,
    -- One index scan per market. If that is too slow, join a materialized view, or a count kept by a trigger.
    (SELECT count(DISTINCT b.user_id) FROM app.bets AS b WHERE b.contract_id = c.contract_id AND b.undone_at IS NULL)
                                                                 AS trader_count,
    -- With a blank reason, a market accepts bets. Unicode has blanks that btrim does not know, hence a text before it.
    CASE WHEN c.state = 'halted'
        THEN concat_ws(': ', 'Trading is halted', nullif(btrim(c.halt_notice, E' \t\r\n'), ''))
    END                                                          AS trading_pause_reason,
    nullif(btrim(c.origin), '')                                  AS creation_source,
    nullif(btrim(c.sponsored_by), '')                            AS sponsor
    -- Optional: the key in the addresses of your site, unique, for market_url with {key}.
    -- , c.url_name AS key
    -- Optional, after detail-versions.sql: with it, builds read only what changed. Nobody has traded: no version yet.
    -- , coalesce((SELECT d.version::text FROM public_api.detail_versions AS d WHERE d.contract_id = c.contract_id),
    --       'untraded') AS detail_version
    -- Optional, with the one before: a build then reads this row, too, only if it changed.
    -- , (SELECT m.version FROM public_api.market_versions AS m WHERE m.contract_id = c.contract_id) AS market_version
FROM public_api.visible_contracts AS v
JOIN app.contracts AS c USING (contract_id);

CREATE VIEW public_api.market_categories WITH (security_barrier) AS
SELECT v.market_id, t.label AS category, ct.rank::integer AS position  -- the lowest position is the primary category
FROM public_api.visible_contracts AS v
JOIN app.contract_topics AS ct USING (contract_id)
JOIN app.topics AS t USING (topic_id);

CREATE VIEW public_api.fx_members WITH (security_barrier) AS
SELECT
    v.market_id,
    s.name              AS title,
    s.pair::text        AS instrument,
    s.rate_source       AS source,
    lower(l.week)       AS week_start,
    upper(l.week) - 1   AS week_end,  -- the upper bound of a range is exclusive
    l.strike            AS threshold_value,
    CASE l.at_or_above WHEN true THEN 'gte' WHEN false THEN 'lte' END AS direction,
    true                AS is_public  -- see WHERE
FROM public_api.visible_contracts AS v
JOIN app.currency_legs AS l USING (contract_id)
JOIN app.currency_series AS s USING (series_id)
WHERE s.is_published;

CREATE VIEW public_api.orders WITH (security_barrier) AS
SELECT
    v.market_id,
    CASE o.direction WHEN 'buy' THEN 'bid' WHEN 'sell' THEN 'ask' END AS side,
    o.price_cents * 0.01     AS price,
    o.remaining_cents * 0.01 AS amount,
    true                     AS is_public  -- see WHERE
FROM public_api.visible_contracts AS v
JOIN app.order_book_entries AS o USING (contract_id)
-- Orders that expire: a clock here belongs in detail_version, too (docs/reading-only-what-changed.md, "Views that depend on time").
WHERE NOT o.is_hidden AND o.cancelled_at IS NULL AND o.remaining_cents > 0;

-- A fill is the public side of a bet, and the ids of bets must not be published: another bet's matched_bet_id tells who
-- traded with whom. So its id is a keyed hash.
CREATE VIEW public_api.fills WITH (security_barrier) AS
SELECT
    overlay(overlay(
        left(encode(sha256((SELECT key FROM public_api.fill_id_key) || uuid_send(b.bet_id)), 'hex'), 32)
        PLACING '8' FROM 13) PLACING 'a' FROM 17
    )::uuid              AS id,
    v.market_id,
    b.stake_cents * 0.01 AS amount,
    b.shares,
    b.price_cents * 0.01 AS price,  -- may be NULL
    b.placed_at          AS created_at
FROM public_api.visible_contracts AS v
JOIN app.bets AS b USING (contract_id)
WHERE b.undone_at IS NULL;

CREATE VIEW public_api.probabilities WITH (security_barrier) AS
SELECT v.market_id, h.seen_at AS recorded_at, h.chance_bp * 0.0001 AS prob
FROM public_api.visible_contracts AS v
JOIN app.price_history AS h USING (contract_id);

-- ── the role ─────────────────────────────────────────────────────────────────────────────────────────────────────────

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'public_markets_reader') THEN
        CREATE ROLE public_markets_reader;
    END IF;
END
$$;

-- A build opens up to nine connections: its own, and one for each process that reads markets (one per processor and per
-- 50 markets, at most eight). The tenth is for `check`. CONNECTION LIMIT is the bound: with a lower one, processes that
-- are refused leave their work to the others, so a build is slower, with the same result. One is enough. A build on a
-- cluster (docs/cluster.md) opens its own, and one for each thread of each worker.
ALTER ROLE public_markets_reader LOGIN NOINHERIT NOCREATEDB NOCREATEROLE CONNECTION LIMIT 10;

-- Defaults, not protection: the role can change them for a session. The privileges below protect.
-- A build is one transaction, and VACUUM must keep the rows it may still see. On a busy primary, read from a standby
-- instead (with max_standby_streaming_delay longer than a build).
ALTER ROLE public_markets_reader SET default_transaction_read_only = on;
ALTER ROLE public_markets_reader SET search_path = public_api;
ALTER ROLE public_markets_reader SET statement_timeout = '10min';  -- per fetch; the first one sorts the history
ALTER ROLE public_markets_reader SET idle_in_transaction_session_timeout = '5min';
ALTER ROLE public_markets_reader SET lock_timeout = '10s';
-- To log its queries: ALTER ROLE public_markets_reader SET log_min_duration_statement = '1s';  (as a superuser)

-- ── its privileges: connect, and read the views ──────────────────────────────────────────────────────────────────────

-- Dropping the views dropped their rights: if other roles read them, grant that here.
REVOKE ALL ON SCHEMA public_api FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public_api FROM PUBLIC, public_markets_reader;
GRANT USAGE ON SCHEMA public_api TO public_markets_reader;
GRANT SELECT ON
    public_api.markets,
    public_api.market_categories,
    public_api.fx_members,
    public_api.orders,
    public_api.fills,
    public_api.probabilities
TO public_markets_reader;
DO $$
BEGIN
    -- Optional, both or neither: those of a site that has questions.
    IF to_regclass('public_api.questions') IS NOT NULL THEN
        GRANT SELECT ON public_api.questions, public_api.question_members TO public_markets_reader;
    END IF;
    IF NOT has_database_privilege('public_markets_reader', current_database(), 'CONNECT') THEN
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO public_markets_reader', current_database());
    END IF;
END
$$;

COMMIT;

-- What remains, and how to restrict it:
-- · Every role has the rights of PUBLIC: to make temporary tables, to call the functions of schema `public`, to create
--   tables there before PostgreSQL 15, and whatever your site granted. postgresql-hardening.sql takes them from the role.
-- · Every role can read the system catalogs: names of schemas, tables, columns and roles, the source of views and
--   functions; no contents. Keep secrets out of names and source.
-- · The role can connect to other databases of the cluster that allow PUBLIC. In pg_hba.conf, above the general lines:
--       hostssl  your_database  public_markets_reader  <the job's address>/32  scram-sha-256
--       host     all            public_markets_reader  all                     reject
-- · Before PostgreSQL 16, any role can create large objects, even with read-only rights. As a superuser:
--       REVOKE EXECUTE ON FUNCTION lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) FROM PUBLIC;
