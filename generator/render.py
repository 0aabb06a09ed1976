"""The table of contents: everything a build makes, in the order in which it is published.

    1  generations      immutable pages; nothing leads to them yet
    2  details          one per public market
    3  documents        snapshot, error bodies, OpenAPI document
    4  first pages      lead readers into the generations
    5  build.json       says that it is all there

Catalog in, artifacts out. It knows neither the database nor the disk.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from generator import __version__, contract, keys, openapi
from generator.catalog import Catalog
from generator.config import Config
from generator.detail import Detail
from generator.openapi_schemas import BuildRecord
from generator.pages import LIMITS, Generation, ItemList


@dataclass(frozen=True, slots=True)
class Artifact:
    """One mutable object: its key and its bytes."""

    key: str
    body: bytes


def lists(catalog: Catalog) -> list[ItemList]:
    """Every list, as its name and encoded items; a worker makes a Generation of each."""
    return [
        ItemList(keys.list_name(status, sort), [market.body for market in markets])
        for status, sort, markets in catalog.lists()
    ]


def market_detail(shown: Detail) -> Artifact:
    """The detail of one market."""
    return Artifact(keys.detail(shown.market.id), shown.body())


def documents(catalog: Catalog, config: Config) -> Iterator[Artifact]:
    """The objects that belong to no market and no list."""
    yield Artifact(keys.SNAPSHOT, contract.encode(catalog.snapshot(config.snapshot.size)))
    for status, body in contract.FIXED_ERRORS.items():
        yield Artifact(keys.error(status), contract.encode(body))
    yield Artifact(keys.OPENAPI, contract.encode(openapi.document(config)))


def first_pages(generation: Generation) -> Iterator[Artifact]:
    """The hundred pages with which walks of the list begin."""
    for limit in LIMITS:
        yield Artifact(keys.first_page(generation.list_name, limit), generation.first(limit))


def build_record(catalog: Catalog, config: Config, counts: dict[str, int]) -> Artifact:
    """What readers and monitors see of the build; `counts` are the items of each list."""
    record = BuildRecord(
        as_of=catalog.as_of,
        generator=__version__,
        variant=config.variant,
        layout=config.layout,
        markets=len(catalog.markets),
        lists=counts,
    )
    return Artifact(keys.BUILD, contract.encode(record))
