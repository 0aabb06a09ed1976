"""The files of dumps and change feed, as routers know them. What documents there are, `site.families` says. Pure."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from generator.api import file_names, keys
from generator.api.downloads import MARKETS_FOLDER, NDJSON, PARQUET, tables
from generator.api.file_names import SHAPES_OF_TABLE
from generator.config.settings import Config
from generator.site.family import ROOT


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
    return Shapes(whole, root, tables(fills=config.has_fills) if config.has_parquet else (), SHAPES_OF_TABLE)


def pattern(config: Config) -> str:
    """A regular expression for the files of downloads, without anchors and groups; nginx's and Python's."""
    return "|".join(file_names.expression(shape) for shape in shapes(config).all())


def _name(key: str) -> str:
    return key.removeprefix(ROOT)
