"""What each answer must be: the site that the maker makes of the published dump, in memory."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from generator.api import keys
from generator.api.downloads import DumpHead
from generator.api.openapi.schemas import BuildRecord
from generator.downloads import dump
from generator.errors import VerifyError
from generator.search import words
from generator.site import documents
from generator.site.catalog import Catalog
from generator.verify.reader import SiteAnswer, SiteReader

_Model = TypeVar("_Model", bound=BaseModel)

#: How often a site is read that changes while it is read.
_ATTEMPTS: Final = 4
#: Words of fewer letters are found only as they stand.
_FOUND_BY_BEGINNING: Final = 3


@dataclass(frozen=True)
class ExpectedSite:
    """A site at one instant: what its build and its dump say.

    The `catalog` has no members of FX families, as the dump has none. `markets` are the parsed objects of the
    dump, by id.
    """

    build: BuildRecord
    dump: DumpHead
    catalog: Catalog
    markets: Mapping[str, Any]

    @cached_property
    def lists(self) -> Mapping[str, Sequence[bytes]]:
        """The items of every list, by its name."""
        names = {category.slug: category.name for category in self.build.categories or ()}
        return {one.name: one.items for one in documents.lists(self.catalog, names)}

    def found(self, name: str, q: str) -> list[bytes]:
        """The items of a list that a search finds, in its order."""
        wanted = words.of_text(q)
        holders = {market.body for market in self.catalog.listed() if _has(market.words, wanted)}
        return [item for item in self.lists[name] if item in holders]


def read(reader: SiteReader) -> ExpectedSite | None:
    """Read what is needed to tell what the site must answer; None if it publishes no dump.

    Raises VerifyError for a site that is none of ours, and for a dump that is damaged.
    """
    for _ in range(_ATTEMPTS):
        build = build_of(reader)
        head_answer = reader.get(keys.head(keys.DUMPS))
        if head_answer.status == HTTPStatus.NOT_FOUND:
            return None
        head = _parsed(head_answer, DumpHead)
        answer = reader.file(head.ndjson.key, head.ndjson.url, head.ndjson.size)
        # Whether one build made all of them: the dump's own as-of is that of the last one that changed a market.
        if answer.status == HTTPStatus.OK and build_of(reader) == build:
            return _expected(build, head, answer)
    raise VerifyError(
        f"{reader.url}: its dump cannot be read ({answer.status} for {answer.target}), or the site changes all the "
        "time; look at the head of the dump, or try later"
    )


def build_of(reader: SiteReader) -> BuildRecord:
    """What the site says of its build. Raises VerifyError for a site that is none of ours."""
    return _parsed(reader.get(keys.BUILD), BuildRecord)


def _expected(build: BuildRecord, head: DumpHead, answer: SiteAnswer) -> ExpectedSite:
    file = head.ndjson
    if (hashlib.sha256(answer.body).hexdigest(), len(answer.body)) != (file.sha256, file.size):
        raise VerifyError(
            f"{answer.target}: is not the file that the head of the dump names, whose digest is {file.sha256}; purge "
            "it from the CDN, and run `public-markets publish --verify`"
        )
    lines = [*dump.lines([answer.body])]
    state = hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    if (len(lines), state) != (head.count, head.state):
        raise VerifyError(f"{answer.target}: has other markets than the head of the dump says; publish it again")
    try:
        catalog = Catalog.published(lines, build.search or (), build.as_of)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise VerifyError(f"{answer.target}: a market breaks the contract ({where}: {fault['msg']})") from error
    return ExpectedSite(build, head, catalog, {market["id"]: market for market in map(from_json, lines)})


def _parsed(answer: SiteAnswer, model: type[_Model]) -> _Model:
    if answer.status == HTTPStatus.OK:
        try:
            return model.model_validate_json(answer.body)
        except ValidationError:
            pass
    raise VerifyError(
        f"{answer.target}: is not what this version publishes there ({answer.status}); if the site is another's, or of "
        "an earlier version, it cannot be compared with its dump"
    )


def _has(known: Sequence[str], wanted: set[str]) -> bool:
    return all(
        any(word.startswith(start) for word in known) if len(start) >= _FOUND_BY_BEGINNING else start in known
        for start in wanted
    )
