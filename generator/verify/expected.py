"""What each answer must be: the site that the maker makes of the published dump, in memory."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.changes import ChangesHead
from generator.api.contract import PublicMarketList
from generator.api.downloads import DumpFile, DumpHead
from generator.config.settings import Config
from generator.downloads import dump, market_lines
from generator.errors import VerifyError
from generator.search import words
from generator.site import documents, site_index
from generator.site.catalog import Catalog
from generator.site.families import FAMILIES
from generator.site.site_index import BuildRecord, SiteIndex
from generator.tree import layouts
from generator.tree.generation import ItemList
from generator.verify import expected_questions
from generator.verify.expected_questions import NO_QUESTIONS, ExpectedQuestions, FoundQuestions, is_question
from generator.verify.reader import SiteAnswer, SiteReader
from generator.verify.spooled_body import LONGEST_TEXT, SpooledBody

_Model = TypeVar("_Model", bound=BaseModel)

#: How often a site is read that changes while it is read, or whose copies are of several builds.
_ATTEMPTS: Final = 4
#: Words of fewer letters are found only as they stand.
_FOUND_BY_BEGINNING: Final = 3
#: What no list tells of a market.
_UNLISTED: Final = {
    "description": None, "poolYes": 0, "poolNo": 0, "tradingPauseReason": None, "fxFamilyMember": None,
}  # fmt: skip
#: The text that lists show, which a search finds markets by.
_LISTED_TEXTS: Final = ["title"]


@dataclass(frozen=True)
class ExpectedSite:
    """A site at one instant: what its build says, and what is believed of its markets.

    That is the `dump`, or a walk through all markets where there is none. `markets` are its objects by id, as on the
    wire. The `catalog` has no members of FX families, as neither a dump nor a list has them. `offers` is what the site
    says that it publishes, and `changes` the head of its change feed, if it has one.
    """

    build: BuildRecord
    offers: SiteIndex
    dump: DumpHead | None
    changes: ChangesHead | None
    catalog: Catalog
    markets: Mapping[str, Mapping[str, Any]] = field(repr=False)
    found_questions: FoundQuestions = NO_QUESTIONS
    _generations: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def basis(self) -> str:
        """What is believed, for people."""
        return "the dump" if self.dump else "the list of all markets"

    @property
    def is_dump_stale(self) -> bool:
        """Whether the change feed leads to a later state than that of the dump: then the dump is an old copy."""
        both = self.dump and self.changes
        return bool(both) and self._is_torn and self.changes.as_of > self.dump.as_of  # type: ignore[union-attr]

    @property
    def is_of_one_build(self) -> bool:
        """Whether what was read can be of one build: caches keep a copy of each object for itself."""
        return not self._is_torn and (self.dump is None or self.dump.as_of <= self.build.as_of)

    @property
    def _is_torn(self) -> bool:
        return bool(self.dump and self.changes and self.dump.state != self.changes.state)

    @property
    def questions(self) -> ExpectedQuestions | None:
        """What must be answered of questions; None where there are none, or nobody can tell."""
        return self.found_questions.questions

    @cached_property
    def lists(self) -> Mapping[str, Sequence[bytes]]:
        """The items of every list, by its name."""
        names = {category.slug: category.name for category in self.build.categories or ()}
        found = documents.lists(self.catalog, names)
        if self.questions and self.offers.questions:
            found += documents.question_lists(self.questions.made, names, None)
        return {one.name: one.items for one in found}

    @cached_property
    def settings(self) -> Config:
        """The settings of the site that the form of its answers depends on, all of which it tells."""
        return Config.model_validate({
            "variant": self.build.variant,
            "search": "title" if self.build.search else "off",
            "prices_file": self.offers.prices is not None,
            "history": {"public": self.offers.history is not None},
            "dumps": {
                "ndjson": self.offers.dumps is not None,
                "parquet": bool(self.dump and self.dump.parquet),
                "fills": bool(self.dump and self.dump.has_fills),
            },
            "license": self.offers.license,
            "publisher": dict(self.offers.publisher or ()),
            "changes": {"enabled": self.offers.changes is not None},
            "feeds": {"enabled": self.offers.feeds is not None},
            "questions": {"enabled": self.has_questions, "lists": self.offers.questions is not None},
        })  # fmt: skip

    @property
    def has_questions(self) -> bool:
        """Whether anything tells that the site has questions."""
        told = (self.dump and self.dump.questions, self.build.questions, self.offers.questions)
        return any(one is not None for one in told)

    def shows(self, shown_id: str) -> bool:
        """Whether a market or a question is published."""
        return shown_id in self.markets or (self.questions is not None and shown_id in self.questions.ids)

    def named(self, shown_id: str) -> str:
        """A market or question, for people."""
        is_question = self.questions is not None and shown_id in self.questions.present
        return f"{'question' if is_question else 'market'} {shown_id}"

    def unpublished(self, shown: Mapping[str, Any]) -> str | None:
        """The market or question, for people, that an item of a list shows and that is not published; None if none."""
        if not self.shows(shown["id"]):
            return f"{'question' if is_question(shown) else 'market'} {shown['id']}"
        return next((f"market {one['id']}" for one in shown.get("markets", ()) if one["id"] not in self.markets), None)

    def generation(self, name: str) -> str:
        """The name of the generation of a list, which its content makes."""
        if name not in self._generations:
            self._generations[name] = layouts.make(self.build.layout, ItemList(name, self.lists[name])).name
        return self._generations[name]

    def found(self, name: str, q: str) -> list[bytes]:
        """The items of a list that a search finds, in its order."""
        wanted = words.of_text(q)
        holders = {market.body for market in self.catalog.listed() if _has(market.words, wanted)}
        return [item for item in self.lists.get(name, ()) if item in holders]


def read(reader: SiteReader, patience_s: float) -> ExpectedSite:
    """Read what is needed to tell what the site must answer.

    For so many seconds at most, wait for copies of several builds to expire. Raises VerifyError for a site that is none
    of ours, and for a dump that is damaged.
    """
    failed = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(patience_s / (_ATTEMPTS - 1))
        build = build_of(reader)
        head = _dump(reader)
        changes = _changes(reader) if head else None
        answer, content = reader.file(head.ndjson.key, head.ndjson.size) if head else (None, None)
        # Whether one build made all of them: the dump's own as-of is that of the last one that changed a market.
        if answer and answer.status != HTTPStatus.OK:
            failed = f"{answer.target} is answered {answer.status}"
        elif build_of(reader) != build:
            failed = "it changes all the time"
        else:
            lines = _lines(head, answer.target, content) if head and answer and content else _walked(reader)
            site = _expected(reader, build, head, changes, lines)
            if site.is_of_one_build or attempt == _ATTEMPTS - 1:
                return site
            failed = "its build and its dump are of several builds"
    raise VerifyError(f"{reader.url}: its dump cannot be read: {failed}; look at {keys.head(keys.DUMPS)}, or try later")


def build_of(reader: SiteReader) -> BuildRecord:
    """What the site says of its build. Raises VerifyError for a site that is none of ours."""
    return _parsed(reader.get(keys.BUILD), BuildRecord)


def _dump(reader: SiteReader) -> DumpHead | None:
    """The head of the dump; None if the site has none."""
    answer = reader.get(keys.head(keys.DUMPS))
    return None if answer.status == HTTPStatus.NOT_FOUND else _parsed(answer, DumpHead)


def _changes(reader: SiteReader) -> ChangesHead | None:
    """The head of the change feed; None if the site has none, or one that cannot be read, of which a check tells."""
    return ChangesHead.found_by(lambda key: reader.get(key).body)


def _lines(head: DumpHead, target: str, content: SpooledBody) -> list[bytes]:
    """The lines of the dump."""
    if not is_file(head.ndjson, content):
        raise VerifyError(
            f"{target}: is not the file that the head of the dump names, whose digest is {head.ndjson.sha256}; "
            "purge it from the CDN, and run `public-markets publish --verify`"
        )
    digest, lines, length = hashlib.sha256(), list[bytes](), 0
    try:
        for line in islice(dump.lines(content.pieces()), head.count + 1):
            length += len(line)
            if length > LONGEST_TEXT:
                raise VerifyError(f"{target}: has more text than the 2 GB that `verify` holds; use --contract")
            UUID(market_lines.id_of(line))  # others are not worth the memory
            lines.append(line)
            digest.update(line + b"\n")
    except ValueError as error:
        raise VerifyError(f"{target}: is damaged ({error}); publish it again") from error
    if (len(lines), digest.hexdigest()) != (head.count, head.state):
        raise VerifyError(f"{target}: has other markets than the head of the dump says; publish it again")
    return lines


def is_file(file: DumpFile, content: SpooledBody) -> bool:
    """Whether this is the content of a file that a head names."""
    return (content.sha256, content.size) == (file.sha256, file.size)


def _walked(reader: SiteReader) -> list[bytes]:
    """Lines such as those of a dump, of a walk through all markets; what lists do not tell is made up."""
    items, ids, cursor, length = list[dict[str, Any]](), set[str](), dict[str, str](), 0
    while True:
        asked = {"status": "all", "sort": "new", "limit": contract.LIMIT_MAX, **cursor}
        answer = reader.get(keys.MARKETS, asked)
        page = _parsed(answer, PublicMarketList)
        items += from_json(answer.body)["items"]
        ids |= {item.id for item in page.items}
        length += len(answer.body)
        if length > LONGEST_TEXT:
            raise VerifyError(f"{answer.target}: has more text than the 2 GB that `verify` holds; use --contract")
        if len(ids) < len(items) or (page.next_cursor is not None and not page.items):
            raise VerifyError(f"{answer.target}: the walk through all markets does not go on from here")
        if page.next_cursor is None:
            break
        cursor = {"cursor": page.next_cursor}
    return [json.dumps({**item, **_UNLISTED}, ensure_ascii=False).encode() for item in items]


def _expected(
    reader: SiteReader, build: BuildRecord, head: DumpHead | None, changes: ChangesHead | None, lines: Sequence[bytes]
) -> ExpectedSite:
    texts = build.search or []
    if head is None and texts != _LISTED_TEXTS:
        texts = []  # no list has the descriptions
    as_of = max(build.as_of, head.as_of) if head else build.as_of
    try:
        catalog = Catalog.published(lines, texts, as_of)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise VerifyError(f"{reader.url}: a market breaks the contract ({where}: {fault['msg']})") from error
    except KeyError as error:
        raise VerifyError(f"{keys.BUILD}: names the text {error} that searches look at, which there is not") from error
    markets = {market["id"]: market for market in map(from_json, lines)}
    if head is None:
        for market in markets.values():
            for name in _UNLISTED:
                del market[name]
    offers = _parsed(reader.get(f"{contract.API_VERSION}/"), site_index.model(FAMILIES))
    questions = NO_QUESTIONS
    defined = head.questions if head else None
    if defined or (head is None and offers.questions):
        questions = expected_questions.read(reader, defined, catalog, build.variant)
    return ExpectedSite(build, offers, head, changes, catalog, markets, questions)


def _parsed(answer: SiteAnswer, model: type[_Model]) -> _Model:
    if answer.status == HTTPStatus.OK:
        try:
            found = model.model_validate_json(answer.body, by_alias=True, by_name=False)
        except ValidationError:
            found = None
        if found is not None and not (isinstance(found, DumpHead) and not found.markets):
            return found
    place = answer.headers.get("location")
    led = f", which leads to {place!a}; verify that address" if place else ""
    raise VerifyError(
        f"{answer.target}: is not what this version publishes there ({answer.status}{led}); if the site is another's, "
        "or of an earlier version, it cannot be compared with its dump"
    )


def _has(known: Sequence[str], wanted: set[str]) -> bool:
    return all(
        any(word.startswith(start) for word in known) if len(start) >= _FOUND_BY_BEGINNING else start in known
        for start in wanted
    )
