-- SocialPredict, adapted to public-markets: eight views over its tables, two of which make its groups questions, the index
-- they need, and a role that is granted the views and nothing else. docs/socialpredict.md says what becomes of what. Of
-- the table `users` nothing is read.
--
--     psql -v ON_ERROR_STOP=1 -f socialpredict-views.sql your_database    as owner of the tables, with CREATEROLE and
--                                                                         CREATE on the database
--     \password public_markets_reader                                     in psql, which sends only a hash
--     PUBLIC_MARKETS_SOURCE__URL='postgresql://public_markets_reader:…@host/your_database'        for the job only
--     public-markets check --set source.schema=public_api                 says what does not fit
--
-- Run it again after every change to it: it replaces the views in one transaction, so that readers see the old ones or
-- the new ones. After an error, nothing has changed. It waits five seconds for a build that is under way, then gives up
-- ("lock timeout"): run it again later. PostgreSQL 13 or later; any client will do.

BEGIN;
-- Shorter than the reader's (below): the workers of a build queue behind this file, and must not be the ones to give up.
SET LOCAL lock_timeout = '5s';

-- ── three values: those of your site ─────────────────────────────────────────────────────────────────────────────────

SET LOCAL search_path = public;                     -- the schema of the site's tables
SET LOCAL socialpredict.initial_probability = 0.5;  -- both as in setup.yaml, economics.marketcreation
SET LOCAL socialpredict.initial_subsidy = 10;

-- ── the index ────────────────────────────────────────────────────────────────────────────────────────────────────────
--
-- The bets of a market in the order of the formula. While it is made, nobody can bet: a fraction of a second for 200,000
-- bets. Where that is too long, make it before, with CREATE INDEX CONCURRENTLY under the same name.

CREATE INDEX IF NOT EXISTS bets_of_public_markets ON bets (market_id, placed_at, id) WHERE deleted_at IS NULL;

-- ── the secret of ids ────────────────────────────────────────────────────────────────────────────────────────────────
--
-- The site's numbers are hashed with this secret in the form of UUIDs (version 8): the same at every build, and no way
-- back or to the next one without the secret. Views read it as their owner; the reader cannot. Never write it into a
-- view: every role can read the source of views. Keep it in your backups: with another one, every market has another
-- address, and all old ones are withdrawn.

CREATE SCHEMA IF NOT EXISTS public_api;
COMMENT ON SCHEMA public_api IS 'What public-markets publishes: every row of these views is public.';
CREATE TABLE IF NOT EXISTS public_api.fill_id_key (key bytea NOT NULL);
INSERT INTO public_api.fill_id_key
SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
WHERE NOT EXISTS (SELECT FROM public_api.fill_id_key);

-- ── the views ────────────────────────────────────────────────────────────────────────────────────────────────────────
--
-- They run with their owner's rights (so never set security_invoker): the reader needs no rights on the tables.
-- security_barrier: the reader's conditions apply only to rows that pass the view. Without it, a condition that fails
-- on purpose can run first and quote a hidden row in its error message.
--
-- All of them are dropped first, because CREATE OR REPLACE can neither change the type of a column nor remove one; in
-- the order in which a build reads them: otherwise the two can wait for each other.

DROP VIEW IF EXISTS
    public_api.markets,
    public_api.market_categories,
    public_api.fx_members,
    public_api.orders,
    public_api.fills,
    public_api.probabilities,
    public_api.questions,
    public_api.question_members,
    public_api.visible_markets,
    public_api.groups,
    public_api.question_ids,
    public_api.economics;

DO $$
BEGIN
    EXECUTE format(
        'CREATE VIEW public_api.economics AS SELECT %L::float8 AS initial_probability, %L::float8 AS initial_subsidy',
        current_setting('socialpredict.initial_probability'), current_setting('socialpredict.initial_subsidy'));
END
$$;

-- The public markets, each with its group if it is in one. The words of both lifecycles are named one by one, so that a
-- new one, like `proposed` and `rejected`, is not public. Older rows have none.
CREATE VIEW public_api.groups AS
SELECT
    mg.id AS number,
    gm.market_id,
    gm.answer_label,
    gm.display_order,
    mg.question_title,
    coalesce(mg.lifecycle_status, '') IN ('', 'published', 'closed', 'resolved', 'cancelled') AS is_public
FROM market_group_members AS gm
JOIN market_groups AS mg ON mg.id = gm.group_id
WHERE gm.deleted_at IS NULL AND mg.deleted_at IS NULL;

