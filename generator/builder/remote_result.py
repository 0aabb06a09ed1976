"""A rendered part as bytes that come from another machine. They are parsed, and refused unless they have its shape.

The layout is the length of the head in eight bytes, the head as JSON, and the bodies of details one after the other:
within JSON, they would take longer to encode and to parse than everything else.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import chain, repeat
from typing import IO, Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, GetPydanticSchema, ValidationError

from generator.api import downloads, keys, slugs
from generator.api.downloads import CANDLES, CLOSES
from generator.builder import part_rendering
from generator.builder.part_rendering import NewMarketObject, ReadDetail, RenderedPart, Task
from generator.config import loader
from generator.config.settings import Config, Source, variable
from generator.downloads import histories, parquet
from generator.downloads.histories import HeldRows, NewHistories, SpoolSegment
from generator.errors import ClusterError, ConfigError
from generator.findings import Finding
from generator.markets import columns
from generator.markets.columns import Columns
from generator.markets.market import Market
from generator.markets.quarantine import Plain, Quarantine
from generator.models import replaced
from generator.source.reader import open_reader
from generator.tree import manifest

_LENGTH: Final = 8
_MONTH: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
#: What a record can hold.
_MOST_TRADES: Final = 2**63 - 1
_TYPES: Final[dict[str, Any]] = get_type_hints(Market)
#: The markets by column: for each field that passes, a list of its type.
_COLUMNS: Final[Any] = tuple.__class_getitem__(tuple(list.__class_getitem__(_TYPES[name]) for name in columns.NAMES))


class _Head(BaseModel):
    """Everything but the bodies of details; `has_body` tells which of them follow."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    #: Empty without markets.
    markets: Annotated[Any, GetPydanticSchema(lambda _, handler: handler.generate_schema(tuple[()] | _COLUMNS))]
    details: list[ReadDetail]
    has_body: list[bool]
    updates: list[NewMarketObject]
    kept: list[str]
    quarantine: Plain
    remarks: list[Finding]
    altered: list[str]
    false_versions: list[str]
    #: The rows of its segments follow the bodies.
    histories: NewHistories | None


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
        altered=part.altered,
        false_versions=part.false_versions,
        histories=part.histories,
    )
    first = head.model_dump_json(warnings=False).encode()
    lines = part.spool.read() if part.spool else b""
    return b"".join([len(first).to_bytes(_LENGTH), first, *filter(None, bodies), lines])


def parsed(content: bytes, slugs_of: Mapping[str, str | None], task: Task) -> RenderedPart:
    """What a worker returned for this task about these markets, given as slugs by id.

    Raises ClusterError if it is anything else.
    """
    end = _LENGTH + int.from_bytes(content[:_LENGTH])
    try:
        head = _Head.model_validate_json(content[_LENGTH:end])
        lines = sum(segment.size for segment in head.histories.segments) if head.histories else 0
        bodies = content[end : max(end, len(content) - lines)]
        part = RenderedPart(
            Columns(head.markets), [*_with_bodies(head, bodies)], head.updates, head.kept,
            Quarantine.of(head.quarantine), head.remarks, head.altered, head.false_versions,
            head.histories, BytesIO(content[end + len(bodies) :]) if head.histories else None,
        )  # fmt: skip
        _check_markets(part, slugs_of, task)
        _check_details(part.details, task)
        _check_histories(part, task)
        _check_texts(head)
    except ValueError as error:
        raise _refused("it does not parse" if isinstance(error, ValidationError) else str(error)) from error
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


def _check_markets(part: RenderedPart, slugs_of: Mapping[str, str | None], task: Task) -> None:
    """Raise ValueError for markets that are not those of the task: ids and slugs become names of files."""
    of: dict[str, Sequence[Any]] = dict(zip(columns.NAMES, part.markets.values or repeat(()), strict=False))
    if len({*map(len, of.values())}) > 1 or len({*of["id"]}) < len(of["id"]):
        raise ValueError("columns of different lengths, or a market twice")
    new = [(found.market_id, found.slug) for found in part.details]
    new += [(update.market.id, update.market.slug) for update in part.updates]
    named = [*new, *zip(of["id"], of["slug"], strict=True)]
    if not {*part.kept, *part.altered, *part.false_versions, *(market_id for market_id, _ in named)} <= slugs_of.keys():
        raise ValueError("markets of another part")
    if any(slugs_of[market_id] != slug for market_id, slug in named):
        raise ValueError("the slug of another market")
    if any(market_id in task.blocked for market_id, _ in new):
        raise ValueError("a blocked market")
    if not {*part.kept} <= task.known.keys() - task.blocked:
        raise ValueError("it keeps details that nothing is known of")
    if any(slugs.of_reference(slug) != slug for slug in {*chain.from_iterable(of["categories"])}):
        raise ValueError("a category that is no slug")


def _check_details(details: Iterable[ReadDetail], task: Task) -> None:
    """Raise ValueError unless digests and sizes are those of the bodies: later builds rely on them."""
    for found in details:
        if found.body is None and task.in_place.get(found.market_id) != found.digest:
            raise ValueError("a detail that is not in place")
        if found.body is not None and found.digest != manifest.digest(keys.detail(found.market_id), found.body):
            raise ValueError("a body that has another digest")
        if found.body is not None and found.size != len(found.body):
            raise ValueError("a body of another size")


