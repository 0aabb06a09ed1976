"""What there is below the API's root besides markets: documents, and the files of dumps and change feed. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.api.downloads import MARKETS_FOLDER, NAME_LENGTH, NDJSON, PARQUET, TABLES, THINNED
from generator.api.feeds import FEED_NAMES
from generator.config.settings import Config

#: What every key begins with.
ROOT: Final = f"{API_VERSION}/"
_FEED_TYPES: Final = ("atom", "json")
#: The folders of a Parquet table's files.
_PARTITIONS: Final = "state=(?:archive/month=[0-9]{4}-[0-9]{2}|open/part=[0-9]{2})"
_PERIODS: Final = "period=[0-9]{4}(?:-[0-9]{2})?"


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


def pattern(config: Config) -> str:
    """A regular expression for the paths of all files below the API's root, without anchors; none if it is empty.

    nginx, JavaScript and Python read it alike.
    """
    name, found = f"[0-9a-f]{{{NAME_LENGTH}}}[.]", []
    if config.dumps.ndjson:
        ends = _any_of([NDJSON, *([PARQUET] if config.has_parquet else [])]).replace(".", "[.]")
        found.append(f"{keys.DUMPS}/{MARKETS_FOLDER}{name}{ends}")
    if config.has_parquet:
        tables, folders = (TABLES, _PERIODS) if config.has_full_histories else (THINNED, _PARTITIONS)
        found.append(f"{keys.DUMPS}/{_any_of(tables)}/{folders}/{name}{PARQUET}")
    if config.has_changes:
        found.append(f"{keys.CHANGES}/{name}{NDJSON}".replace("n.g", "n[.]g"))
    return "|".join(found)


def _any_of(choices: Iterable[str]) -> str:
    return f"(?:{'|'.join(choices)})"


def _name(key: str) -> str:
    return key.removeprefix(ROOT)