CREATE VIEW public_api.visible_markets WITH (security_barrier) AS
SELECT
    m.id AS number,
    overlay(overlay(
        left(encode(
            sha256((SELECT key FROM public_api.fill_id_key) || convert_to('market ' || m.id, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13) PLACING 'a' FROM 17
    )::uuid AS market_id,
    CASE
        WHEN m.lifecycle_status = 'cancelled' THEN 'cancelled'
        WHEN m.is_resolved OR m.lifecycle_status = 'resolved' THEN
            CASE m.resolution_result WHEN 'N/A' THEN 'cancelled' ELSE 'resolved' END
        -- The one place where a view may ask for the time: nothing else says that a market has closed.
        WHEN m.lifecycle_status = 'closed' OR m.resolution_date_time <= now() THEN 'closed'
        ELSE 'open'
    END AS status,
    nullif(btrim(g.question_title), '') AS group_title,
    nullif(btrim(g.answer_label), '') AS answer_label
FROM markets AS m
LEFT JOIN public_api.groups AS g ON g.market_id = m.id
WHERE m.deleted_at IS NULL
    AND (m.lifecycle_status IS NULL OR m.lifecycle_status IN ('', 'published', 'closed', 'resolved', 'cancelled'))
    AND NOT EXISTS (SELECT FROM public_api.groups AS hidden WHERE hidden.market_id = m.id AND NOT hidden.is_public)
OFFSET 0;  -- changes no result, but makes PostgreSQL compute each id once, not again for every condition and join

CREATE VIEW public_api.markets WITH (security_barrier) AS
SELECT
    v.market_id                                             AS id,
    NULL::text                                              AS slug,
    -- Lists show this alone, so it must say which answer of a group it is: "Who wins the cup? – Ada".
    concat_ws(' – ', coalesce(v.group_title, m.question_title), v.answer_label) AS question,
    -- The latest approved version, then what YES and NO stand for where the site shows other words.
    nullif(concat_ws(E'\n\n', coalesce(nullif((
        SELECT a.body
        FROM market_description_amendments AS a
        WHERE a.market_id = m.id AND a.status = 'approved' AND a.deleted_at IS NULL
        ORDER BY a.version DESC
        LIMIT 1
    ), ''), nullif(m.description, '')), CASE
        WHEN l.yes <> 'YES' OR l.no <> 'NO' THEN format('YES: %s. NO: %s.', l.yes, l.no)
    END), '')                                               AS description,
    v.status,
    'approved'::text                                        AS approval,    -- hidden ones are excluded
    true                                                    AS is_listed,
    -- Without NULLIF, one market whose sums are 0 would end every build. NULL is quarantined, and the report says so.
    (e.initial_probability * e.initial_subsidy + t.yes) / nullif(e.initial_subsidy + t.yes + t.no, 0) AS prob,
    greatest(t.yes + t.no, 0)                               AS volume,
    0                                                       AS pool_yes,    -- the site has no pools
    0                                                       AS pool_no,
    m.resolution_date_time                                  AS close_time,
    -- An outcome that was entered before the market is resolved is a secret, and so is when that was.
    CASE v.status
        WHEN 'cancelled' THEN 'CANCEL'
        WHEN 'resolved' THEN nullif(m.resolution_result, '')
    END                                                     AS resolution,
    m.created_at,
    s.resolved_at,
    greatest(s.resolved_at, t.last_at, m.created_at)        AS last_activity_at,
    t.traders                                               AS trader_count,
    NULL::text                                              AS trading_pause_reason,
    NULL::text                                              AS creation_source,
    NULL::text                                              AS sponsor,
    -- A digest of all bets that count, and of all else that history and fills are made of: so it changes with them, in
    -- the same transaction, and needs no trigger.
    concat_ws(' ', t.digest, m.created_at, e.initial_probability, e.initial_subsidy) AS detail_version
    -- Optional: the number in the addresses of your site, for market_url with {key}.
    -- , m.id AS key
FROM public_api.visible_markets AS v
JOIN markets AS m ON m.id = v.number
CROSS JOIN public_api.economics AS e
CROSS JOIN LATERAL (
    SELECT coalesce(nullif(btrim(m.yes_label), ''), 'YES') AS yes, coalesce(nullif(btrim(m.no_label), ''), 'NO') AS no
) AS l
CROSS JOIN LATERAL (
    -- Go's empty time, in the year 1, is none.
    SELECT CASE WHEN v.status IN ('resolved', 'cancelled') THEN
        nullif(m.final_resolution_date_time, '0001-01-01 00:00:00+00')
    END AS resolved_at
) AS s
LEFT JOIN LATERAL (
    SELECT
        coalesce(sum(b.amount) FILTER (WHERE b.outcome = 'YES'), 0)::float8 AS yes,
        coalesce(sum(b.amount) FILTER (WHERE b.outcome = 'NO'), 0)::float8 AS no,
        max(b.placed_at) AS last_at,
        count(DISTINCT b.username) AS traders,
        sum(hashtextextended(concat_ws(' ', b.id, b.amount, b.outcome, b.placed_at), 0)) AS digest
    FROM bets AS b
    WHERE b.market_id = v.number AND b.deleted_at IS NULL
) AS t ON true;

-- For the extended variant: the market's tags. A group is none: each would be a category with lists of its own.
CREATE VIEW public_api.market_categories WITH (security_barrier) AS
SELECT v.market_id, t.display_name AS category, coalesce(t.sort_order, 0) AS position
FROM public_api.visible_markets AS v
JOIN market_tag_assignments AS ta ON ta.market_id = v.number
JOIN market_tags AS t ON t.id = ta.tag_id
WHERE t.is_active AND t.deleted_at IS NULL AND ta.deleted_at IS NULL;

-- A sale is a negative amount. The site knows neither shares nor the price of one.
CREATE VIEW public_api.fills WITH (security_barrier) AS
SELECT
    overlay(overlay(
        left(encode(
            sha256((SELECT key FROM public_api.fill_id_key) || convert_to('bet ' || b.id, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13) PLACING 'a' FROM 17
    )::uuid       AS id,
    v.market_id,
    abs(b.amount) AS amount,
    0             AS shares,
    NULL::numeric AS price,
    b.placed_at   AS created_at
FROM public_api.visible_markets AS v
JOIN bets AS b ON b.market_id = v.number
WHERE b.deleted_at IS NULL;

-- The formula: (p0·s + Y) / (s + Y + N) after each bet. LATERAL: where a build asks for some markets, only their bets
-- are read, in the order of the index.
CREATE VIEW public_api.probabilities WITH (security_barrier) AS
SELECT v.market_id, h.recorded_at, h.prob
FROM public_api.visible_markets AS v
JOIN markets AS m ON m.id = v.number
CROSS JOIN public_api.economics AS e
CROSS JOIN LATERAL (
    SELECT m.created_at AS recorded_at, e.initial_probability AS prob
    UNION ALL
    SELECT b.placed_at, (e.initial_probability * e.initial_subsidy + sum(b.yes) OVER sofar)
        / nullif(e.initial_subsidy + sum(b.yes + b.no) OVER sofar, 0)
    FROM (
        SELECT id, placed_at,
            CASE outcome WHEN 'YES' THEN amount::float8 ELSE 0 END AS yes,
            CASE outcome WHEN 'NO' THEN amount::float8 ELSE 0 END AS no
        FROM bets
        WHERE market_id = v.number AND deleted_at IS NULL
    ) AS b
    WINDOW sofar AS (ORDER BY b.placed_at, b.id ROWS UNBOUNDED PRECEDING)
) AS h;

-- A group is a question. Its answers are resolved one by one, and any number of them can be YES: independent. The word in
-- the hash keeps group 7 and market 7 apart. This view is for you alone:
--     SELECT question_id FROM public_api.question_ids WHERE number = 7;
CREATE VIEW public_api.question_ids AS
SELECT
    mg.id AS number,
    overlay(overlay(
        left(encode(
            sha256((SELECT key FROM public_api.fill_id_key) || convert_to('question:' || mg.id, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13) PLACING 'a' FROM 17
    )::uuid AS question_id
FROM market_groups AS mg;

-- Groups that have a public market.
CREATE VIEW public_api.questions WITH (security_barrier) AS
SELECT
    i.question_id              AS id,
    NULL::text                 AS slug,
    mg.question_title          AS title,
    nullif(mg.description, '') AS description,
    'independent'::text        AS kind,
    'approved'::text           AS approval,  -- hidden ones are excluded
    true                       AS is_listed,
    mg.created_at,
    NULL::text                 AS key        -- or mg.id::text, for question_url with {key}
FROM public_api.question_ids AS i
JOIN market_groups AS mg ON mg.id = i.number
WHERE mg.id IN (
    SELECT g.number FROM public_api.groups AS g JOIN public_api.visible_markets AS v ON v.number = g.market_id
);

CREATE VIEW public_api.question_members WITH (security_barrier) AS
SELECT
    i.question_id,
    v.market_id,
    -- At most 100 characters; the market's own question has all of them.
    CASE WHEN length(v.answer_label) > 100 THEN left(v.answer_label, 99) || '…' ELSE v.answer_label END AS label,
    g.display_order            AS position,
    NULL::numeric              AS payout     -- the site has no shares
FROM public_api.visible_markets AS v
JOIN public_api.groups AS g ON g.market_id = v.number
JOIN public_api.question_ids AS i ON i.number = g.number;

-- What the site does not have is a view without rows.
CREATE VIEW public_api.orders AS
SELECT
    NULL::uuid AS market_id, NULL::text AS side, NULL::numeric AS price, NULL::numeric AS amount,
    NULL::boolean AS is_public
WHERE false;

CREATE VIEW public_api.fx_members AS
SELECT
    NULL::uuid AS market_id, NULL::text AS title, NULL::text AS instrument, NULL::text AS source,
    NULL::date AS week_start, NULL::date AS week_end, NULL::numeric AS threshold_value, NULL::text AS direction,
    NULL::boolean AS is_public
WHERE false;

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
-- PostgreSQL cannot estimate how many markets a range of computed ids has. If it assumes one, it computes all bets again
-- for each; other joins compute them once. Compiling queries (JIT) costs more than it saves, as each range has its own.
ALTER ROLE public_markets_reader SET enable_nestloop = off;
ALTER ROLE public_markets_reader SET jit = off;
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
