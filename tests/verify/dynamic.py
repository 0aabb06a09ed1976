"""A small live server of the read API, as somebody else might run one: right, or wrong in one named way.

It answers every request from rows in memory, and knows nothing of the generator.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, Final, Self, TypeAlias
from urllib.parse import parse_qs

from tests.support.edges.servers import QuietHandler, serving
from tests.verify.rows import Row, demo_rows, instant

#: What one row is sorted by, its id last.
Position: TypeAlias = list[Any]
Headers: TypeAlias = dict[str, str]

#: Where the API is.
ROOT: Final = "/v1/public/markets"
#: What "gap at a page border" steps over: one more than a change may push from one page into the next.
SKIPPED: Final = 2
#: What is allowed on every path.
METHODS: Final = "GET, HEAD, OPTIONS"
#: What an id looks like, in either case.
UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)

#: The statuses that each filter lets through.
STATUSES: Final[Mapping[str, tuple[str, ...]]] = {
    **{status: (status,) for status in ("open", "closed", "resolved", "cancelled")},
    "archive": ("closed", "resolved", "cancelled"), "all": ("open", "closed", "resolved", "cancelled"),
}  # fmt: skip
#: What each sort compares, all descending; ties end with the id ascending.
SORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "popular": ("traderCount", "volume"), "activity": ("lastActivityAt",), "volume": ("volume",),
    "new": ("createdAt",), "ended": ("ended",),
}  # fmt: skip
#: The fields of a market in lists, in its detail, and in the snapshot.
ITEM_FIELDS: Final = (
    "id", "question", "status", "prob", "volume", "closeTime", "resolution", "createdAt", "resolvedAt",
    "lastActivityAt", "traderCount", "fills24h", "acceptingBets",
)  # fmt: skip
DETAIL_FIELDS: Final = (*ITEM_FIELDS, "description", "poolYes", "poolNo", "tradingPauseReason", "fxFamilyMember")
NO_SIGNAL: Final = frozenset({"status", "resolution", "resolvedAt", "acceptingBets"})
SIGNAL_FIELDS: Final = tuple(name for name in ITEM_FIELDS if name not in NO_SIGNAL)
#: What stands beside the market in its detail.
PARTS: Final = ("orderBook", "recentFills", "probHistory")


# ── the server ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Query:
    """What is asked of the list; `position` is that of the last item served before, and None for the first page."""

    status: str
    sort: str
    limit: int
    position: Position | None


@dataclass(frozen=True)
class Answer:
    """What is sent, but for the length."""

    status: int
    body: bytes = b""
    headers: Headers = field(default_factory=dict)
    lost: int = 0  # bytes of the body that are announced and not sent


class InvalidError(Exception):
    """Has a message for each parameter that is not as it must be."""


@dataclass
class Dynamic:
    """The server: a context manager that serves at `url` while it is entered.

    Of a `count` below 2, none is hidden; `fault` is one that test_contract.py names. After `limit_after` requests in
    all, one is refused; every `change_every` requests, the server changes by itself.
    """

    count: int = 120
    fault: str | None = None
    limit_after: int | None = None
    change_every: int | None = None
    as_of: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    requests: int = field(default=0, init=False)
    changes: int = field(default=0, init=False)
    hidden_id: str = field(init=False)
    url: str = field(init=False)
    accepted: str = field(default="", init=False)  # the latest Accept-Encoding

    def __post_init__(self) -> None:
        rows = demo_rows(self.count, as_of=self.as_of)
        self.hidden_id = next((row["id"] for row in rows if not _is_visible(row)), "")
        self._lock = threading.RLock()
        self._cursors: dict[str, tuple[str, str, Position | None]] = {}
        self._now = [row | {"ended": row["resolvedAt"] or row["closeTime"]} for row in rows]
        self._before = [*self._now]
        if self.fault == "stale page beside fresh ones":
            self.change()
        if self.fault == "mixed generations":
            for place, row in enumerate(self._now):
                if row["status"] == "open" and place % 3 == 0:
                    self._now[place] = row | {"status": "closed", "acceptingBets": False}

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self.url = f"http://127.0.0.1:{self._stack.enter_context(serving(partial(Handler, self)))}"
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def change(self) -> None:
        """A new market leads the sort `new`, and one that stood near its front is gone."""
        with self._lock:
            self.changes += 1
            newest = self._ordered(filter(is_listed, self._now), "new")
            self._now.remove(newest[2])
            (row,) = demo_rows(1, seed=1_000 + self.changes, as_of=self.as_of)
            moment = instant(self.as_of - timedelta(days=1) + timedelta(milliseconds=self.changes))
            started = {"createdAt": moment, "lastActivityAt": moment, "traderCount": 0, "volume": 0}
            history = [{"timestamp": moment, "prob": row["prob"]}]
            self._now.append(row | started | {"probHistory": history, "ended": row["resolvedAt"] or row["closeTime"]})

    def respond(self, method: str, target: str, if_none_match: str | None) -> Answer:
        """The answer to one request. It counts, whatever it is."""
        with self._lock:
            self.requests += 1
            if self.change_every and self.requests % self.change_every == 0:
                self.change()
            return self._finished(self._answer(method, target), if_none_match)

    def _answer(self, method: str, target: str) -> Answer:
        if self.limit_after is not None and self.requests == self.limit_after + 1:
            return self.error(429, "too many requests", headers={"Retry-After": "1"})
        if method == "OPTIONS":
            return Answer(204, headers={"Access-Control-Allow-Methods": METHODS, "Access-Control-Allow-Headers": "*"})
        if method not in ("GET", "HEAD") and not (method == "POST" and self.fault == "POST is served"):
            return self.error(405, "method not allowed", headers={"Allow": METHODS})
        path, _, query = target.partition("?")
        try:
            return self._found(path, query)
        except InvalidError as error:
            return self.error(400, "invalid request", error.args[0])

    def _found(self, path: str, query: str) -> Answer:
        if path == ROOT:
            return self._list(self._query(query))
        if path == f"{ROOT}/snapshot":
            return self._snapshot()
        reference = path.removeprefix(f"{ROOT}/")
        if reference in ("", path) or "/" in reference:
            return self.error(404, "not found")
        return self._detail(reference)

    def _finished(self, answer: Answer, if_none_match: str | None) -> Answer:
        shared = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag, Retry-After"}
        if answer.status != 200:
            return replace(answer, headers={**answer.headers, **shared})
        etag = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
        shared |= {"ETag": etag, "Cache-Control": "public, max-age=0"}
        tags = {tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")}
        if etag in tags or (if_none_match and self.fault == "weak 304"):
            return Answer(304, headers=shared)
        return replace(answer, headers={**answer.headers, **shared})

    def error(
        self, status: int, message: str, problems: Mapping[str, str] | None = None, headers: Headers | None = None
    ) -> Answer:
        """An ErrorResponse, with details if there are problems of parameters."""
        if self.fault == "plain text errors":
            return Answer(status, message.encode(), {"Content-Type": "text/plain; charset=utf-8"} | (headers or {}))
        if self.fault == "HTML 429" and status == 429:
            return Answer(status, f"<h1>{message}</h1>".encode(), {"Content-Type": "text/html"} | (headers or {}))
        details = [{"path": [name], "message": text} for name, text in (problems or {}).items()]
        is_told = details and self.fault != "error without details"
        return _json({"error": message, **({"details": details} if is_told else {})}, status, headers)

    def _query(self, text: str) -> Query:
        given = parse_qs(text, keep_blank_values=True)
        refused = () if self.fault == "404 for a bad id" else ("category", "q")  # else its variant is not to be known
        problems: dict[str, str] = {name: "is not offered here" for name in refused if name in given}
        for name in ("status", "sort", "limit", "cursor"):
            if name in given and (len(given[name]) > 1 or not given[name][0]):
                problems[name] = "must be given once, with a value"
        one = {name: values[0] for name, values in given.items() if name not in problems}
        status = one.get("status", "open")
        sort = one.get("sort", "popular" if status in ("open", "all") else "ended")
        if status not in STATUSES:
            problems["status"] = f"must be one of {', '.join(STATUSES)}"
        if sort not in SORTS:
            problems["sort"] = f"must be one of {', '.join(SORTS)}"
        limit = self._limit(one.get("limit", "20"))
        if not limit:
            problems["limit"] = "must be a whole number from 1 to 100"
        query = Query(status, sort, limit or 20, None)
        if "cursor" in one:
            query = self._continued(query, one["cursor"], problems)
        if problems:
            raise InvalidError(problems)
        return query

    def _limit(self, text: str) -> int | None:
        """The limit that is meant; None if it is invalid."""
        if self.fault == "silent clamp of limit" and re.fullmatch(r"0|[1-9][0-9]*", text):
            return min(max(int(text), 1), 100)
        if not re.fullmatch(r"[1-9][0-9]?|100", text):
            return None
        return 20 if self.fault == "limit ignored" else int(text)

    def _continued(self, query: Query, cursor: str, problems: dict[str, str]) -> Query:
        if cursor not in self._cursors:
            problems["cursor"] = "is invalid; start again from the first page"
            return query
        status, sort, position = self._cursors[cursor]
        any_sort = self.fault == "cursor accepted for another sort"
        if query.status != status or (query.sort != sort and not any_sort):
            problems["cursor"] = "belongs to another status or sort; start again from the first page"
        return replace(query, sort=sort, position=position)

    def _list(self, query: Query) -> Answer:
        if self.fault == "gap at a page border" and query.position is not None:
            self.change()
        statuses = STATUSES[query.status]
        listed = (row for row in self._state(query) if is_listed(row) and row["status"] in statuses)
        rows = self._ordered(listed, query.sort)
        start = self._start(rows, query)
        end = start + query.limit
        last = min(len(rows), 50) if self.fault == "null cursor too early" else len(rows)
        shown = rows[start:end]
        cursor = self._next(query, shown, end) if end < last else None
        return _json({"items": [only(ITEM_FIELDS, row) for row in shown], "nextCursor": cursor})

    def _state(self, query: Query) -> list[Row]:
        is_first = query.position is None
        is_stale = self.fault == "stale page beside fresh ones" and is_first and query.sort == "new"
        is_mixed = self.fault == "mixed generations" and not is_first
        return self._before if is_stale or is_mixed else self._now

    def _ordered(self, rows: Iterable[Row], sort: str) -> list[Row]:
        by_id = sorted(rows, key=itemgetter("id"))
        return sorted(by_id, key=partial(self._compared, sort), reverse=not self._is_wrong(sort))

    def _compared(self, sort: str, row: Row) -> list[Any]:
        return [row[name] for name in SORTS[sort]]

    def _is_wrong(self, sort: str) -> bool:
        return self.fault == "wrong order" and sort == "volume"

    def _start(self, rows: list[Row], query: Query) -> int:
        """How many items of the list stand at the position of its query or before."""
        if query.position is None:
            return 0
        if self.fault == "gap at a page border":
            return int(query.position[0])
        passed = [row for row in rows if self._is_passed(row, query.sort, query.position)]
        if self.fault != "duplicate after a tie":
            return len(passed)
        main = SORTS[query.sort][0]
        before, tied = (sum(row[main] == query.position[0] for row in some) for some in (passed, rows))
        return len(passed) - min(before, query.limit - 1) if tied > before else len(passed)

    def _is_passed(self, row: Row, sort: str, position: Position) -> bool:
        *values, last = position
        if self._compared(sort, row) == values:
            return bool(row["id"] <= last)
        return (self._compared(sort, row) > values) is not self._is_wrong(sort)

    def _next(self, query: Query, rows: list[Row], end: int) -> str:
        position: Position | None = [*self._compared(query.sort, rows[-1]), rows[-1]["id"]]
        if self.fault == "gap at a page border":
            position = [end + SKIPPED]
        if self.fault == "stuck cursor":
            position = query.position
        cursor = hashlib.sha256(repr((query.status, query.sort, position)).encode()).hexdigest()[:20]
        self._cursors[cursor] = query.status, query.sort, position
        return cursor

    def _snapshot(self) -> Answer:
        opened = [row for row in self._now if is_listed(row) and row["status"] == "open"]
        closing = [row for row in opened if row["closeTime"] > instant(self.as_of)]
        fresh = self._ordered((row for row in opened if row["acceptingBets"]), "new")[:6]
        groups = {"freshMarkets": fresh, "closingSoonMarkets": sorted(closing, key=itemgetter("closeTime", "id"))[:6]}
        return _json({name: [only(SIGNAL_FIELDS, row) for row in rows] for name, rows in groups.items()})

    def _detail(self, reference: str) -> Answer:
        if not UUID.fullmatch(reference):
            if self.fault == "404 for a bad id":
                return self.error(404, "market not found")
            raise InvalidError({"marketId": "must be a UUID"})
        rows = [row for row in self._now if row["id"] == reference.lower()]
        if not [*filter(_is_visible, rows)]:
            return self._missing(is_hidden=bool(rows))
        return _json({"market": only(DETAIL_FIELDS, rows[0]), **only(PARTS, rows[0])})

    def _missing(self, *, is_hidden: bool) -> Answer:
        if is_hidden and self.fault == "hidden market as 403":
            return self.error(403, "forbidden")
        if is_hidden and self.fault == "hidden market tells":
            return self.error(404, "market awaits review")
        return self.error(404, "market not found")


class Handler(QuietHandler):
    """The HTTP around a Dynamic's answers."""

    wbufsize = -1  # a head and its body in one write

    def __init__(self, dynamic: Dynamic, *args: Any) -> None:
        self.dynamic = dynamic
        super().__init__(*args)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def answer(self) -> None:
        """Answer one request, whatever its method."""
        target = self.requestline.split()[1]  # `path` has lost a slash of two at its front
        self.dynamic.accepted = self.headers["Accept-Encoding"] or ""
        self.send(self.dynamic.respond(self.command, target, self.headers["If-None-Match"]))

    def send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        self.close_connection = self.close_connection or answer.lost > 0
        self.end_headers()
        if self.command != "HEAD" or self.dynamic.fault == "HEAD with a body":
            self.wfile.write(answer.body[: len(answer.body) - answer.lost])


def _is_visible(row: Row) -> bool:
    return row["approval"] == "approved" and row["is_listed"] is True


def is_listed(row: Row) -> bool:
    """Whether lists show it."""
    return _is_visible(row) and row["fxFamilyMember"] is None


def only(names: Iterable[str], row: Row) -> Row:
    """These columns of a row."""
    return {name: row[name] for name in names}


def _json(content: object, status: int = 200, headers: Headers | None = None) -> Answer:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Answer(status, text.encode(), {"Content-Type": "application/json"} | (headers or {}))
