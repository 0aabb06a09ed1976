"""Requests one by one: rows of the table, cursors, errors, HEAD, conditions, methods, and the OpenAPI document."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from generator.api import contract, keys
from generator.api.contract import PublicMarketList
from generator.verify import request_table
from generator.verify.contract import answers
from generator.verify.contract.subject import LIST, Subject, broken, parsed_json, wrong
from generator.verify.mismatches import Mismatch
from generator.verify.reader import SiteAnswer
from generator.verify.request_table import RequestRow

#: Asks, and yields what is wrong with the answers.
ContractCheck = Callable[[Subject], Iterator[Mismatch]]

#: A UUID of version 4 that no market has.
_MISSING: Final = "b3d5c6f0-1e2a-4c4b-8d9e-0a7f61524338"
#: Characters of a target that no server needs to read, and what it may say to that.
_TOO_LONG: Final = 8_200
_REFUSES_LONG: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_URI_TOO_LONG,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
)
#: The operations of the contract, as ends of paths: a server's address may have the version.
_ENDS: Final = f"/{keys.MARKETS.removeprefix(contract.API_VERSION + '/')}"
_OPERATIONS: Final = (_ENDS, rf"{_ENDS}/snapshot", rf"{_ENDS}/\{{\w+\}}")


def all_of(asked: Subject) -> list[ContractCheck]:
    """Everything that is asked beside walks, details and snapshot."""
    hidden = [HiddenCheck(market_id) for market_id in asked.hidden]
    rows = [RowCheck(row) for row in request_table.of_any_deployment(asked.variant)]
    return [defaults, cursors, missing, *hidden, heads, conditions, preflight, long_target, document, *rows]


@dataclass(frozen=True, eq=False)
class RowCheck:
    """A row of the table of requests."""

    row: RequestRow

    def __call__(self, asked: Subject) -> Iterator[Mismatch]:
        """Compare the status, and which parameters a 400 names."""
        if asked.market_id is None and "<<" in self.row["request"].replace("<<repeat", ""):
            asked.leave_out("no list shows a market, so no detail was asked for")
            return
        request = request_table.fill(self.row["request"], request_table.market_meanings(asked.market_id or ""))
        method, _, target = request.partition(" ")
        answer = asked.ask(target, method)
        shown = f"{method} {target}" if method != "GET" else target
        faults = _row_faults(answer, self.row, method, asked.variant)
        yield from (broken(shown, text) for text in islice(faults, 1))


def _row_faults(answer: SiteAnswer, row: RequestRow, method: str, variant: contract.Variant) -> Iterator[str]:
    invalid = [name.partition(".")[0] for name in row.get("invalid", ())]
    is_reference = invalid == ["marketId"]
    # What is no UUID may be a slug that no market has, or none at all, which the contract leaves open.
    allowed = {row["status"], *((HTTPStatus.NOT_FOUND,) if is_reference and variant == "extended" else ())}
    if answer.status not in allowed:
        yield f"is answered {answer.status}, not {row['status']}"
    yield from answers.faults(answer, method)
    if answer.status == HTTPStatus.BAD_REQUEST and method != "HEAD":
        wanted = {contract.market_parameter(variant) if name == "marketId" else name for name in invalid}
        lacking = wanted - answers.parameters(answer)
        yield from (f"the details of the 400 do not name the parameter {name}" for name in sorted(lacking))


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def defaults(asked: Subject) -> Iterator[Mismatch]:
    """What a request leaves out means the default."""
    for short, whole in (
        ("", "?status=open&sort=popular&limit=20"),
        ("?status=archive", "?status=archive&sort=ended&limit=20"),
        ("?status=all", "?status=all&sort=popular&limit=20"),
    ):
        pages = [answers.content(asked.ask(LIST + query), PublicMarketList)[0] for query in (short, whole)]
        shown, meant = ([item["id"] for item in page["items"]] if page else [] for page in pages)
        if shown != meant:
            yield wrong(LIST + short, f"shows other markets than {whole}, which its defaults mean")


def cursors(asked: Subject) -> Iterator[Mismatch]:
    """A cursor belongs to its status and sort, and none can be made up."""
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
            yield broken(answer.target, f"{what} is answered {answer.status}, not 400")
        elif "cursor" not in answers.parameters(answer):
            yield broken(answer.target, f"the details of the 400 for {what} do not name the parameter cursor")
        yield from (broken(answer.target, text) for text in answers.faults(answer))


# ── markets that are not shown ────────────────────────────────────────────────────────────────────────────────────


def missing(asked: Subject) -> Iterator[Mismatch]:
    """A market that does not exist."""
    answer = asked.ask(f"{LIST}/{_MISSING}")
    if answer.status != HTTPStatus.NOT_FOUND:
        yield broken(answer.target, f"a missing market is answered {answer.status}, not 404")
    yield from (broken(answer.target, text) for text in answers.faults(answer))


@dataclass(frozen=True)
class HiddenCheck:
    """A market that exists and is not public, by its id."""

    market_id: str

    def __call__(self, asked: Subject) -> Iterator[Mismatch]:
        """Compare its answer with that of a missing market."""
        hidden, absent = (asked.ask(f"{LIST}/{market_id}") for market_id in (self.market_id, _MISSING))
        if hidden.status != absent.status:
            text = f"a hidden market is answered {hidden.status}, a missing one {absent.status}, which tells them apart"
            yield broken(hidden.target, text)
        elif _visible(hidden) != _visible(absent):
            text = "the answer for a hidden market is not that for a missing one: body or type tell them apart"
            yield broken(hidden.target, text)


def _visible(answer: SiteAnswer) -> tuple[bytes, str | None]:
    return answer.body, answer.headers.get("content-type")


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def heads(asked: Subject) -> Iterator[Mismatch]:
    """HEAD is answered as GET, without the body."""
    for target in (LIST, f"{LIST}/{asked.market_id or _MISSING}", f"{LIST}/{_MISSING}"):
        head, got = asked.ask(target, "HEAD"), asked.ask(target)
        shown = f"HEAD {target}"
        if head.body:
            yield broken(shown, "the answer to HEAD has a body, which breaks connections that are kept")
        if head.status != got.status:
            yield broken(shown, f"is answered {head.status}, and GET {got.status}")
        for name in ("content-type", "etag"):
            one, other = (_strong(answer.headers.get(name)) for answer in (head, got))
            if one != other:
                yield broken(shown, f"has the {name} {one!a}, and GET {other!a}")


def conditions(asked: Subject) -> Iterator[Mismatch]:
    """A copy that is still right is confirmed, and no other."""
    etag = asked.ask(LIST).headers.get("etag")
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
        answer = asked.ask(LIST, If_None_Match=sent)
        if answer.status != status:
            tag = "the ETag that it has" if status == HTTPStatus.NOT_MODIFIED else "another ETag than it has"
            yield broken(
                answer.target, f"If-None-Match with {tag} ({_form(sent)}) is answered {answer.status}, not {status}"
            )


def _form(sent: str) -> str:
    return "in a list" if "," in sent else "in the weak form" if sent.startswith("W/") else "as it was given"


def _strong(value: str | None) -> str | None:
    """An entity tag as it compares."""
    return value.removeprefix("W/") if value else value


def preflight(asked: Subject) -> Iterator[Mismatch]:
    """Browsers may ask before they ask."""
    asks = {"Access_Control_Request_Method": "GET"}
    answer = asked.ask(LIST, "OPTIONS", **asks)
    if answer.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
        yield broken(f"OPTIONS {LIST}", f"is answered {answer.status}, not 204")
    yield from (broken(f"OPTIONS {LIST}", text) for text in answers.faults(answer))


def long_target(asked: Subject) -> Iterator[Mismatch]:
    """A target that is too long is refused, not cut off."""
    answer = asked.ask(f"{LIST}?x={'x' * _TOO_LONG}")
    if answer.status not in _REFUSES_LONG:
        yield broken(f"{LIST}?x=…", f"a query of {_TOO_LONG} characters is answered {answer.status}, not 414 or 400")


def document(asked: Subject) -> Iterator[Mismatch]:
    """The OpenAPI document, where there is one."""
    answer = asked.document
    if answer.status != HTTPStatus.OK:
        asked.leave_out(f"there is no OpenAPI document at {answer.target}")
        return
    described = parsed_json(answer)
    if not isinstance(described, dict):
        yield broken(answer.target, "the OpenAPI document is no JSON object")
        return
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
        yield from (broken(answer.target, text) for text in answers.faults(answer))
        pause = answer.headers.get("retry-after", "0")
        if not pause.isdecimal() and not _is_date(pause):
            yield broken(answer.target, f"the 429 has the Retry-After {pause!a}, neither seconds nor a date")


def _is_date(text: str) -> bool:
    try:
        parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return False
    return True
