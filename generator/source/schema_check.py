"""Compares the database schema with `ALL_RELATIONS`: a sentence per missing or unsuitable relation or column. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from generator.errors import SourceError
from generator.source.relations import ALL_RELATIONS, OPTIONAL, QUESTION_RELATIONS, Kind
from generator.source.rights import MissingRights

#: The type name of each column, and the kinds it can hold.
Offered: TypeAlias = Mapping[str, tuple[str, frozenset[Kind]]]
#: The columns of a relation; None if it is missing.
FindColumns: TypeAlias = Callable[[str], Offered | None]
#: Why a relation with all its columns cannot be read; None if it can.
Refusal: TypeAlias = Callable[[str], str | None]
#: The rights that this user lacks; asked for only if a relation is missing or refused.
Rights: TypeAlias = Callable[[], MissingRights]

#: What kinds are called where they are listed.
_NAMES: Final[Mapping[Kind, str]] = {"timestamp": "time", "integer": "whole number"}
#: The most columns of a relation that get a line each for the same problem; more share one line.
_LINES: Final = 3


def problems(columns: FindColumns, refusal: Refusal, rights: Rights) -> list[str]:
    """Every reason why a build cannot read this database; empty if it can."""
    offered = {name: columns(name) for name in ALL_RELATIONS}
    there = [name for name in QUESTION_RELATIONS if offered[name] is not None]
    if len(there) < len(QUESTION_RELATIONS):
        # Without them, a site has no questions. One that stands alone may be a table that has nothing to do with this.
        for name in there or QUESTION_RELATIONS:
            del offered[name]
    unfit = {name: list(_unfit(name, found)) for name, found in offered.items() if found is not None}
    refused = {name: reason for name, found in unfit.items() if not found and (reason := refusal(name))}
    lacking = rights() if refused or len(unfit) < len(offered) else MissingRights()
    if lacking.schemas:
        return list(lacking.sentences())  # the rest cannot be known
    missing = {name: [_missing(name)] for name in offered if name not in unfit}
    broken = {name: [_unreadable(name, reason)] for name, reason in refused.items() if name not in lacking.relations}
    found = unfit | missing | broken
    return [*lacking.sentences(), *(problem for name in offered for problem in found[name])]


def require(columns: FindColumns, refusal: Refusal, rights: Rights) -> None:
    """Raise SourceError with all problems."""
    found = problems(columns, refusal, rights)
    if found:
        raise SourceError("\n  ".join(["the database schema does not fit; fix these problems:", *found]))


def _unreadable(name: str, reason: str) -> str:
    remedy = "correct the view, or give its owner the rights it lacks"
    if "permission denied" in reason:
        remedy = "leave security_invoker off the view, and give its owner the rights it lacks"
    return f"relation {name} cannot be read: {reason}; {remedy}"


def _missing(name: str) -> str:
    if name in QUESTION_RELATIONS:
        (other,) = QUESTION_RELATIONS.keys() - {name}
        return (
            f"relation {name} is missing, but {other} is there; create both or neither; if {other} is something else, "
            "set questions.enabled: false"
        )
    return f"relation {name} is missing; create a table or a view of that name, or set source.schema to where it is"


def _unfit(name: str, offered: Offered) -> Iterator[str]:
    missing = [column for column in ALL_RELATIONS[name] if column not in offered]
    mistyped = {
        column: (offered[column][0], kind)
        for column, kind in ALL_RELATIONS[name].items()
        if column in offered and kind not in offered[column][1]
    }
    if len(missing) > _LINES:
        listed = ", ".join(missing)
        yield f"columns of {name} are missing: {listed}; make {name} a view that has them (NULL where optional)"
        missing = []
    if len(mistyped) > _LINES:
        listed = ", ".join(f"{column} ({held}, must hold {kind})" for column, (held, kind) in mistyped.items())
        hashed = (
            " and make ids UUIDs, such as keyed hashes" if any(kind == "id" for _, kind in mistyped.values()) else ""
        )
        yield f"columns of {name} have types that do not fit: {listed}; cast them in a view{hashed}"
        mistyped = {}
    for column in ALL_RELATIONS[name]:
        if column in missing:
            yield f"column {name}.{column} is missing; add it, or make {name} a view that has it (NULL where optional)"
        elif column in mistyped:
            held, kind = mistyped[column]
            yield f"column {name}.{column} has type {held}, which holds no {kind}; {_remedy(kind)}"
    for column, kinds in OPTIONAL.get(name, {}).items():
        if column in offered and offered[column][1].isdisjoint(kinds):
            yield (
                f"column {name}.{column} has type {offered[column][0]}, which holds no {_listed(kinds)}; cast it to "
                "text in a view, or leave the column out"
            )


def _listed(kinds: Sequence[Kind]) -> str:
    """`text, number or time`: what an optional column may hold. UUIDs go without saying."""
    *others, last = (_NAMES.get(kind, kind) for kind in kinds if kind != "id")
    return f"{', '.join(others)} or {last}"


def _remedy(kind: Kind) -> str:
    """What to do about a column that holds no `kind`: a number that is cast to text is still no id."""
    return "make it a UUID in a view, such as a keyed hash of the key" if kind == "id" else "cast it in a view"
