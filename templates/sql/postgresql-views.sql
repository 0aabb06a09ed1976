-- Fits an existing database to public-markets by six views, and makes the role that may read these and nothing else.
--
-- A worked example: schema `app` is an invented site (tests/existing_schema.sql), with names and units unlike ours.
-- Keep the names, the column names and the role of this file, and put your own tables after each FROM. Then
--
--     psql -v ON_ERROR_STOP=1 -f postgresql-views.sql your_database       as the tables' and the database's owner, who can make roles
--     \password public_markets_reader                                     in psql: it sends a hash, and logs no password
--     PUBLIC_MARKETS_SOURCE__URL='postgresql://public_markets_reader:…@host/your_database'        for the job, only there
--     public-markets check --set source.schema=public_api                 names every column that does not fit
--
-- The file can be run again at any time: it replaces what it made. It is one transaction; a mistake leaves no trace.
-- PostgreSQL 12 or later. The test of this file builds from it and asserts every refusal it promises.

BEGIN;

CREATE SCHEMA IF NOT EXISTS public_api;
COMMENT ON SCHEMA public_api IS 'What public-markets may publish. Whatever a view here shows, the world can see.';

-- ── the views ────────────────────────────────────────────────────────────────────────────────────────────────────────
--
-- They run with the rights of their owner (so never set security_invoker): the reader needs none on the tables beneath.
-- security_barrier: the reader's conditions see only rows that a view lets through. Without it, a condition that fails
-- on purpose, such as title::int = 0, can run first and quote a hidden row in its error message.
--
-- Hidden rows are refused here already, once and for all, so that the reader's password opens nothing that is not public.
-- This first view is that rule, and the key that the tables beneath are joined by; the reader may not read it.

CREATE OR REPLACE VIEW public_api.visible_contracts WITH (security_barrier) AS
SELECT c.contract_id, c.public_ref AS market_id  -- public_ref is a UUID: the public address of a market
FROM app.contracts AS c
JOIN app.moderation AS m USING (contract_id)
WHERE m.verdict = 'passed' AND c.is_searchable AND c.deleted_at IS NULL AND c.state <> 'draft';

CREATE OR REPLACE VIEW public_api.markets WITH (security_barrier) AS
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
    END                                                          AS status,       -- a new state: NULL, which is reported
    'approved'::text                                             AS approval,     -- hidden ones are not here
    true                                                         AS is_listed,
    c.chance_bp * 0.0001                                         AS prob,         -- basis points to 0…1; exact, numeric
    c.turnover_cents * 0.01                                      AS volume,
    c.reserve_yes_cents * 0.01                                   AS pool_yes,
    c.reserve_no_cents * 0.01                                    AS pool_no,
    least(c.trading_ends_at, '9999-12-31 23:59:59Z')             AS close_time,   -- 'infinity' cannot be published
    CASE c.outcome WHEN 'yes' THEN 'YES' WHEN 'no' THEN 'NO' WHEN 'refund' THEN 'CANCEL' END AS resolution,
    c.opened_at                                                  AS created_at,
    c.settled_at                                                 AS resolved_at,
    coalesce(c.settled_at, c.last_trade_at, c.opened_at)         AS last_activity_at,
    -- One index scan per market. Where that is too slow, count in a trigger or a materialized view, and join it.
    (SELECT count(DISTINCT b.user_id) FROM app.bets AS b WHERE b.contract_id = c.contract_id AND b.undone_at IS NULL)
                                                                 AS trader_count,
    CASE WHEN c.state = 'halted' THEN coalesce(c.halt_notice, 'Trading is halted') END AS trading_pause_reason,
    c.origin                                                     AS creation_source,
    c.sponsored_by                                               AS sponsor
FROM public_api.visible_contracts AS v
JOIN app.contracts AS c USING (contract_id);

CREATE OR REPLACE VIEW public_api.market_categories WITH (security_barrier) AS
SELECT v.market_id, t.label AS category, ct.rank::integer AS position  -- the lowest position is the primary category
FROM public_api.visible_contracts AS v
JOIN app.contract_topics AS ct USING (contract_id)
JOIN app.topics AS t USING (topic_id);

CREATE OR REPLACE VIEW public_api.fx_members WITH (security_barrier) AS
SELECT
    v.market_id,
    s.name              AS title,
    s.pair::text        AS instrument,
    s.rate_source       AS source,
    lower(l.week)       AS week_start,
    upper(l.week) - 1   AS week_end,  -- a range ends before its upper bound, a week with its last day
    l.strike            AS threshold_value,
    CASE WHEN l.at_or_above THEN 'gte' ELSE 'lte' END AS direction,
    true                AS is_public  -- see WHERE
