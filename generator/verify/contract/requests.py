"""Requests one by one: rows of the table, cursors, errors, HEAD, conditions, methods, and the OpenAPI document."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from generator.api import contract, keys
from generator.api.contract import PublicMarketList
from generator.verify import request_table
from generator.verify.contract import answers
from generator.verify.contract.plans import LIST
from generator.verify.contract.subject import Subject, items_of, parsed_json
from generator.verify.mismatches import Mismatch, Verdict, broken, note, wrong
from generator.verify.reader import SiteAnswer
from generator.verify.request_table import RequestRow

#: Asks, and yields what is wrong with the answers.
ContractCheck = Callable[[Subject], Iterator[Mismatch]]

#: UUIDs of version 4 that no market has.
_MISSING: Final = "b3d5c6f0-1e2a-4c4b-8d9e-0a7f61524338"
_MISSING_TOO: Final = "0d7e4b92-6c1f-4e58-a3b0-95f8d21c7a64"
#: The operations of the contract, as ends of paths: a server's address may have the version.
_ENDS: Final = f"/{keys.MARKETS.removeprefix(contract.API_VERSION + '/')}"
_OPERATIONS: Final = (_ENDS, rf"{_ENDS}/snapshot", rf"{_ENDS}/\{{\w+\}}")
#: Asks for a body as it is.
_PLAIN: Final = "identity"


def all_of(asked: Subject) -> list[ContractCheck]:
    """Everything that is asked beside walks, details and snapshot."""
    hidden = [HiddenCheck(market_id) for market_id in asked.hidden]
    blocks = request_table.for_any_deployment(asked.variant)
    rows = [RowCheck(row, is_habit=block.kind == "habit") for block in blocks for row in block.rows]
    return [defaults, cursors, missing, *hidden, heads, conditions, preflight, document, *rows]


@dataclass(frozen=True, eq=False)
class RowCheck:
    """A row of the table of requests. Of one that `is_habit`, the contract says nothing."""

    row: RequestRow
    is_habit: bool

    def __call__(self, asked: Subject) -> Iterator[Mismatch]:
        """Compare the status, and which parameters a 400 names; yields the worst that is wrong."""
        if asked.market_id is None and "<<" in self.row["request"].replace("<<repeat", ""):
            asked.leave_out("no list shows a market, so no detail was asked for")
            return
        request = request_table.fill(self.row["request"], request_table.market_meanings(asked.market_id or ""))
        method, _, target = request.partition(" ")
        # Lists come in both encodings: walks ask for the other one.
        answer = asked.ask(target, method, _PLAIN if self.row["status"] == HTTPStatus.OK else "gzip")
        offences = [*_row_faults(answer, self.row, method, asked.variant)]
        if self.is_habit:
            offences = [one._replace(verdict=Verdict.NOTE) for one in offences]
        yield from sorted(offences, key=lambda one: -one.verdict)[:1]


def _row_faults(
    answer: SiteAnswer, row: RequestRow, method: str, variant: contract.Variant | None
) -> Iterator[Mismatch]:
    target, invalid = answers.shown(method, answer.target), [name.partition(".")[0] for name in row.get("invalid", ())]
    if answer.status == HTTPStatus.OK and invalid == ["q"] and items_of(answer):
        return  # such words are in no text, so it offers no search
    may_be_slug = invalid == ["marketId"] and variant != "core"
    # What is no UUID may be a slug that no market has, or none at all, which the contract leaves open.
    allowed = {row["status"], *((HTTPStatus.NOT_FOUND,) if may_be_slug else ())}
    if answer.status not in allowed:
        # The contract has no operation but GET, and no word for how others are refused.
        is_refusal = method not in ("GET", "HEAD") and answer.status >= HTTPStatus.MULTIPLE_CHOICES
        yield (note if is_refusal else broken)(target, f"is answered {answer.status}, not {row['status']}")
    yield from answers.faults(answer, method)
    if answer.status == HTTPStatus.BAD_REQUEST and method == "GET" and not answer.flaw:
        named = answers.parameters(answer)
        if may_be_slug and contract.market_parameter("extended") in named:
            return
        yield from (
            broken(target, f"the details of the 400 do not name the parameter {name}")
            for name in sorted({*invalid} - named)
        )


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def defaults(asked: Subject) -> Iterator[Mismatch]:
    """What a request leaves out means the default."""
    for short, whole in (
        ("", "?status=open&sort=popular&limit=20"),
        ("?status=archive", "?status=archive&sort=ended&limit=20"),
        ("?status=all", "?status=all&sort=popular&limit=20"),
    ):
        meant, shown = _ids(asked, whole), _ids(asked, short)
        if None not in (meant, shown) and shown != meant and meant == _ids(asked, whole):
            yield wrong(LIST + short, f"shows other markets than {whole}, which its defaults mean")


def _ids(asked: Subject, query: str) -> list[str] | None:
    """The ids on a page; None if it is none, of which walks tell."""
    page, _ = answers.content(asked.ask(LIST + query), PublicMarketList)
    return page and [item["id"] for item in page["items"]]


def cursors(asked: Subject) -> Iterator[Mismatch]:
    """A cursor belongs to its status and sort. That none can be made up, the contract does not say."""
    if asked.cursor is None:
        asked.leave_out("no list has a second page, so no cursor was used elsewhere")
        return
    altered = ("A" if asked.cursor[0] != "A" else "B") + asked.cursor[1:]
    given, altered = quote(asked.cursor, safe=""), quote(altered, safe="")
    for query, what in (
        (f"status=all&sort=new&cursor={given}", "a cursor of another sort"),
        (f"status=open&sort=popular&cursor={given}", "a cursor of another status"),
        (f"status=all&sort=popular&cursor={altered}", "a cursor that was altered"),
    ):
        answer = asked.ask(f"{LIST}?{query}")
        if answer.status != HTTPStatus.BAD_REQUEST:
            say = note if answer.status == HTTPStatus.OK and altered in query else broken
            yield say(answer.target, f"{what} is answered {answer.status}, not 400")
        elif not answer.flaw and "cursor" not in answers.parameters(answer):
            yield broken(answer.target, f"the details of the 400 for {what} do not name the parameter cursor")
        yield from answers.faults(answer)


# ── markets that are not shown ────────────────────────────────────────────────────────────────────────────────────


def missing(asked: Subject) -> Iterator[Mismatch]:
    """A market that does not exist."""
    answer = asked.ask(f"{LIST}/{_MISSING}")
    if answer.status != HTTPStatus.NOT_FOUND:
        yield broken(answer.target, f"a missing market is answered {answer.status}, not 404")
    yield from answers.faults(answer)


@dataclass(frozen=True)
class HiddenCheck:
    """A market that exists and is not public, by its id."""

    market_id: str

    def __call__(self, asked: Subject) -> Iterator[Mismatch]:
        """Compare its answer with that of a missing market."""
        ids = (self.market_id, _MISSING, _MISSING_TOO)
        hidden, absent, other = (asked.ask(f"{LIST}/{market_id}") for market_id in ids)
        if hidden.status != absent.status:
            text = f"a hidden market is answered {hidden.status}, a missing one {absent.status}, which tells them apart"
            yield broken(hidden.target, text)
        elif _visible(absent) != _visible(other):
            asked.leave_out("no two missing markets have the same answer, so no hidden one was compared with them")
        elif _visible(hidden) != _visible(absent):
            text = "the answer for a hidden market is not that for a missing one: body or type tell them apart"
            yield broken(hidden.target, text)


def _visible(answer: SiteAnswer) -> tuple[bytes, str | None]:
    """What readers see of it, without the id that they asked for, which it may name, in either case."""
    asked_for = re.escape(answer.target.rpartition("/")[2]).encode()
    return re.sub(asked_for, b"", answer.body, flags=re.IGNORECASE), answer.headers.get("content-type")


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def heads(asked: Subject) -> Iterator[Mismatch]:
    """HEAD, if it is answered, is as GET, without the body."""
    for target in (LIST, f"{LIST}/{asked.market_id or _MISSING}", f"{LIST}/{_MISSING}"):
        head, got = asked.ask(target, "HEAD", _PLAIN), asked.ask(target, "GET", _PLAIN)
        shown = answers.shown("HEAD", target)
        if head.body:
            # Who refuses HEAD has no use for connections that are kept.
            say = broken if head.status < HTTPStatus.MULTIPLE_CHOICES else note
            yield say(shown, "the answer to HEAD has a body, which breaks connections that are kept")
        if head.status != got.status:
            yield note(shown, f"is answered {head.status}, and GET {got.status}")
            return
        for name in ("content-type", "etag"):
            one, other = (_strong(answer.headers.get(name)) for answer in (head, got))
            if one != other:
                yield note(shown, f"has the {name} {one!a}, and GET {other!a}")


def conditions(asked: Subject) -> Iterator[Mismatch]:
    """A copy that is still right may be confirmed, and no other."""
    etag = asked.ask(LIST, "GET", _PLAIN).headers.get("etag")
    if etag is None:
        asked.leave_out("lists have no ETag, so no copy could be confirmed")
        return
    strong = _strong(etag)
    for sent, status in (
        (etag, HTTPStatus.NOT_MODIFIED),
        (f"W/{strong}", HTTPStatus.NOT_MODIFIED),
        (f'"of-another-page", {etag}', HTTPStatus.NOT_MODIFIED),
        ('"of-another-page"', HTTPStatus.OK),
    ):
        answer = asked.ask(LIST, "GET", _PLAIN, If_None_Match=sent)
        if answer.status != status:
            tag = "the ETag that it has" if status == HTTPStatus.NOT_MODIFIED else "another ETag than it has"
            text = f"If-None-Match with {tag} ({_form(sent)}) is answered {answer.status}, not {status}"
            yield (note if answer.status == HTTPStatus.OK else broken)(answer.target, text)


def _form(sent: str) -> str:
    return "in a list" if "," in sent else "in the weak form" if sent.startswith("W/") else "as it was given"


def _strong(value: str | None) -> str | None:
    """An entity tag as it compares."""
    return value.removeprefix("W/") if value else value


def preflight(asked: Subject) -> Iterator[Mismatch]:
    """Browsers may ask before they ask."""
    answer = asked.ask(LIST, "OPTIONS", Access_Control_Request_Method="GET")
    if answer.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
        yield note(answers.shown("OPTIONS", LIST), f"is answered {answer.status}, not 204")
    yield from answers.faults(answer, "OPTIONS")


def document(asked: Subject) -> Iterator[Mismatch]:
    """The OpenAPI document, where there is one."""
    answer = asked.document
    described = parsed_json(answer)
    if answer.flaw:
        yield broken(answer.target, answer.flaw)
    elif answer.status != HTTPStatus.OK or not isinstance(described, dict) or "openapi" not in described:
        asked.leave_out(f"there is no OpenAPI document at {answer.target}")  # the contract does not say where it is
    else:
        yield from (broken(answer.target, text) for text in _document_faults(described))


def _document_faults(described: Mapping[str, Any]) -> Iterator[str]:
    if not str(described.get("openapi")).startswith("3.1."):
        yield f"is an OpenAPI document of version {described.get('openapi')!a}, not 3.1"
    paths = described.get("paths")
    if not isinstance(paths, dict):
        yield "the OpenAPI document has no paths"
        return
    for operation in _OPERATIONS:
        found = [path for path in paths if re.fullmatch(f".*{operation}", path)]
        if not any(isinstance(paths[path], dict) and "get" in paths[path] for path in found):
            yield f"the OpenAPI document does not describe GET {operation}".replace("\\", "")


# ── refusals that were met ────────────────────────────────────────────────────────────────────────────────────────


def refusals(met: list[SiteAnswer]) -> Iterator[Mismatch]:
    """The answers 429, which nobody provoked."""
    for answer in met:
        yield from answers.faults(answer)
        pause = answer.headers.get("retry-after", "0")
        if not pause.isdecimal() and answers.date(pause) is None:
            yield note(answer.target, f"the 429 has the Retry-After {pause!a}, neither seconds nor a date")
