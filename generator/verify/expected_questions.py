"""What must be answered of questions: made of the markets, and of which of them belong to which question.

That is believed of the definitions beside the dump, as the dump is of markets. Where there is none, it is believed of
the rows of all questions, whose values must be those of the markets all the same.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.contract import Variant
from generator.api.downloads import Definitions
from generator.api.questions import SHOWN_MARKETS, SINGLE, QuestionDetail, QuestionList
from generator.downloads import dump
from generator.site import questions
from generator.site.catalog import Catalog
from generator.site.questions import QuestionRows, ShownQuestion
from generator.verify.earlier_states import PresentQuestion
from generator.verify.mismatches import Mismatch, no_answer, not_ok, parsed, wrong
from generator.verify.reader import NoAnswerError, SiteReader
from generator.verify.spooled_body import LONGEST_TEXT


@dataclass(frozen=True)
class ExpectedQuestions:
    """The rows and details of all questions, which the `lines` of definitions lead to."""

    made: QuestionRows = field(repr=False)
    lines: Sequence[bytes] = field(repr=False)

    @cached_property
    def ids(self) -> set[str]:
        """The ids of all rows: of questions, and of markets that are in none."""
        return {row.id for row in self.made.listed()}

    @cached_property
    def present(self) -> Mapping[str, PresentQuestion]:
        """The questions by id, without the markets that stand alone."""
        return {shown.question.id: _present(shown) for shown in self.made.questions}

    @property
    def walked(self) -> int:
        """How many requests it takes to gather them: pages of rows, and details of rows that do not show all."""
        pages = -(-len(self.made.listed()) // contract.LIMIT_MAX)
        return pages + sum(len(shown.members) > SHOWN_MARKETS for shown in self.made.questions)

    @cached_property
    def details(self) -> Mapping[str, bytes]:
        """The details of questions by id, as on the wire."""
        return {one.id: one.body for one in self.made.details()}


def is_question(item: Mapping[str, Any]) -> bool:
    """Whether an item of a list is the row of a question, not that of a market."""
    return bool(item.get("kind", SINGLE) != SINGLE)


def _present(shown: ShownQuestion) -> PresentQuestion:
    return PresentQuestion(from_json(shown.row.body), {one.market.id: one.label for one in shown.members})


class FoundQuestions(NamedTuple):
    """What a site tells of questions, None if it has none or cannot be believed; and what is wrong with it."""

    questions: ExpectedQuestions | None
    flaws: Sequence[Mismatch] = ()


NO_QUESTIONS: Final = FoundQuestions(None)


class _FlawError(Exception):
    """Nothing of questions can be believed."""

    def __init__(self, *flaws: Mismatch) -> None:
        super().__init__(*flaws)
        self.flaws = flaws


def read(reader: SiteReader, head: Definitions | None, catalog: Catalog, variant: Variant) -> FoundQuestions:
    """The questions of the definitions that the head of the dump names; without, those that rows show."""
    try:
        target, lines = _gathered(reader, catalog) if head is None else _published(reader, head)
        return FoundQuestions(ExpectedQuestions(_made(target, lines, catalog, variant), lines))
    except _FlawError as error:
        return FoundQuestions(None, error.flaws)
    except NoAnswerError as error:
        return FoundQuestions(None, [no_answer(error)])


def _made(target: str, lines: Sequence[bytes], catalog: Catalog, variant: Variant) -> QuestionRows:
    """What follows from definitions that were found there."""
    try:
        found = questions.published(lines)
        _require_sense(target, [_Row(one.id, [member.market_id for member in one.members]) for one in found], catalog)
        return QuestionRows(catalog, found, variant)
    except ValueError as error:
        raise _FlawError(wrong(target, f"has what is no definition ({error!s:.200})")) from error


def _published(reader: SiteReader, head: Definitions) -> tuple[str, list[bytes]]:
    """Where the definitions are, and their lines."""
    answer, content = reader.file(head.ndjson.key, head.ndjson.size)
    if answer.status != HTTPStatus.OK:
        raise _FlawError(not_ok(answer))
    if (content.sha256, content.size) != (head.ndjson.sha256, head.ndjson.size):
        raise _FlawError(wrong(answer.target, "is not the file that the head of the dump names"))
    lines, digest, length = list[bytes](), hashlib.sha256(), 0
    try:
        for line in islice(dump.lines(content.pieces()), head.count + 1):
            length += len(line)
            if length > LONGEST_TEXT:
                raise _FlawError(wrong(answer.target, "has more text than the 2 GB that `verify` holds"))
            lines.append(line)
            digest.update(line + b"\n")
    except ValueError as error:
        raise _FlawError(wrong(answer.target, f"is damaged ({error!s:.200})")) from error
    if (len(lines), digest.hexdigest()) != (head.count, head.state):
        raise _FlawError(wrong(answer.target, "has other questions than the head of the dump says"))
    return answer.target, lines


def _gathered(reader: SiteReader, catalog: Catalog) -> tuple[str, list[bytes]]:
    """Definitions such as rows can follow from, of a walk through all, and of details of those that do not show all."""
    rows, lines, cursor = list[_Row](), list[bytes](), dict[str, str]()
    while True:
        answer = reader.get(keys.QUESTIONS, {"status": "all", "sort": "new", "limit": contract.LIMIT_MAX, **cursor})
        page, flaws = parsed(answer, QuestionList)
        if page is None:
            raise _FlawError(*flaws)
        for row in from_json(answer.body)["items"]:
            has_all = row["size"] <= len(row["markets"])
            members = row["markets"] if has_all else _all_members(reader, row["id"])
            rows.append(_Row(row["id"], [one["id"] for one in members]))
            if is_question(row):
                lines.append(_line(row, members))
        if page.next_cursor is None:
            break
        if not page.items or len(rows) > len(catalog.listed()):
            raise _FlawError(wrong(answer.target, "leads on, though no market can follow"))
        cursor = {"cursor": page.next_cursor}
    _require_sense(f"/{keys.QUESTIONS}", rows, catalog, are_all=True)
    return f"/{keys.QUESTIONS}", sorted(lines)


def _all_members(reader: SiteReader, question_id: str) -> list[Mapping[str, Any]]:
    """All markets of a question, by its detail."""
    answer = reader.get(f"{keys.QUESTIONS}/{question_id}")
    detail, flaws = parsed(answer, QuestionDetail)
    if detail is None:
        raise _FlawError(*flaws)
    return [{"id": one["market"]["id"], "label": one["label"]} for one in from_json(answer.body)["markets"]]


def _line(row: Mapping[str, Any], members: Sequence[Mapping[str, Any]]) -> bytes:
    """A definition that the row can follow from: by these positions, equal markets are in the order that is shown."""
    told = {name: row[name] for name in ("id", "kind", "slug", "title", "createdAt") if name in row}
    defined = [
        {"id": one["id"], "label": one["label"], "position": place, "payout": None} for place, one in enumerate(members)
    ]
    return contract.encode({**told, "description": None, "members": defined})


class _Row(NamedTuple):
    """The id of a question, or of a market that stands alone, and the ids of its markets."""

    id: str
    markets: Sequence[str]


def _require_sense(target: str, rows: Iterable[_Row], catalog: Catalog, *, are_all: bool = False) -> None:
    """Raise _FlawError for what no rows can have, or not `are_all` there are."""
    flaws = [wrong(target, text) for text in _contradictions(rows, catalog, are_all=are_all)]
    if flaws:
        raise _FlawError(*flaws)


def _contradictions(rows: Iterable[_Row], catalog: Catalog, *, are_all: bool) -> Iterator[str]:
    """A market in two rows, or in none if these `are_all`; a row of a market that no list shows."""
    listed, owners, before = {market.id for market in catalog.listed()}, dict[str, str](), ""
    for row in rows:
        if not are_all and row.id <= before:
            yield f"has question {row.id} after {before}, which is not the order of their ids"
        before = row.id
        if row.id in listed and not (are_all and [row.id] == row.markets):
            yield f"has question {row.id}, and a market has the same id"
        for market_id in row.markets:
            if market_id not in listed:
                yield f"has market {market_id} in question {row.id}, and no list of markets shows it"
            elif market_id in owners:
                yield f"has market {market_id} in two rows, {owners[market_id]} and {row.id}"
            owners[market_id] = row.id
    missing = min(listed - owners.keys(), default=None) if are_all else None
    if missing:
        yield f"has market {missing} in no row, though the list of all markets shows it"
