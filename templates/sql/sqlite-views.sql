-- Adapts a SQLite database to public-markets: six views, and UUIDs for keys that are none.
--
--     sqlite3 -bail site.db < sqlite-views.sql
--     public-markets check --set source.url=sqlite:///site.db             lists every column that does not fit
--
-- A worked example, the invented site of postgresql-views.sql in SQLite. Keep the names of views and columns. Replace
-- the tables after each FROM, JOIN and ON by yours. If one of your tables has the name of a view, build from a copy:
-- see "Tables named like the relations" in docs/recipes.md.
--
-- It changes none of your tables. Run it again after every change to it, and after each migration that makes a table
-- anew, which drops that table's triggers: ids stay, the views are made anew.

BEGIN IMMEDIATE;

-- ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
--
-- SQLite has no hash to make ids of, so random ones are kept. Back the table up: with other ids, everything that is
-- published is withdrawn. Without a type, `key` keeps numbers and texts as they are. A bet gets an id of its own even if
-- its key is a UUID: another bet's matched_bet_id would tell who traded with whom. A key must never be used again: an
-- INTEGER PRIMARY KEY needs AUTOINCREMENT for that, or the market after a deleted one would have its address.

CREATE TABLE IF NOT EXISTS public_ids (
    kind TEXT NOT NULL,
    key NOT NULL,
    id TEXT NOT NULL UNIQUE DEFAULT (lower(
        hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)
        || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
    since TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,  -- created_at for a site that does not know when a market was opened
    PRIMARY KEY (kind, key)
);
INSERT OR IGNORE INTO public_ids (kind, key) SELECT 'contract', contract_id FROM contracts;
INSERT OR IGNORE INTO public_ids (kind, key) SELECT 'bet', bet_id FROM bets;

-- Not INSERT OR IGNORE: in a trigger, the OR of the statement that fired it holds instead.
DROP TRIGGER IF EXISTS contracts_public_id;
CREATE TRIGGER contracts_public_id AFTER INSERT ON contracts BEGIN
    INSERT INTO public_ids (kind, key) SELECT 'contract', NEW.contract_id
    WHERE NEW.contract_id IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM public_ids WHERE kind = 'contract' AND key = NEW.contract_id);
END;
DROP TRIGGER IF EXISTS bets_public_id;
CREATE TRIGGER bets_public_id AFTER INSERT ON bets BEGIN
    INSERT INTO public_ids (kind, key) SELECT 'bet', NEW.bet_id
    WHERE NEW.bet_id IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM public_ids WHERE kind = 'bet' AND key = NEW.bet_id);
END;

-- ── the views ────────────────────────────────────────────────────────────────────────────────────────────────────────

DROP VIEW IF EXISTS markets;
DROP VIEW IF EXISTS market_categories;
DROP VIEW IF EXISTS fx_members;
DROP VIEW IF EXISTS orders;
DROP VIEW IF EXISTS fills;
DROP VIEW IF EXISTS probabilities;

