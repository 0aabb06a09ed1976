"""A rendered part as bytes that come from another machine. They are parsed, and refused unless they have its shape.

The layout is the length of the head in eight bytes, the head as JSON, and the bodies of details one after the other:
within JSON, they would take longer to encode and to parse than everything else.
"""

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, GetPydanticSchema, ValidationError

from generator.api import slugs
from generator.builder.notices import Remark
from generator.builder.part_rendering import NewMarketObject, ReadDetail, RenderedPart
from generator.errors import ClusterError
from generator.markets import columns
from generator.markets.catalog import Market
from generator.markets.columns import Columns
from generator.markets.quarantine import Plain, Quarantine

_LENGTH: Final = 8
_TYPES: Final[dict[str, Any]] = get_type_hints(Market)
#: The markets by column: for each field that passes, a list of its type.
_COLUMNS: Final[Any] = tuple.__class_getitem__(tuple(list.__class_getitem__(_TYPES[name]) for name in columns.NAMES))


class _Head(BaseModel):
    """Everything but the bodies of details; `has_body` tells which of them follow."""

    model_config = ConfigDict(extra="forbid")

    #: Empty without markets.
    markets: Annotated[Any, GetPydanticSchema(lambda _, handler: handler.generate_schema(tuple[()] | _COLUMNS))]
    details: list[ReadDetail]
    has_body: list[bool]
    updates: list[NewMarketObject]
    kept: list[str]
    quarantine: Plain
    remarks: list[Remark]
    false_versions: list[str]


def encoded(part: RenderedPart) -> bytes:
    """The bytes of a part."""
    bodies = [found.body for found in part.details]
    head = _Head.model_construct(
        markets=tuple(part.markets.values),
        details=[found._replace(body=None) for found in part.details],
        has_body=[body is not None for body in bodies],
        updates=part.updates,
        kept=part.kept,
        quarantine=part.quarantine.plain(),
        remarks=part.remarks,
        false_versions=part.false_versions,
    )
    first = head.model_dump_json(warnings=False).encode()
    return b"".join([len(first).to_bytes(_LENGTH), first, *filter(None, bodies)])


def parsed(content: bytes, market_ids: Collection[str]) -> RenderedPart:
    """The part with these markets that a worker returned. Raises ClusterError if it is anything else."""
    end = _LENGTH + int.from_bytes(content[:_LENGTH])
    try:
        head = _Head.model_validate_json(content[_LENGTH:end])
        details = [*_with_bodies(head, content[end:])]
    except ValueError as error:
        raise _refused("it does not parse" if isinstance(error, ValidationError) else str(error)) from error
    part = RenderedPart(
        Columns(head.markets), details, head.updates, head.kept, Quarantine.of(head.quarantine), head.remarks,
        head.false_versions,
    )  # fmt: skip
    if (strange := _strange(part, market_ids)) is not None:
        raise _refused(strange)
    return part


def _refused(reason: str) -> ClusterError:
    return ClusterError(
        f"cluster: a worker returned something else than a part of the site ({reason}); nothing was replaced; find out "
        "who can reach the scheduler (see docs/cluster.md)"
    )


def _with_bodies(head: _Head, bodies: bytes) -> Iterator[ReadDetail]:
    """The details with their bodies. Raises ValueError unless these are exactly as long as the head says."""
    start = 0
    for found, has_body in zip(head.details, head.has_body, strict=True):
        end = start + found.size if has_body else start
        if not start <= end <= len(bodies):
            raise ValueError("the bodies of details are too short")
        yield found._replace(body=bodies[start:end] if has_body else None)
        start = end
    if start != len(bodies):
        raise ValueError("the bodies of details are too long")


def _strange(part: RenderedPart, market_ids: Collection[str]) -> str | None:
    """What does not belong there; None if everything does. Ids and slugs of categories become names of files."""
    of = dict(zip(columns.NAMES, part.markets.values, strict=True)) if part.markets.values else {}
    named = chain(
        of.get("id", ()), part.kept, part.false_versions, (found.market_id for found in part.details),
        (update.market.id for update in part.updates),
    )  # fmt: skip
    if not {*named} <= {*market_ids}:
        return "markets of another part"
    if len({len(column) for column in part.markets.values}) > 1 or len({*of.get("id", ())}) < len(of.get("id", ())):
        return "columns of different lengths, or a market twice"
    given = {*chain.from_iterable(of.get("categories", ()))}
    return None if all(slugs.of_reference(slug) == slug for slug in given) else "a category that is no slug"