def _check_histories(part: RenderedPart, task: Task) -> None:
    """Raise ValueError unless there are histories of just the details that were read, and lines for their segments."""
    if (part.histories is None) != (task.histories is None):
        raise ValueError("histories that were not asked for, or none")
    if part.histories is None or task.histories is None or part.spool is None:
        return
    found, read = part.histories, {detail.market_id for detail in part.details}
    if found.is_first != task.histories.is_first or found.entries.keys() != read or not read.issuperset(found.replaced):
        raise ValueError("histories of other markets")
    closing = {market.id: histories.closing(market) for market in part.markets.markets({})}
    for market_id, held in found.entries.items():
        if held.closed_at != closing.get(market_id) or (held.is_member and held != HeldRows(held.version)):
            raise ValueError("histories that are not those of their market")
        _check_later_rows(held)
    owners = {key for key in read if not found.entries[key].is_member}
    _check_rows(found.segments, part.spool, owners, downloads.tables(fills=task.config.has_fills))


def _check_rows(
    segments: Iterable[SpoolSegment], spool: IO[bytes], owners: AbstractSet[str], tables: Collection[str]
) -> None:
    """Raise ValueError unless the spool has just these segments, with rows of these tables and markets."""
    from generator.downloads import records  # noqa: PLC0415 - most sites need no NumPy

    end = 0
    for segment in segments:
        is_one = _MONTH.fullmatch(segment.month) and segment.table in tables and segment.size > 0
        if segment.offset != end or segment.path or not is_one:
            raise ValueError("segments of histories that are none")
        end += segment.size
        rows = records.of_bytes(segment.table, spool.read(segment.size))
        if rows.nbytes != segment.size:
            raise ValueError("the rows of histories are too short")
        if {*map(records.month, records.months(segment.table, rows))} != {segment.month}:
            raise ValueError("rows of another month")
        records.check(segment.table, rows)
        found = records.owner_ids(rows)
        if {*found} - owners or (found[0], found[-1]) != (segment.first, segment.last):
            raise ValueError("rows of other markets")
    if spool.read(1):
        raise ValueError("the rows of histories are too long")
    spool.seek(0)


def _check_later_rows(held: HeldRows) -> None:
    """Raise ValueError unless these are candles and closes: a later build puts them into the files."""
    for tables, rows in ((CANDLES, held.later), ((CLOSES,), held.close)):
        for table, time, values in rows:
            try:
                model = parquet.model_of(table if table in tables else "")
                names = (field.alias for field in model.model_fields.values())
                model.model_validate(dict(zip(names, (time, *values), strict=True)))
            except (KeyError, ValueError) as error:
                raise ValueError("later rows of histories that are none") from error
            if any(isinstance(value, int) and value > _MOST_TRADES for value in values):
                raise ValueError("later rows with more trades than can be counted")


def _check_texts(head: _Head) -> None:
    """Raise ValueError if a finding, which is printed to the operator's terminal, could control it."""
    if not all(map(str.isprintable, _texts(head.model_dump(include={"quarantine", "remarks"})))):
        raise ValueError("a control character in a finding")


def _texts(value: Any) -> Iterator[str]:
    """All texts in a plain value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value.items()])
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(map(_texts, value))


_URL = "source.url"


@dataclass(frozen=True)
class RemotePart:
    """Renders a part as the database shows it at `instant`; the worker's environment has the database's address."""

    task: Task
    instant: str

    @classmethod
    def of(cls, task: Task, instant: str) -> "RemotePart":
        """Make the call, with only those settings that shape what is read."""
        return cls(replace(task, config=shared(task.config)), instant)

    def __call__(self) -> bytes:
        """Render it over a connection of its own, so that no worker holds a transaction open afterwards; encode it."""
        config = _with_own_source(self.task.config)
        with open_reader(config, Quarantine(), self.instant) as reader:
            return encoded(part_rendering.render(replace(self.task, config=config), reader.reporting_to))


@dataclass(frozen=True)
class RemoteCheck:
    """Fails on a worker that cannot see the same instant of the same database."""

    config: Config
    instant: str

    def __call__(self) -> bytes:
        """Open the database, and return nothing. Raises ConfigError or SourceError."""
        with open_reader(_with_own_source(self.config), Quarantine(), self.instant):
            return b""


def shared(config: Config) -> Config:
    """Only those settings that shape what is read, none of which is a credential."""
    return Config(
        variant=config.variant,
        search=config.search,
        fills_window_step=config.fills_window_step,
        detail=config.detail,
        dumps=config.dumps,
        source=Source(schema=config.source.schema_),
    )


def _with_own_source(config: Config) -> Config:
    url = loader.from_environment(_URL, os.environ)
    if not url:
        raise ConfigError(f"{variable(_URL)} is not set; set it in the environment of every worker")
    source = Source.model_validate({"url": url, "schema": config.source.schema_})
    return replaced(config, source=source)
