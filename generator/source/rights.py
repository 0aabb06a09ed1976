"""The rights that the database user lacks, with the GRANT that gives them, and those that it need not have. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from generator.source.relations import ALL_RELATIONS
from generator.wording import counted

#: The search path is taken apart, because `current_schemas()` leaves out what the user may not use.
RIGHTS: Final = """
    SELECT c.relname, quote_ident(n.nspname), quote_ident(current_user),
        has_schema_privilege(n.oid, 'USAGE'), has_any_column_privilege(c.oid, 'SELECT')
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relname = ANY(:relations) AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
        AND CASE WHEN CAST(:schema AS text) IS NOT NULL THEN n.nspname = :schema ELSE n.nspname = ANY(string_to_array(
            replace(translate(current_setting('search_path'), '" ', ''), '$user', CAST(current_user AS text)), ','
        )) END
"""
#: Relations of extensions, such as pg_stat_statements, are usually open to everybody.
EXCESS: Final = """
    WITH relation AS (
        SELECT n.nspname || '.' || c.relname AS name,
            NOT (c.relname = ANY(:relations) AND CASE WHEN CAST(:schema AS text) IS NULL
                THEN pg_table_is_visible(c.oid) ELSE n.nspname = :schema END)
                AND has_any_column_privilege(c.oid, 'SELECT') AS may_read,
            has_table_privilege(c.oid, 'DELETE, TRUNCATE') OR has_any_column_privilege(c.oid, 'INSERT, UPDATE')
                AS may_write
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
            AND has_schema_privilege(n.oid, 'USAGE') AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                WHERE d.classid = CAST('pg_class' AS regclass) AND d.objid = c.oid AND d.deptype = 'e')
    )
    SELECT quote_ident(rolname), rolsuper, relation.name, relation.may_read, relation.may_write
    FROM pg_catalog.pg_roles LEFT JOIN relation ON may_read OR may_write
    WHERE rolname = current_user
    ORDER BY relation.name
"""
#: Where row level security binds this user: in our relations, and in tables that views read with this user's rights.
ROW_SECURITY: Final = """
    WITH RECURSIVE read AS (
        SELECT c.relname AS relation, c.oid, c.relkind, false AS by_view
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relname = ANY(:relations) AND CASE WHEN CAST(:schema AS text) IS NULL
            THEN pg_table_is_visible(c.oid) ELSE n.nspname = :schema END
        UNION
        SELECT read.relation, d.refobjid, c.relkind, true
        FROM read JOIN pg_catalog.pg_class AS v ON v.oid = read.oid AND v.relkind = 'v'
            AND EXISTS (SELECT FROM unnest(v.reloptions) AS option
                WHERE option ~* '^security_invoker=(t|tr|tru|true|y|ye|yes|on|1)$')
        JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = v.oid
        JOIN pg_catalog.pg_depend AS d ON d.classid = CAST('pg_rewrite' AS regclass) AND d.objid = r.oid
            AND d.refclassid = CAST('pg_class' AS regclass) AND d.refobjid <> v.oid
        JOIN pg_catalog.pg_class AS c ON c.oid = d.refobjid
    )
    SELECT DISTINCT relation, CAST(CAST(oid AS regclass) AS text), by_view, EXISTS (
        SELECT FROM pg_catalog.pg_policy AS p WHERE p.polrelid = read.oid AND p.polcmd IN ('r', '*')
            AND EXISTS (SELECT FROM unnest(p.polroles) AS role
                WHERE role = 0 OR pg_has_role(current_user, role, 'USAGE')))
    FROM read WHERE relkind IN ('r', 'p') AND row_security_active(oid)
    ORDER BY relation
"""


@dataclass
class MissingRights:
    """The rights that a role lacks. Role, schemas and relations (by their plain names) are quoted for SQL."""

    role: str = ""
    schemas: set[str] = field(default_factory=set)
    relations: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> "MissingRights":
        """The rights that rows of `Statements.rights` lack.

        A relation that is in several schemas needs the rights in one of them.
        """
        found = [*rows]
        usable = {relation for relation, _, _, may_use, _ in found if may_use}
        readable = {relation for relation, _, _, _, may_read in found if may_read}
        missing = cls()
        for relation, schema, missing.role, may_use, _ in sorted(found, key=lambda row: [*ALL_RELATIONS].index(row[0])):
            if relation not in usable:
                missing.schemas.add(schema)
            if relation not in readable and (may_use or relation not in usable):
                missing.relations[relation] = f"{schema}.{relation}"
        return missing

    def sentences(self) -> Iterator[str]:
        """One sentence per kind of right, with the statement that grants it."""
        if self.schemas:
            schemas = ", ".join(sorted(self.schemas))
            grant = f"GRANT USAGE ON SCHEMA {schemas} TO {self.role}"
            yield f"the database user may not use schema {schemas}; run `{grant}`"
        if self.relations:
            grant = f"GRANT SELECT ON {', '.join(self.relations.values())} TO {self.role}"
            yield f"the database user may not read {', '.join(self.relations)}; run `{grant}`"


def excess(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """One sentence per kind of right that rows of `Statements.excess` have beyond reading our relations."""
    found = [*rows]
    role, is_superuser = found[0][:2] if found else ("", False)
    remedy = "let a role of its own read the views and nothing else, as templates/sql/postgresql-views.sql does"
    if is_superuser:
        yield f"the database user {role} is a superuser, who may read and change everything on the server; {remedy}"
        return
    for verb, names in (
        ("read", [name for _, _, name, may_read, _ in found if may_read]),
        ("write to", [name for _, _, name, _, may_write in found if may_write]),
    ):
        if names:
            others = f" and {counted(len(names) - 1, 'other relation', ',')}" if len(names) > 1 else ""
            yield f"the database user {role} may {verb} {names[0]}{others}, which no build needs; {remedy}"


def bound(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """One sentence for each of our relations that rows of `Statements.row_security` tell of."""
    remedy = "read a view without security_invoker, whose owner owns the table, or add a policy"
    for relation, table, is_by_view, has_policy in rows:
        what = "row level security binds this user"
        if is_by_view:
            what = f"is a view with security_invoker, so row level security of {table} binds this user"
        shown = "its policies decide what is seen" if has_policy else "no policy lets it see a row"
        yield f"{relation}: {what}, and {shown}; {remedy}"
