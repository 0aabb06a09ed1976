"""Compares what a database offers with what we read: every missing or unfit relation and column, as sentences. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from generator.errors import SourceError
from generator.source.relations import RELATIONS, Kind

#: Each column with its type's name and the kinds it can hold.
Offered: TypeAlias = Mapping[str, tuple[str, frozenset[Kind]]]
#: The columns of a relation; None for a relation that is missing.
Columns: TypeAlias = Callable[[str], Offered | None]
#: Why a relation cannot be read although all its columns are there; None when it can.
Refusal: TypeAlias = Callable[[str], str | None]


def findings(columns: Columns, refusal: Refusal) -> list[str]:
    """Everything that keeps us from reading; empty when a build can be tried."""
    return [finding for name in RELATIONS for finding in _findings(name, columns(name), refusal)]


def require(columns: Columns, refusal: Refusal) -> None:
    """Raise SourceError with everything that keeps us from reading."""
    found = findings(columns, refusal)
    if found:
        raise SourceError("\n  ".join(["the database lacks what a build reads:", *found]))


def _findings(name: str, offered: Offered | None, refusal: Refusal) -> list[str]:
    if offered is None:
        return [_missing(name)]
    unfit = list(_unfit(name, offered))
    reason = None if unfit else refusal(name)
    return [f"relation {name} cannot be read: {reason}; let this user SELECT from it, or mend it"] if reason else unfit


def _missing(name: str) -> str:
    return f"relation {name} is missing; create a table or a view of that name, or set source.schema to where it is"


def _unfit(name: str, offered: Offered) -> Iterator[str]:
    for column, kind in RELATIONS[name].items():
        if column not in offered:
            yield f"column {name}.{column} is missing; add it, or make {name} a view that has it (NULL where optional)"
        elif kind not in offered[column][1]:
            yield f"column {name}.{column} has type {offered[column][0]}, which holds no {kind}; cast it in a view"
