"""The rights that the database user lacks, with the GRANT that gives them, and those that it need not have. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.source.relations import RELATIONS
from generator.wording import counted


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
        for relation, schema, missing.role, may_use, _ in sorted(found, key=lambda row: [*RELATIONS].index(row[0])):
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
