"""Compares the database schema with `RELATIONS`: one sentence per missing or unsuitable relation or column. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from generator.errors import SourceError
from generator.source.relations import RELATIONS, Kind

#: The type name of each column, and the kinds it can hold.
Offered: TypeAlias = Mapping[str, tuple[str, frozenset[Kind]]]
#: The columns of a relation; None if it is missing.
Columns: TypeAlias = Callable[[str], Offered | None]
#: Why a relation with all its columns cannot be read; None if it can.
Refusal: TypeAlias = Callable[[str], str | None]


def problems(columns: Columns, refusal: Refusal) -> list[str]:
    """Every reason why a build cannot read this database; empty if it can."""
    return [problem for name in RELATIONS for problem in _problems(name, columns(name), refusal)]


def require(columns: Columns, refusal: Refusal) -> None:
    """Raise SourceError with all problems."""
    found = problems(columns, refusal)
    if found:
        raise SourceError("\n  ".join(["the database schema does not fit; fix these problems:", *found]))


def _problems(name: str, offered: Offered | None, refusal: Refusal) -> list[str]:
    if offered is None:
        return [_missing(name)]
    unfit = list(_unfit(name, offered))
    reason = None if unfit else refusal(name)
    return [f"relation {name} cannot be read: {reason}; grant this user SELECT, or repair it"] if reason else unfit


def _missing(name: str) -> str:
    return f"relation {name} is missing; create a table or a view of that name, or set source.schema to where it is"


def _unfit(name: str, offered: Offered) -> Iterator[str]:
    for column, kind in RELATIONS[name].items():
        if column not in offered:
            yield f"column {name}.{column} is missing; add it, or make {name} a view that has it (NULL where optional)"
        elif kind not in offered[column][1]:
            yield f"column {name}.{column} has type {offered[column][0]}, which holds no {kind}; cast it in a view"
