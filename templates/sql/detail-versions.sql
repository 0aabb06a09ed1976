-- Optional: two versions for each market, so that builds read only what changed: detail_version tells of its orders,
-- fills and points, market_version of everything else. Run it before postgresql-views.sql, and uncomment the last two
-- columns of the view `markets` there, or the first of them alone:
--
--     psql -v ON_ERROR_STOP=1 -f detail-versions.sql your_database          as owner of the tables
--
-- A worked example for the invented site of postgresql-views.sql: name your own tables further below, each with the
-- column that says to which market a row belongs, and the type of such a column (text for tickers). For detail_version,
-- leave out no table that the views `orders`, `fills` and `probabilities` read; for market_version none that `markets`,
-- `market_categories` and `fx_members` read, but those that only decide which markets are visible, as that is read in
-- each build. A table without such a column, as it says something of many markets, is
-- named with '': a change there renews the versions of all. Rows that are written to a partition by its own name do not
-- fire the triggers of the table: name each partition, too.
--
-- If such a column is renamed, run this file with its new name in the same transaction: the triggers know it as text,
-- and without it every write to the table fails. (A number would be silently wrong after a restored dump.)
--
-- A version is a new random number whenever one of the market's rows is inserted, changed or deleted, set in the same
-- transaction. So whenever a build reads, it sees both the change and the new version, or neither. Simpler ways
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
CREATE TABLE IF NOT EXISTS public_api.market_versions (contract_id bigint PRIMARY KEY, version uuid NOT NULL);

-- SECURITY DEFINER: whoever writes to your tables needs no rights on the versions. ORDER BY: statements that change
-- several markets lock them in the same order. NOT NULL: a row of no market must not fail to be written. An update may
-- move a row from one market to another. The arguments are the market's column, or '', and the table of versions;
-- triggers of earlier versions of this file have one of them, or none.
CREATE OR REPLACE FUNCTION public_api.renew_detail_versions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    market text := coalesce(TG_ARGV[0], 'contract_id');
    versions text := coalesce(TG_ARGV[1], 'detail_versions');
BEGIN
    -- Statements that change nothing renew nothing, such as an upsert of a topic that exists.
    IF market = '' AND TG_OP = 'UPDATE' THEN
        IF NOT EXISTS (SELECT o::text FROM old_rows AS o EXCEPT SELECT n::text FROM new_rows AS n) THEN
            RETURN NULL;
        END IF;
    ELSIF market = '' AND TG_OP = 'DELETE' THEN
        IF NOT EXISTS (SELECT FROM old_rows) THEN
            RETURN NULL;
        END IF;
    END IF;
    IF TG_OP = 'TRUNCATE' OR market = '' THEN
        -- Until this transaction ends, others that change a version wait: one that adds a market now cannot see what
        -- this one changed, and its version would tell of the row as it was.
        EXECUTE format('LOCK TABLE public_api.%I IN SHARE ROW EXCLUSIVE MODE', versions);
        EXECUTE format('UPDATE public_api.%I SET version = gen_random_uuid()', versions);
        RETURN NULL;
    END IF;
    EXECUTE format(
        'INSERT INTO public_api.%2$I '
        'SELECT market, gen_random_uuid() FROM (' || CASE TG_OP
            WHEN 'INSERT' THEN 'SELECT %1$I FROM new_rows'
            WHEN 'DELETE' THEN 'SELECT %1$I FROM old_rows'
            ELSE 'SELECT %1$I FROM new_rows UNION SELECT %1$I FROM old_rows'
        END || ') AS changed (market) WHERE market IS NOT NULL GROUP BY market ORDER BY market '
        'ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version', market, versions);
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION public_api.renew_detail_versions() FROM PUBLIC;

-- Triggers for each table, and for each of its versions. Creating one waits for the writers of the table, so no change is missed. They do not run
-- where session_replication_role is `replica`, as on a logical subscriber: ALTER TABLE … ENABLE ALWAYS TRIGGER there.
DO $$
DECLARE
    changed regclass;
    market text;
    versions text;
    rows_of text;
    operation text;
BEGIN
    FOR changed, market, versions IN VALUES
        ('app.order_book_entries'::regclass, 'contract_id', 'detail_versions'),
        ('app.bets', 'contract_id', 'detail_versions'),
        ('app.price_history', 'contract_id', 'detail_versions'),
        ('app.contracts', 'contract_id', 'market_versions'),
        ('app.bets', 'contract_id', 'market_versions'),  -- trader_count
        ('app.contract_topics', 'contract_id', 'market_versions'),
        ('app.topics', '', 'market_versions'),
        ('app.currency_legs', 'contract_id', 'market_versions'),
        ('app.currency_series', '', 'market_versions')
    LOOP
        -- A column that does not exist, or of another type, fails here, and not at the next bet.
        IF market <> '' THEN
            EXECUTE format('INSERT INTO public_api.%I SELECT %I, gen_random_uuid() FROM %s WHERE false',
                versions, market, changed);
        END IF;
        FOR operation, rows_of IN VALUES
            ('insert', 'REFERENCING NEW TABLE AS new_rows'),
            ('update', 'REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows'),
            ('delete', 'REFERENCING OLD TABLE AS old_rows'),
            ('truncate', '')
        LOOP
            EXECUTE format('DROP TRIGGER IF EXISTS %s_%s ON %s', rtrim(versions, 's'), operation, changed);
            CONTINUE WHEN market = '' AND operation = 'insert';  -- a foreign key: no market has a new topic yet
            EXECUTE format('CREATE TRIGGER %1$s_%2$s AFTER %2$s ON %3$s %4$s FOR EACH STATEMENT '
                'EXECUTE FUNCTION public_api.renew_detail_versions(%5$L, %6$L)',
                rtrim(versions, 's'), operation, changed, rows_of, market, versions);
        END LOOP;
    END LOOP;
END
$$;

-- Existing markets get both versions; a later one gets its own with its first row. Running this file again gives
-- all of them new ones, as it may have changed the triggers.
INSERT INTO public_api.detail_versions
SELECT contract_id, gen_random_uuid() FROM app.contracts ORDER BY contract_id
ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;
INSERT INTO public_api.market_versions
SELECT contract_id, gen_random_uuid() FROM app.contracts ORDER BY contract_id
ON CONFLICT (contract_id) DO UPDATE SET version = excluded.version;

COMMIT;
