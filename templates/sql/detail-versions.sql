-- Optional: a version for each market, so that builds read only what changed. Run it before postgresql-views.sql, and
-- uncomment the last column of the view `markets` there:
--
--     psql -v ON_ERROR_STOP=1 -f detail-versions.sql your_database          as owner of the tables
--
-- A worked example for the invented site of postgresql-views.sql: name your own tables, and in place of contract_id,
-- throughout the file, the column that says to which market a row belongs. If that column is renamed later, run this
-- file again in the same transaction: the function names it as text, so otherwise every write to the tables fails.
-- Leave out no table that the views `orders`, `fills` and `probabilities` read: if they join
-- a table that says something of many rows, such as whose orders are hidden, a change there must renew the versions of
-- all markets in which it shows. Rows that are written to a partition by its own name do not fire the triggers of the
-- table: name each partition, too.
--
-- The version of a market is a new random number whenever one of its rows is inserted, changed or deleted, set in the
-- same transaction. So whenever a build reads, it sees both the change and the new version, or neither. Simpler ways
-- fail silently:
--
-- · The time of the latest row, a watermark, or last_activity_at: of two transactions, the one that wrote first may be
--   the last to commit. A build between the two has seen the later time, and never reads the earlier row. Nor does
--   an order that shrinks, or a bet that is undone, have a later time.
-- · max(xmin): transactions do not commit in the order of their numbers either, deleted rows have none, and VACUUM FULL
--   or a restored backup changes them.
-- · A counter: after a backup is restored, it counts up to the same numbers again, for other rows.
--
-- The row of a version is locked until its transaction ends, so transactions that change the same market wait for each
-- other, as they do where each updates the market's own row. With REPEATABLE READ or SERIALIZABLE they fail instead
-- (40001), and must be repeated. One that changes several markets should do so in the order of their keys.

BEGIN;
SET LOCAL lock_timeout = '5s';

CREATE SCHEMA IF NOT EXISTS public_api;

-- No foreign key: it would lock the market's row. A version without a market does no harm.
CREATE TABLE IF NOT EXISTS public_api.detail_versions (contract_id bigint PRIMARY KEY, version uuid NOT NULL);

-- SECURITY DEFINER: whoever writes to your tables needs no rights on the versions. ORDER BY: statements that change
-- several markets lock them in the same order. NOT NULL: a row of no market must not fail to be written.
CREATE OR REPLACE FUNCTION public_api.renew_detail_versions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        UPDATE public_api.detail_versions SET version = gen_random_uuid();
    END IF;
    IF TG_OP = 'INSERT' THEN
        INSERT INTO public_api.detail_versions
        SELECT contract_id, gen_random_uuid() FROM new_rows
        WHERE contract_id IS NOT NULL GROUP BY contract_id ORDER BY contract_id
        ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
    END IF;
    IF TG_OP = 'UPDATE' THEN  -- a row may have moved from one market to another
        INSERT INTO public_api.detail_versions
        SELECT contract_id, gen_random_uuid()
        FROM (SELECT contract_id FROM new_rows UNION SELECT contract_id FROM old_rows) AS changed
        WHERE contract_id IS NOT NULL ORDER BY contract_id
        ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
    END IF;
    IF TG_OP = 'DELETE' THEN
        INSERT INTO public_api.detail_versions
        SELECT contract_id, gen_random_uuid() FROM old_rows
        WHERE contract_id IS NOT NULL GROUP BY contract_id ORDER BY contract_id
        ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
    END IF;
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION public_api.renew_detail_versions() FROM PUBLIC;

-- Four triggers for each table. Creating one waits for the writers of the table, so no change is missed. They do not run
-- where session_replication_role is `replica`, as on a logical subscriber: ALTER TABLE … ENABLE ALWAYS TRIGGER there.
DO $$
DECLARE
    changed regclass;
BEGIN
    FOREACH changed IN ARRAY ARRAY['app.order_book_entries', 'app.bets', 'app.price_history']::regclass[] LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS detail_version_insert ON %1$s', changed);
        EXECUTE format('DROP TRIGGER IF EXISTS detail_version_update ON %1$s', changed);
        EXECUTE format('DROP TRIGGER IF EXISTS detail_version_delete ON %1$s', changed);
        EXECUTE format('DROP TRIGGER IF EXISTS detail_version_truncate ON %1$s', changed);
        EXECUTE format('CREATE TRIGGER detail_version_insert AFTER INSERT ON %1$s REFERENCING NEW TABLE AS new_rows '
            'FOR EACH STATEMENT EXECUTE FUNCTION public_api.renew_detail_versions()', changed);
        EXECUTE format('CREATE TRIGGER detail_version_update AFTER UPDATE ON %1$s REFERENCING OLD TABLE AS old_rows '
            'NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public_api.renew_detail_versions()', changed);
        EXECUTE format('CREATE TRIGGER detail_version_delete AFTER DELETE ON %1$s REFERENCING OLD TABLE AS old_rows '
            'FOR EACH STATEMENT EXECUTE FUNCTION public_api.renew_detail_versions()', changed);
        EXECUTE format('CREATE TRIGGER detail_version_truncate AFTER TRUNCATE ON %1$s '
            'FOR EACH STATEMENT EXECUTE FUNCTION public_api.renew_detail_versions()', changed);
    END LOOP;
END
$$;

-- Existing markets get a version; a later one gets its own with its first row. Running this file again gives
-- all of them new ones, as it may have changed the triggers.
INSERT INTO public_api.detail_versions
SELECT contract_id, gen_random_uuid() FROM app.contracts ORDER BY contract_id
ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;

COMMIT;