CREATE VIEW markets AS
SELECT
    i.id                                                AS id,
    c.url_name                                          AS slug,         -- may be NULL
    c.title                                             AS question,
    c.rules                                             AS description,  -- may be NULL
    CASE c.state                                                         -- open, closed, resolved or cancelled
        WHEN 'trading' THEN 'open'
        WHEN 'halted'  THEN 'open'                                       -- open, with a trading_pause_reason
        WHEN 'expired' THEN 'closed'
        WHEN 'settled' THEN 'resolved'
        WHEN 'voided'  THEN 'cancelled'
    END                                                 AS status,       -- unknown: NULL, which is quarantined
    -- Hidden markets are in the view, so that `check` and the report count them; no other column of theirs is read.
    CASE WHEN c.verdict = 'passed' THEN 'approved' ELSE 'hidden' END AS approval,
    c.is_searchable AND c.deleted_at IS NULL AND c.state <> 'draft'  AS is_listed,
    c.chance_bp / 10000.0                               AS prob,
    c.turnover_cents / 100.0                            AS volume,
    c.reserve_yes_cents / 100.0                         AS pool_yes,     -- 0 without a pool
    c.reserve_no_cents / 100.0                          AS pool_no,
    c.trading_ends_at                                   AS close_time,   -- times in UTC, such as 2026-06-30 23:59:59
    CASE WHEN c.state IN ('settled', 'voided') THEN CASE c.outcome
        WHEN 'yes' THEN 'YES' WHEN 'no' THEN 'NO' WHEN 'refund' THEN 'CANCEL'
    END END                                             AS resolution,
    c.opened_at                                         AS created_at,
    CASE WHEN c.state IN ('settled', 'voided') THEN c.settled_at END AS resolved_at,
    coalesce(CASE WHEN c.state IN ('settled', 'voided') THEN c.settled_at END, c.last_trade_at, c.opened_at)
                                                        AS last_activity_at,
    (SELECT count(DISTINCT b.user_id) FROM bets AS b WHERE b.contract_id = c.contract_id AND b.undone_at IS NULL)
                                                        AS trader_count,
    -- With a blank reason a market accepts bets.
    CASE WHEN c.state = 'halted' THEN 'Paused' || coalesce(': ' || nullif(trim(c.halt_notice), ''), '') END
                                                        AS trading_pause_reason,
    nullif(trim(c.origin), '')                          AS creation_source,
    nullif(trim(c.sponsored_by), '')                    AS sponsor
    -- Optional: the key in the addresses of your site, unique, for market_url with {key}.
    -- , c.contract_id AS key
    -- Optional, after sqlite-detail-versions.sql: with it, builds read only what changed. Nobody has traded: no version.
    -- , coalesce((SELECT d.version FROM detail_versions AS d WHERE d.contract_id = c.contract_id), 'untraded')
    --       AS detail_version
    -- Optional, with the one before: a build then reads this row, too, only if it changed.
    -- , (SELECT m.version FROM market_versions AS m WHERE m.contract_id = c.contract_id) AS market_version
FROM contracts AS c
LEFT JOIN public_ids AS i ON i.kind = 'contract' AND i.key = c.contract_id;  -- LEFT: the report names one without an id

CREATE VIEW market_categories AS
SELECT i.id AS market_id, t.label AS category, ct.rank AS position  -- the lowest position is the primary category
FROM contract_topics AS ct
JOIN topics AS t ON t.topic_id = ct.topic_id
JOIN public_ids AS i ON i.kind = 'contract' AND i.key = ct.contract_id;

CREATE VIEW fx_members AS
SELECT NULL AS market_id, NULL AS title, NULL AS instrument, NULL AS source, NULL AS week_start, NULL AS week_end,
    NULL AS threshold_value, NULL AS direction, NULL AS is_public
WHERE false;

-- Without an order book: as fx_members.
CREATE VIEW orders AS
SELECT
    i.id                      AS market_id,
    CASE o.direction WHEN 'buy' THEN 'bid' WHEN 'sell' THEN 'ask' END AS side,
    o.price_cents / 100.0     AS price,
    o.remaining_cents / 100.0 AS amount,
    NOT o.is_hidden           AS is_public
FROM order_book_entries AS o
JOIN public_ids AS i ON i.kind = 'contract' AND i.key = o.contract_id
WHERE o.cancelled_at IS NULL AND o.remaining_cents > 0;

CREATE VIEW fills AS
SELECT
    u.id                  AS id,
    i.id                  AS market_id,
    b.stake_cents / 100.0 AS amount,
    b.shares              AS shares,
    b.price_cents / 100.0 AS price,  -- may be NULL
    b.placed_at           AS created_at
FROM bets AS b
JOIN public_ids AS i ON i.kind = 'contract' AND i.key = b.contract_id
LEFT JOIN public_ids AS u ON u.kind = 'bet' AND u.key = b.bet_id
WHERE b.undone_at IS NULL;

CREATE VIEW probabilities AS
SELECT i.id AS market_id, h.seen_at AS recorded_at, h.chance_bp / 10000.0 AS prob
FROM price_history AS h
JOIN public_ids AS i ON i.kind = 'contract' AND i.key = h.contract_id;

COMMIT;
