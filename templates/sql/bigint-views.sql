-- The definitions of the views for a site with other habits, to replace those in postgresql-views.sql: bigint and
-- integer keys, several contracts in one question, local times, no order book, no pools, no FX families. Schema
-- `exchange` is invented (tests/support/exchange_schema.sql); docs/recipes.md explains the ids.

-- A market is one yes-or-no contract; a question that has several is several markets. Their ids are made here, once.
-- "contract" in the hash keeps contract 7 and trade 7 apart.
--
-- Every market's id by its key, also of one that you have hidden: what `public-markets takedown` needs when readers still
-- see it. It is for you alone; only the views below read it, and no role is granted it:
--     SELECT market_id FROM public_api.market_ids WHERE contract_id = 7;
CREATE VIEW public_api.market_ids AS
SELECT
    c.id AS contract_id,
    c.question_id,
    c.is_withdrawn,
    overlay(overlay(
        left(encode(
            sha256((SELECT key FROM public_api.fill_id_key) || convert_to('contract ' || c.id, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13) PLACING 'a' FROM 17
    )::uuid AS market_id
FROM exchange.contracts AS c;

CREATE VIEW public_api.visible_contracts WITH (security_barrier) AS
SELECT i.contract_id, i.question_id, i.market_id
FROM public_api.market_ids AS i
JOIN exchange.questions AS q ON q.id = i.question_id
WHERE q.is_approved AND NOT i.is_withdrawn;

CREATE VIEW public_api.markets WITH (security_barrier) AS
SELECT
    v.market_id                                       AS id,
    NULL::text                                        AS slug,
    -- Lists show this alone, so it must say which contract: "Who wins? Ada". A question's only contract has no label.
    concat_ws(' ', q.title, nullif(btrim(c.label), '')) AS question,
    q.rules                                           AS description,
    q.state                                           AS status,
    'approved'::text                                  AS approval,
    true                                              AS is_listed,
    c.chance                                          AS prob,
    c.volume                                          AS volume,
    0                                                 AS pool_yes,            -- an exchange without pools
    0                                                 AS pool_no,
    q.closes_at AT TIME ZONE 'Europe/Berlin'          AS close_time,          -- from local times
    CASE WHEN q.state = 'resolved' THEN                                       -- the question says which contract won
        CASE c.id = q.winner_id WHEN true THEN 'YES' WHEN false THEN 'NO' END -- no winner was entered: NULL, not NO
    END                                               AS resolution,
    q.opened_at AT TIME ZONE 'Europe/Berlin'          AS created_at,
    CASE WHEN q.state = 'resolved' THEN q.resolved_at AT TIME ZONE 'Europe/Berlin' END AS resolved_at,
    coalesce(t.last_at, q.opened_at) AT TIME ZONE 'Europe/Berlin' AS last_activity_at,
    t.traders                                         AS trader_count,
    NULL::text                                        AS trading_pause_reason,
    NULL::text                                        AS creation_source,
    NULL::text                                        AS sponsor
    -- Optional, after detail-versions.sql, for the table exchange.trades: with it, builds read only what changed.
    -- , coalesce((SELECT d.version::text FROM public_api.detail_versions AS d WHERE d.contract_id = c.id), 'untraded')
    --       AS detail_version
FROM public_api.visible_contracts AS v
JOIN exchange.contracts AS c ON c.id = v.contract_id
JOIN exchange.questions AS q ON q.id = v.question_id
CROSS JOIN LATERAL (
    SELECT max(t.traded_at) AS last_at, count(DISTINCT t.user_id) AS traders
    FROM exchange.trades AS t
    WHERE t.contract_id = c.id
) AS t;

CREATE VIEW public_api.fills WITH (security_barrier) AS
SELECT
    overlay(overlay(
        left(encode(
            sha256((SELECT key FROM public_api.fill_id_key) || convert_to('trade ' || t.id, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13) PLACING 'a' FROM 17
    )::uuid                                  AS id,
    v.market_id,
    t.stake                                  AS amount,
    t.shares,
    t.stake / nullif(t.shares, 0)            AS price,  -- without NULLIF, one trade of no shares would end every build
    t.traded_at AT TIME ZONE 'Europe/Berlin' AS created_at
FROM public_api.visible_contracts AS v
JOIN exchange.trades AS t USING (contract_id);

CREATE VIEW public_api.probabilities WITH (security_barrier) AS
SELECT v.market_id, t.traded_at AT TIME ZONE 'Europe/Berlin' AS recorded_at, t.stake / nullif(t.shares, 0) AS prob
FROM public_api.visible_contracts AS v
JOIN exchange.trades AS t USING (contract_id)
WHERE t.shares > 0;

-- A question is one that has, or had, several contracts: one with a single contract is that market. The ids are made like
-- those of contracts, with a word of their own: contract 7 and question 7 must not have the same. For you alone, too:
--     SELECT question_id FROM public_api.question_ids WHERE number = 7;
CREATE VIEW public_api.question_ids AS
SELECT
    q.id AS number,
    overlay(overlay(
        left(encode(
            sha256((SELECT key FROM public_api.fill_id_key) || convert_to('question:' || q.id, 'UTF8')), 'hex'), 32)
        PLACING '8' FROM 13) PLACING 'a' FROM 17
    )::uuid AS question_id
FROM exchange.questions AS q
WHERE (SELECT count(*) FROM exchange.contracts AS c WHERE c.question_id = q.id) > 1;

CREATE VIEW public_api.questions WITH (security_barrier) AS
SELECT
    i.question_id                            AS id,
    NULL::text                               AS slug,
    q.title                                  AS title,
    q.rules                                  AS description,
    'exclusive'::text                        AS kind,      -- one winner; where several can win: independent
    'approved'::text                         AS approval,  -- hidden ones are excluded
    true                                     AS is_listed,
    q.opened_at AT TIME ZONE 'Europe/Berlin' AS created_at,
    NULL::text                               AS key        -- or q.id::text, for question_url with {key}
FROM public_api.question_ids AS i
JOIN exchange.questions AS q ON q.id = i.number
WHERE q.id IN (SELECT v.question_id FROM public_api.visible_contracts AS v);

CREATE VIEW public_api.question_members WITH (security_barrier) AS
SELECT
    i.question_id,
    v.market_id,
    nullif(btrim(c.label), '')                                      AS label,  -- NULL: the market's question is shown
    row_number() OVER (PARTITION BY i.question_id ORDER BY c.id)    AS position,  -- not the number, which is private
    CASE WHEN q.state = 'resolved' THEN (c.id = q.winner_id)::integer END AS payout  -- of a share, once that is known
FROM public_api.visible_contracts AS v
JOIN public_api.question_ids AS i ON i.number = v.question_id
JOIN exchange.contracts AS c ON c.id = v.contract_id
JOIN exchange.questions AS q ON q.id = v.question_id;

-- What the site does not have is a view without rows.
CREATE VIEW public_api.market_categories AS
SELECT NULL::uuid AS market_id, NULL::text AS category, NULL::integer AS position
WHERE false;

CREATE VIEW public_api.fx_members AS
SELECT
    NULL::uuid AS market_id, NULL::text AS title, NULL::text AS instrument, NULL::text AS source,
    NULL::date AS week_start, NULL::date AS week_end, NULL::numeric AS threshold_value, NULL::text AS direction,
    NULL::boolean AS is_public
WHERE false;

CREATE VIEW public_api.orders AS
SELECT
    NULL::uuid AS market_id, NULL::text AS side, NULL::numeric AS price, NULL::numeric AS amount,
    NULL::boolean AS is_public
WHERE false;

