"""What there is below the API's root besides markets: documents, and the files of dumps and change feed. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.api.downloads import MARKETS_FOLDER, NAME_LENGTH, NDJSON, PARQUET, TABLES
from generator.api.feeds import FEED_NAMES
from generator.config.settings import Config

#: What every key begins with.
ROOT: Final = f"{API_VERSION}/"
_FEED_TYPES: Final = ("atom", "json")
#: The folders of a Parquet table; `0` stands for any digit.
_PARTITIONS: Final = ("state=archive/month=0000-00", "state=open/part=00")
_PERIODS: Final = ("period=0000", "period=0000-00")


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


def shapes(config: Config) -> list[str]:
    """The paths of all files below the API's root: `0` is any digit, and `*` the digest that names a file."""
    found = []
    if config.dumps.ndjson:
        found.append(f"{keys.DUMPS}/{MARKETS_FOLDER}*.{NDJSON}")
    if config.has_parquet:
        found.append(f"{keys.DUMPS}/{MARKETS_FOLDER}*.{PARQUET}")
        folders = _PERIODS if config.has_full_histories else _PARTITIONS
        found += [f"{keys.DUMPS}/{table}/{one}/*.{PARQUET}" for table in TABLES for one in folders]
    if config.has_changes:
        found.append(f"{keys.CHANGES}/*.{NDJSON}")
    return found


def pattern(config: Config) -> str:
    """A regular expression for the same, without anchors and groups; nginx's and Python's."""
    digits = {"0": "[0-9]", "*": f"[0-9a-f]{{{NAME_LENGTH}}}", ".": r"\."}
    return "|".join("".join(digits.get(letter, letter) for letter in shape) for shape in shapes(config))


def _name(key: str) -> str:
    return key.removeprefix(ROOT)
