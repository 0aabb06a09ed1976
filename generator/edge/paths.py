"""What there is below the API's root besides markets: documents, and the files of dumps and change feed. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from generator.api import file_names, keys
from generator.api.contract import API_VERSION
from generator.api.downloads import MARKETS_FOLDER, NDJSON, PARQUET, tables
from generator.api.feeds import FEED_NAMES
from generator.api.file_names import SHAPES_OF_TABLE
from generator.config.settings import Config

#: What every key begins with.
ROOT: Final = f"{API_VERSION}/"
_FEED_TYPES: Final = ("atom", "json")


def documents(config: Config) -> Mapping[str, str]:
    """The key of each document by its path below the API's root, which is '' for the index."""
    found = {"": keys.SITE_INDEX}
    found |= {_name(keys.SNAPSHOT).removesuffix(".json"): keys.SNAPSHOT}
    return found | {_name(key): key for key in (keys.OPENAPI, keys.BUILD, keys.LLMS, keys.CHANGELOG, *_mutable(config))}


def _mutable(config: Config) -> Iterator[str]:
    if config.prices_file:
        yield keys.PRICES
    if config.feeds.enabled:
        yield from (keys.feed(name, extension) for name in FEED_NAMES for extension in _FEED_TYPES)
    if config.dumps.ndjson:
        yield keys.head(keys.DUMPS)
    if config.archive.days:
        yield keys.head(keys.ARCHIVE)
    if config.has_changes:
        yield keys.head(keys.CHANGES)


class Shapes(NamedTuple):
    """The paths of all files below the API's root: `0` is any digit, and `*` the digest that names a file.

    They are `whole`, or `root`, the name of one of these `tables`, and one of these `rests`.
    """

    whole: Sequence[str]
    root: str
    tables: Sequence[str]
    rests: Sequence[str]

    def all(self) -> list[str]:
        """Every path from its beginning to its end."""
        return [*self.whole, *(f"{self.root}{table}{rest}" for table, rest in product(self.tables, self.rests))]


def shapes(config: Config) -> Shapes:
    """The paths of all files that these settings switch on."""
    root, whole = f"{keys.DUMPS}/", list[str]()
    if config.dumps.ndjson:
        whole.append(f"{root}{MARKETS_FOLDER}*.{NDJSON}")
    if config.has_parquet:
        whole.append(f"{root}{MARKETS_FOLDER}*.{PARQUET}")
    if config.has_changes:
        whole.append(f"{keys.CHANGES}/*.{NDJSON}")
    if config.archive.days:
        whole.append(_name(keys.archived_day("0000-00-00")))
    return Shapes(whole, root, tables(fills=config.has_fills) if config.has_parquet else (), SHAPES_OF_TABLE)


def pattern(config: Config) -> str:
    """A regular expression for the files of downloads, without anchors and groups; nginx's and Python's."""
    return "|".join(file_names.expression(shape) for shape in shapes(config).all() if "*" in shape)


def _name(key: str) -> str:
    return key.removeprefix(ROOT)
