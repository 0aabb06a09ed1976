-- Optional, for SQLite: two versions for each market, so that builds read only what changed: detail_version tells of its
-- orders, fills and points, market_version of everything else. detail-versions.sql is the same for PostgreSQL, and says
-- why a time or a counter will not do.
--
--     sqlite3 -bail site.db < sqlite-detail-versions.sql
--
-- A worked example: name your own tables, and the column that says to which market a row belongs. If that is a text,
-- write TEXT PRIMARY KEY for INTEGER PRIMARY KEY below: otherwise each write of your site to these tables ends with
-- "datatype mismatch". For detail_version, leave out no table that the views `orders`, `fills` and `probabilities` read;
-- for market_version none that `markets`, `market_categories` and `fx_members` read. The view `markets` then has two
-- more columns, or the first of them alone:
--
--     coalesce((SELECT d.version FROM detail_versions AS d WHERE d.contract_id = c.contract_id), 'untraded')
--         AS detail_version,
--     (SELECT m.version FROM market_versions AS m WHERE m.contract_id = c.contract_id) AS market_version
--
-- EACH CONNECTION THAT WRITES TO THESE TABLES MUST SAY, when it is opened, as it lasts for the connection only:
--
--     PRAGMA recursive_triggers = ON;
--
-- Without it, SQLite fires no trigger for a row that REPLACE, INSERT OR REPLACE or UPDATE OR REPLACE deletes to make
-- room. If that row belonged to another market than the new one, that market loses a row and keeps its version: builds
-- go on publishing the row. Whoever never replaces rows so needs no PRAGMA. Triggers of yours may then fire themselves,
-- too.
--
-- Dropping a table drops its triggers, and SQLite migrations often make a new table and drop the old one: run this file
-- again after each migration. It may be run at any time, and gives each market a new version.

BEGIN IMMEDIATE;

