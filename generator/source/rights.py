"""What the database user lacks the right to read, and the GRANT that mends it. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.source.relations import RELATIONS


@dataclass
class Barred:
    """The rights that a role lacks. Role, schemas and relations (by their plain names) are quoted for SQL."""

    role: str = ""
    schemas: set[str] = field(default_factory=set)
    relations: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> "Barred":
        """What rows of `Statements.rights` tell. A relation in several schemas needs the rights in one of them."""
        found = [*rows]
        usable = {relation for relation, _, _, may_use, _ in found if may_use}
        readable = {relation for relation, _, _, _, may_read in found if may_read}
        barred = cls()
        for relation, schema, barred.role, may_use, _ in sorted(found, key=lambda row: [*RELATIONS].index(row[0])):
            if relation not in usable:
                barred.schemas.add(schema)
            if relation not in readable and (may_use or relation not in usable):
                barred.relations[relation] = f"{schema}.{relation}"
        return barred

    def sentences(self) -> Iterator[str]:
        """One per kind of right, with the statement that grants it."""
        if self.schemas:
            schemas = ", ".join(sorted(self.schemas))
            grant = f"GRANT USAGE ON SCHEMA {schemas} TO {self.role}"
            yield f"the database user may not use schema {schemas}; run `{grant}`"
        if self.relations:
            grant = f"GRANT SELECT ON {', '.join(self.relations.values())} TO {self.role}"
            yield f"the database user may not read {', '.join(self.relations)}; run `{grant}`"
