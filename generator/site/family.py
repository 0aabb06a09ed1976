"""What a row of the table of families says of one kind of object. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.api.downloads import DumpHead, PeriodFile
from generator.config.settings import Config
from generator.site.catalog import Catalog
from generator.site.questions import QuestionRows
from generator.tree.generation import Artifact

#: Reads the rows of files of tables: for each row a tuple of these columns.
ReadRows: TypeAlias = Callable[[Sequence[PeriodFile], Sequence[str]], Iterable[tuple[Any, ...]]]

#: What every key begins with.
ROOT: Final = f"{API_VERSION}/"
#: What varies in the keys of a family.
_VARIABLE: Final = re.compile(r"<[^<>]+>")


class Rank(IntEnum):
    """Publication order of mutable objects. What they lead to is immutable, and is in place before any of them.

    A takedown after a killed run makes every list from the dump that is in place, so no list may be ahead of it.
    """

    DETAIL = 0
    DOCUMENT = 1
    DUMP = 2
    HEAD = 3
    BUILD = 4


@dataclass(frozen=True)
class Ingredients:
    """What documents are made of: a catalog, the items of a list by its name, the settings, and what is in place.

    `read` reads a document in place. `questions` are None where there is no such resource. `dump` is the head of the
    dump, where there is one and it is made already, and `rows` reads its files of tables, unless they are damaged.
    """

    catalog: Catalog
    items_of: Callable[[str], Sequence[bytes]]
    config: Config
    read: Callable[[str], bytes | None]
    questions: QuestionRows | None = None
    dump: DumpHead | None = None
    rows: ReadRows | None = None


@dataclass(frozen=True)
class Family:
    """One kind of object under `v1/`.

    name           also that of its address in the index of the site
    keys           of the objects that change; what varies stands in angle brackets
    immutable      of the objects that these lead to, which never change
    rank           when it is published
    sentence       what readers find there, and what the extended variant adds (`in_extended`)
    schema         of its JSON; None if OpenAPI describes it in its own words, or it is not JSON
    address        its path below the API's root, if that is not its key; a family whose keys vary, or that is not
                   `is_addressed`, is no document: the router's grammar leads to it, or nothing does
    is_on          whether a site with these settings has it
    may_be_absent  whether a site that has it may lack an object of it: to readers that is a 404, else a fault (503)
    of_markets     makes it of the catalog, in builds and takedowns
    of_dump        makes it of catalog and dump, in builds and takedowns
    of_settings    makes it of settings alone, in builds; takedowns leave it as it is
    """

    name: str
    keys: tuple[str, ...]
    rank: Rank
    sentence: str
    _: KW_ONLY
    schema: type[BaseModel] | None = None
    immutable: tuple[str, ...] = ()
    address: str | None = None
    is_addressed: bool = True
    is_on: Callable[[Config], bool] = lambda _: True
    may_be_absent: bool = False
    of_markets: Callable[[Ingredients], Iterable[Artifact]] | None = None
    of_dump: Callable[[Ingredients], Iterable[Artifact]] | None = None
    of_settings: Callable[[Config, Sequence["Family"]], Iterable[Artifact]] | None = None
    in_extended: str = ""

    @property
    def tag(self) -> str:
        """The group of its operations in OpenAPI."""
        return "build" if self.of_settings else "markets"

    @property
    def media_type(self) -> str:
        """The Content-Type of what changes."""
        return keys.content_type(self.keys[0])

    @property
    def cache(self) -> str:
        """The Cache-Control of what changes."""
        return keys.headers(self.keys[0])["Cache-Control"]

    @property
    def is_varied(self) -> bool:
        """Whether there may be any number of objects that change."""
        return any(map(_VARIABLE.search, self.keys))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What matches the keys of what changes."""
        return _pattern(self.keys)

    @cached_property
    def immutable_pattern(self) -> re.Pattern[str]:
        """What matches the keys of what never changes."""
        return _pattern(self.immutable)

    @property
    def path(self) -> str | None:
        """The path of its only document below the API's root; None if it has none, or several."""
        return next(iter(self.documents)) if len(self.documents) == 1 else None

    def told(self, config: Config) -> str:
        """What readers find there, of a site with these settings."""
        return self.sentence + (self.in_extended if config.variant == "extended" else "")

    @property
    def documents(self) -> Mapping[str, str]:
        """The key of each document by its path below the API's root."""
        if not self.is_addressed or self.is_varied:
            return {}
        if self.address is not None:
            return {self.address: self.keys[0]}
        return {key.removeprefix(ROOT): key for key in self.keys}


def _pattern(shapes: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(_VARIABLE.sub("[^/]+", shape.replace(".", r"\.")) for shape in shapes), re.ASCII)