CREATE TABLE IF NOT EXISTS detail_versions (contract_id INTEGER PRIMARY KEY, version TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS market_versions (contract_id INTEGER PRIMARY KEY, version TEXT NOT NULL);

-- ON CONFLICT … DO UPDATE, not INSERT OR REPLACE: in a trigger, the OR of the statement that fired it holds instead, so
-- an INSERT OR IGNORE of a bet would leave the version as it was. A row without a market changes nothing.

DROP TRIGGER IF EXISTS order_book_entries_version_insert;
DROP TRIGGER IF EXISTS order_book_entries_version_update;
DROP TRIGGER IF EXISTS order_book_entries_version_delete;
CREATE TRIGGER order_book_entries_version_insert AFTER INSERT ON order_book_entries BEGIN
    INSERT INTO detail_versions SELECT NEW.contract_id, hex(randomblob(16)) WHERE NEW.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
-- A row may move from one market to another: both change.
CREATE TRIGGER order_book_entries_version_update AFTER UPDATE ON order_book_entries BEGIN
    INSERT INTO detail_versions SELECT changed.id, hex(randomblob(16))
    FROM (SELECT OLD.contract_id AS id UNION SELECT NEW.contract_id) AS changed WHERE changed.id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER order_book_entries_version_delete AFTER DELETE ON order_book_entries BEGIN
    INSERT INTO detail_versions SELECT OLD.contract_id, hex(randomblob(16)) WHERE OLD.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;

DROP TRIGGER IF EXISTS bets_version_insert;
DROP TRIGGER IF EXISTS bets_version_update;
DROP TRIGGER IF EXISTS bets_version_delete;
CREATE TRIGGER bets_version_insert AFTER INSERT ON bets BEGIN
    INSERT INTO detail_versions SELECT NEW.contract_id, hex(randomblob(16)) WHERE NEW.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER bets_version_update AFTER UPDATE ON bets BEGIN
    INSERT INTO detail_versions SELECT changed.id, hex(randomblob(16))
    FROM (SELECT OLD.contract_id AS id UNION SELECT NEW.contract_id) AS changed WHERE changed.id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER bets_version_delete AFTER DELETE ON bets BEGIN
    INSERT INTO detail_versions SELECT OLD.contract_id, hex(randomblob(16)) WHERE OLD.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;

DROP TRIGGER IF EXISTS price_history_version_insert;
DROP TRIGGER IF EXISTS price_history_version_update;
DROP TRIGGER IF EXISTS price_history_version_delete;
CREATE TRIGGER price_history_version_insert AFTER INSERT ON price_history BEGIN
    INSERT INTO detail_versions SELECT NEW.contract_id, hex(randomblob(16)) WHERE NEW.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER price_history_version_update AFTER UPDATE ON price_history BEGIN
    INSERT INTO detail_versions SELECT changed.id, hex(randomblob(16))
    FROM (SELECT OLD.contract_id AS id UNION SELECT NEW.contract_id) AS changed WHERE changed.id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER price_history_version_delete AFTER DELETE ON price_history BEGIN
    INSERT INTO detail_versions SELECT OLD.contract_id, hex(randomblob(16)) WHERE OLD.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;

-- ── market_version ──────────────────────────────────────────────────────────────────────────────────────────────────

DROP TRIGGER IF EXISTS contracts_market_version_insert;
DROP TRIGGER IF EXISTS contracts_market_version_update;
DROP TRIGGER IF EXISTS contracts_market_version_delete;
CREATE TRIGGER contracts_market_version_insert AFTER INSERT ON contracts BEGIN
    INSERT INTO market_versions SELECT NEW.contract_id, hex(randomblob(16)) WHERE NEW.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER contracts_market_version_update AFTER UPDATE ON contracts BEGIN
    INSERT INTO market_versions SELECT changed.id, hex(randomblob(16))
    FROM (SELECT OLD.contract_id AS id UNION SELECT NEW.contract_id) AS changed WHERE changed.id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER contracts_market_version_delete AFTER DELETE ON contracts BEGIN
    INSERT INTO market_versions SELECT OLD.contract_id, hex(randomblob(16)) WHERE OLD.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;

-- trader_count is counted in the view.
DROP TRIGGER IF EXISTS bets_market_version_insert;
DROP TRIGGER IF EXISTS bets_market_version_update;
DROP TRIGGER IF EXISTS bets_market_version_delete;
CREATE TRIGGER bets_market_version_insert AFTER INSERT ON bets BEGIN
    INSERT INTO market_versions SELECT NEW.contract_id, hex(randomblob(16)) WHERE NEW.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER bets_market_version_update AFTER UPDATE ON bets BEGIN
    INSERT INTO market_versions SELECT changed.id, hex(randomblob(16))
    FROM (SELECT OLD.contract_id AS id UNION SELECT NEW.contract_id) AS changed WHERE changed.id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER bets_market_version_delete AFTER DELETE ON bets BEGIN
    INSERT INTO market_versions SELECT OLD.contract_id, hex(randomblob(16)) WHERE OLD.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;

DROP TRIGGER IF EXISTS contract_topics_market_version_insert;
DROP TRIGGER IF EXISTS contract_topics_market_version_update;
DROP TRIGGER IF EXISTS contract_topics_market_version_delete;
CREATE TRIGGER contract_topics_market_version_insert AFTER INSERT ON contract_topics BEGIN
    INSERT INTO market_versions SELECT NEW.contract_id, hex(randomblob(16)) WHERE NEW.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER contract_topics_market_version_update AFTER UPDATE ON contract_topics BEGIN
    INSERT INTO market_versions SELECT changed.id, hex(randomblob(16))
    FROM (SELECT OLD.contract_id AS id UNION SELECT NEW.contract_id) AS changed WHERE changed.id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;
CREATE TRIGGER contract_topics_market_version_delete AFTER DELETE ON contract_topics BEGIN
    INSERT INTO market_versions SELECT OLD.contract_id, hex(randomblob(16)) WHERE OLD.contract_id IS NOT NULL
    ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
END;

-- A topic is that of many markets. An insert counts, too: it may replace a row, or be of a topic that markets have already.
DROP TRIGGER IF EXISTS topics_market_version_insert;
DROP TRIGGER IF EXISTS topics_market_version_update;
DROP TRIGGER IF EXISTS topics_market_version_delete;
CREATE TRIGGER topics_market_version_insert AFTER INSERT ON topics BEGIN
    UPDATE market_versions SET version = hex(randomblob(16))
    WHERE contract_id IN (SELECT contract_id FROM contract_topics WHERE topic_id = NEW.topic_id);
END;
CREATE TRIGGER topics_market_version_update AFTER UPDATE ON topics BEGIN
    UPDATE market_versions SET version = hex(randomblob(16))
    WHERE contract_id IN (SELECT contract_id FROM contract_topics WHERE topic_id IN (OLD.topic_id, NEW.topic_id));
END;
CREATE TRIGGER topics_market_version_delete AFTER DELETE ON topics BEGIN
    UPDATE market_versions SET version = hex(randomblob(16))
    WHERE contract_id IN (SELECT contract_id FROM contract_topics WHERE topic_id = OLD.topic_id);
END;

-- Existing markets get both versions; a later one gets its own with its first row.
INSERT INTO detail_versions SELECT contract_id, hex(randomblob(16)) FROM contracts WHERE true
ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
INSERT INTO market_versions SELECT contract_id, hex(randomblob(16)) FROM contracts WHERE true
ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;

COMMIT;
