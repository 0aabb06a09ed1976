"""Compares what a database offers with what we read: every missing or unfit relation and column, as sentences. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from generator.relations import RELATIONS, Kind

#: The columns of a relation, each with its type's name and the kinds it can hold; None for a relation that is missing.
Columns: TypeAlias = Callable[[str], Mapping[str, tuple[str, frozenset[Kind]]] | None]


def findings(columns: Columns) -> list[str]:
    """Everything that keeps us from reading; empty when a build can be tried."""
    found = {name: columns(name) for name in RELATIONS}
    return [
        finding
        for name, offered in found.items()
        for finding in ([_missing(name)] if offered is None else _unfit(name, offered))
    ]


def _missing(name: str) -> str:
    return f"relation {name} is missing; create a table or a view of that name, or set source.schema to where it is"


def _unfit(name: str, offered: Mapping[str, tuple[str, frozenset[Kind]]]) -> Iterator[str]:
    for column, kind in RELATIONS[name].items():
        if column not in offered:
            yield f"column {name}.{column} is missing; add it, or make {name} a view that has it (NULL where optional)"
        elif kind not in offered[column][1]:
            yield f"column {name}.{column} has type {offered[column][0]}, which holds no {kind}; cast it in a view"
