-- Optional, after postgresql-views.sql: takes from public_markets_reader what every role may do in your database.
--
-- WARNING: this changes rights of the WHOLE DATABASE, not only those of the reader. Every role has the rights of PUBLIC,
-- and PostgreSQL cannot take them from one role alone. So this file takes from PUBLIC the right to make temporary tables,
-- and all rights on the schemas named below, and first grants the same to each role that exists now, the reader excepted:
-- they may do what they could do before. A ROLE THAT IS CREATED LATER MAY NOT: your application fails under it until you
-- grant it what it needs, as in the last comment. Try it on a copy first.
--
--     psql -v ON_ERROR_STOP=1 -f postgresql-hardening.sql your_database       as owner of the database and the schemas,
--                                                                             or as a superuser
--
-- It may be run again. After an error, nothing has changed.

BEGIN;

CREATE TEMPORARY VIEW rights_of_public AS
SELECT a.privilege_type AS privilege, format('DATABASE %I', d.datname) AS object
FROM pg_database AS d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS a
WHERE d.datname = current_database() AND a.grantee = 0 AND a.privilege_type = 'TEMPORARY'
UNION ALL
SELECT a.privilege_type, format('SCHEMA %I', n.nspname)
FROM pg_namespace AS n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a
-- The schemas whose functions and tables the reader must not touch: replace `app` by yours.
WHERE n.nspname IN ('public', 'app') AND a.grantee = 0;

DO $$
DECLARE
    held record;
    other name;
BEGIN
    FOR held IN SELECT * FROM rights_of_public
    LOOP
        FOR other IN
            SELECT rolname FROM pg_roles
            WHERE rolname <> 'public_markets_reader' AND NOT rolsuper AND rolname !~ '^pg_'
        LOOP
            EXECUTE format('GRANT %s ON %s TO %I', held.privilege, held.object, other);
        END LOOP;
        EXECUTE format('REVOKE %s ON %s FROM PUBLIC', held.privilege, held.object);
    END LOOP;
    -- PostgreSQL only warns of rights that are not yours to revoke.
    FOR held IN SELECT * FROM rights_of_public LOOP
        RAISE EXCEPTION '% is another role''s: run this file as a superuser', held.object;
    END LOOP;
END
$$;
DROP VIEW rights_of_public;

COMMIT;

-- For a new role of your application, as owner of the database:
--     GRANT TEMPORARY ON DATABASE your_database TO your_application;
--     GRANT USAGE ON SCHEMA public TO your_application;
