"""What is published of questions beside their lists: details, and the definitions that the heads name."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import zip_longest
from typing import Any, BinaryIO, Final, Literal

from pydantic_core import from_json

from generator.api import keys, slugs
from generator.api.columns import URL
from generator.api.downloads import Definitions, DefinitionsFile
from generator.api.questions import QuestionDetail
from generator.downloads import definitions, parquet
from generator.errors import ConfigError
from generator.verify import parquet_file
from generator.verify.expected_questions import ExpectedQuestions
from generator.verify.inquiry import Inquiry, stale, unlike
from generator.verify.mismatches import Mismatch, Verdict, not_ok, parsed, wrong
from generator.verify.reader import SiteAnswer

#: What rows do not tell of a question, and of its markets.
_UNTOLD: Final = frozenset({"description", "position", "payout"})


@dataclass(frozen=True)
class QuestionCheck:
    """The detail of a question `by` its id, by its slug if it has one, or by both."""

    question_id: str
    by: Literal["id", "slug", "both"] = "both"

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare it with what its definition and the items of its markets make it."""
        body = asked.site.questions and asked.site.questions.details.get(self.question_id)
        if not body:
            return
        wanted = from_json(body)
        slug = wanted["question"].get("slug")
        names = {"id": self.question_id, **({"slug": slug} if slug and slugs.can_be_reference(slug) else {})}
        for reference in names.values() if self.by == "both" else [names.get(self.by, self.question_id)]:
            answer = asked.reader.get(f"{keys.QUESTIONS}/{reference}")
            detail, broken = parsed(answer, QuestionDetail)
            yield from broken
            if detail is not None:
                yield from _unlike(asked, answer, from_json(answer.body), wanted)


def _unlike(
    asked: Inquiry, answer: SiteAnswer, shown: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Iterator[Mismatch]:
    gone = next((one for one in map(_market_of, shown["markets"]) if one not in asked.site.markets), None)
    if gone:
        text = f"shows market {gone}, which {asked.site.basis} does not have{answer.age}"
        yield Mismatch(Verdict.WITHDRAWN, answer.target, text)
        return
    if asked.site.dump is None:
        shown, wanted = _as_rows_tell(shown), _as_rows_tell(wanted)
    if shown == wanted:
        return
    since = asked.earlier.since_detail(shown, wanted)
    if since:
        yield stale(asked, answer, since)
    elif shown["question"] != wanted["question"]:
        text = unlike(shown["question"], wanted["question"], asked.site.basis)
        yield wrong(answer.target, f"its question {text}{answer.age}")
    else:
        yield wrong(answer.target, f"{unlike(shown, wanted, asked.site.basis)}{answer.age}")


def _market_of(member: Mapping[str, Any]) -> str:
    return str(member["market"]["id"])


def _as_rows_tell(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    """A detail without what no row tells, such as positions."""
    question, *markets = (
        {name: value for name, value in one.items() if name not in _UNTOLD}
        for one in (detail["question"], *sorted(detail["markets"], key=_market_of))
    )
    return {"question": question, "markets": markets}


@dataclass(frozen=True)
class SingleCheck:
    """A market that is in no question: it is a row, and no question by its id."""

    market_id: str

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare the status."""
        if not asked.site.questions or self.market_id in asked.site.questions.details:
            return
        answer = asked.reader.get(f"{keys.QUESTIONS}/{self.market_id}")
        if answer.status != HTTPStatus.NOT_FOUND:
            yield Mismatch(Verdict.BROKEN, answer.target, f"is answered {answer.status}, not 404: it is no question")


def check_definitions(asked: Inquiry) -> Iterator[Mismatch]:
    """What the heads say of definitions, which cannot contradict each other; and their table."""
    yield from asked.site.found_questions.flaws
    dump, changes = asked.site.dump, asked.site.changes
    if dump is None:
        return
    if changes and changes.state == dump.state:
        yield from _unlike_head(dump.questions, changes.questions)
    found = asked.site.questions
    if found and dump.questions:
        for file in dump.questions.files[1:]:
            yield from _unlike_table(asked, file, found)


def _unlike_head(dump: Definitions | None, changes: Definitions | None) -> Iterator[Mismatch]:
    names = [*Definitions.model_fields]
    if changes and dump and changes.model_dump(include={*names}) == dump.model_dump(include={*names}):
        return
    if changes != dump:  # both are None if a site has no questions
        is_old = bool(changes and dump and changes.as_of < dump.as_of)
        text = "names other definitions of questions than the head of the dump"
        yield Mismatch(Verdict.STALE if is_old else Verdict.WRONG, f"/{keys.head(keys.CHANGES)}", text)


def _unlike_table(asked: Inquiry, file: DefinitionsFile, found: ExpectedQuestions) -> Iterator[Mismatch]:
    """Compare the table with the definitions: whether it is there, and its rows, if there is code to read them."""
    answer, content = asked.reader.file(file.key, file.size)
    if answer.status != HTTPStatus.OK:
        yield not_ok(answer)
        return
    if (content.sha256, content.size) != (file.sha256, file.size):
        yield wrong(answer.target, "is not the file that the head of the dump names")
        return
    variant, made = asked.site.build.variant, io.BytesIO()
    try:
        parquet.require_columns(content.file, parquet.DEFINITIONS, variant, fills=True)
        parquet.definitions(made.write, definitions.encoded(definitions.rows(found.lines)), variant, linked=False)
        for shown, wanted in zip_longest(_rows(content.file), _rows(made), fillvalue=dict[str, Any]()):
            if shown != wanted:
                yield wrong(answer.target, f"a row {unlike(shown, wanted, 'the definition')}")
                return
    except ConfigError:
        return
    except ValueError as error:
        yield parquet_file.unreadable(answer.target, error)


def _rows(file: BinaryIO) -> Iterator[Mapping[str, Any]]:
    """The rows without addresses of pages, as these may be made of keys that nothing published tells."""
    for row in map(from_json, parquet.rows(file)):
        row.pop(URL, None)
        yield row
