"""The rights that the database user lacks, and the GRANT that gives them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.source.relations import RELATIONS


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