FROM public_api.visible_contracts AS v
JOIN app.currency_legs AS l USING (contract_id)
JOIN app.currency_series AS s USING (series_id)
WHERE s.is_published;

CREATE OR REPLACE VIEW public_api.orders WITH (security_barrier) AS
SELECT
    v.market_id,
    CASE o.direction WHEN 'buy' THEN 'bid' WHEN 'sell' THEN 'ask' END AS side,
    o.price_cents * 0.01     AS price,
    o.remaining_cents * 0.01 AS amount,
    true                     AS is_public  -- see WHERE
FROM public_api.visible_contracts AS v
JOIN app.order_book_entries AS o USING (contract_id)
-- No now() in here: a view that looks at the clock makes two builds of the same data differ.
WHERE NOT o.is_hidden AND o.cancelled_at IS NULL AND o.remaining_cents > 0;

CREATE OR REPLACE VIEW public_api.fills WITH (security_barrier) AS
SELECT
    b.bet_id             AS id,
    v.market_id,
    b.stake_cents * 0.01 AS amount,
    b.shares,
    b.price_cents * 0.01 AS price,  -- may be NULL
    b.placed_at          AS created_at
FROM public_api.visible_contracts AS v
JOIN app.bets AS b USING (contract_id)
WHERE b.undone_at IS NULL;

CREATE OR REPLACE VIEW public_api.probabilities WITH (security_barrier) AS
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

-- A build uses one connection; the others are for `check`, and for a build that lost its network.
ALTER ROLE public_markets_reader LOGIN NOINHERIT NOCREATEDB NOCREATEROLE CONNECTION LIMIT 4;

-- Habits, not walls: whoever has the password can change them for a session. The walls are the rights further down.
-- A build is one transaction from its first row to its last, and VACUUM keeps what that may still see. On a busy primary,
-- point the job at a standby (max_standby_streaming_delay there longer than a build).
ALTER ROLE public_markets_reader SET default_transaction_read_only = on;
ALTER ROLE public_markets_reader SET search_path = public_api;
ALTER ROLE public_markets_reader SET statement_timeout = '10min';  -- of one fetch; the first one sorts the history
ALTER ROLE public_markets_reader SET idle_in_transaction_session_timeout = '5min';
ALTER ROLE public_markets_reader SET lock_timeout = '10s';
-- To see what it asks: ALTER ROLE public_markets_reader SET log_min_duration_statement = '1s';  (as a superuser)

-- ── its rights: connect, and read six views ──────────────────────────────────────────────────────────────────────────

REVOKE ALL ON SCHEMA public_api FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA public_api FROM PUBLIC, public_markets_reader;
REVOKE ALL ON SCHEMA app, public FROM public_markets_reader;
REVOKE ALL ON ALL TABLES IN SCHEMA app, public FROM public_markets_reader;
GRANT USAGE ON SCHEMA public_api TO public_markets_reader;
GRANT SELECT ON
    public_api.markets,
    public_api.market_categories,
    public_api.fx_members,
    public_api.orders,
    public_api.fills,
    public_api.probabilities
TO public_markets_reader;

-- Every role has what PUBLIC has, and no REVOKE from one role changes that. So two rights are taken from PUBLIC itself.
-- LOOK FIRST who lives on them; give them back to your application by name, as in the commented lines.
DO $$
BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO public_markets_reader', current_database());
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    -- EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO your_application', current_database());
END
$$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON SCHEMA app FROM PUBLIC;
-- GRANT USAGE ON SCHEMA public TO your_application;

COMMIT;

-- What is left, and where to close it:
-- · The catalogues stay readable to every role: names of schemas, tables, columns and roles, the text of views and
--   functions; no contents. Nothing secret belongs into a name or a function's text.
-- · It may connect to other databases of the cluster that let PUBLIC connect. In pg_hba.conf, above the general lines:
--       hostssl  your_database  public_markets_reader  <the job's address>/32  scram-sha-256
--       host     all            public_markets_reader  all                     reject
-- · Before PostgreSQL 16, any role can make large objects, even where it can only read. As a superuser:
--       REVOKE EXECUTE ON FUNCTION lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea) FROM PUBLIC;
