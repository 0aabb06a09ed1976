"""The dynamic server answers as the contract says, and each of its faults shows."""

import http.client
import json
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

import pytest
from pydantic import BaseModel

from generator.api import contract
from tests.verify.dynamic import FAULTS, ROOT, STATUSES, Dynamic, demo_rows
from tests.verify.rows import Row

#: What each sort compares, descending.
SORT_KEYS: Final[Mapping[str, Callable[[Row], object]]] = {
    "popular": lambda row: (row["traderCount"], row["volume"]),
    "activity": lambda row: row["lastActivityAt"],
    "volume": lambda row: row["volume"],
    "new": lambda row: row["createdAt"],
    "ended": lambda row: row["resolvedAt"] or row["closeTime"],
}
#: More pages than any walk of these tests has.
MOST_PAGES: Final = 200
MISSING: Final = str(uuid.UUID(int=0))


@dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class Reader:
    """A reader with one connection, which is kept."""

    def __init__(self, server: Dynamic) -> None:
        self.server = server
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc)

    def ask(self, rest: str = "", method: str = "GET", headers: Mapping[str, str] | None = None) -> Reply:
        return self.fetch(ROOT + rest, method, headers)

    def fetch(self, target: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Reply:
        self._connection.request(method, target, headers=dict(headers or {}))
        response = self._connection.getresponse()
        return Reply(response.status, response.headers, response.read())

    def pages(self, status: str, sort: str, limit: int) -> Iterator[list[Row]]:
        """The pages of a walk."""
        cursor = ""
        for _ in range(MOST_PAGES):
            reply = self.ask(f"?status={status}&sort={sort}&limit={limit}{cursor}")
            assert reply.status == 200, reply
            yield reply.content["items"]
            if reply.content["nextCursor"] is None:
                return
            cursor = f"&cursor={reply.content['nextCursor']}"
        pytest.fail("the walk does not end")

    def walk(self, status: str, sort: str, limit: int) -> list[Row]:
        return [item for page in self.pages(status, sort, limit) for item in page]

    def first(self, query: str = "?status=all&limit=100") -> list[Row]:
        found: list[Row] = self.ask(query).content["items"]
        return found

    def market(self, market_id: str) -> Row:
        found: Row = self.ask(f"/{market_id}").content["market"]
        return found

    def close(self) -> None:
        self._connection.close()


@contextmanager
def reading(
    fault: str | None = None, *, limit_after: int | None = None, change_every: int | None = None
) -> Iterator[Reader]:
    server = Dynamic(fault=fault, limit_after=limit_after, change_every=change_every)
    with server, closing(Reader(server)) as reader:
        yield reader


@pytest.fixture(scope="module")
def right() -> Iterator[Reader]:
    with reading() as reader:
        yield reader


def listed(server: Dynamic, status: str, sort: str) -> list[Row]:
    rows = [
        row
        for row in demo_rows(server.count, as_of=server.as_of)
        if row["approval"] == "approved" and row["is_listed"] and row["fxFamilyMember"] is None
    ]
    chosen = [row for row in rows if row["status"] in STATUSES[status]]
    return sorted(sorted(chosen, key=lambda row: row["id"]), key=SORT_KEYS[sort], reverse=True)  # type: ignore[arg-type]


def raw_head(server: Dynamic) -> bytes:
    """All that a HEAD request brings."""
    host, port = urlsplit(server.url).hostname, urlsplit(server.url).port
    with socket.create_connection((host, port)) as connection:
        connection.sendall(f"HEAD {ROOT} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65_536), b""))


# ── the right server ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("sort", SORT_KEYS)
@pytest.mark.parametrize("limit", [1, 7, 100])
def test_walks_are_the_sorted_rows(right: Reader, sort: str, limit: int) -> None:
    for status in STATUSES:
        expected = [row["id"] for row in listed(right.server, status, sort)]
        pages = list(right.pages(status, sort, limit))
        assert [item["id"] for page in pages for item in page] == expected
        assert {len(page) for page in pages[:-1]} <= {limit}
        assert len(expected) > 10


def test_lists_are_long_enough_for_every_fault(right: Reader) -> None:
    assert len(right.walk("open", "popular", 100)) > 50
    assert len(right.walk("all", "popular", 100)) > 100


def test_defaults_are_those_of_the_contract(right: Reader) -> None:
    assert right.ask().body == right.ask("?status=open&sort=popular&limit=20").body
    assert right.ask("?status=all").body == right.ask("?status=all&sort=popular").body
    for status in ("archive", "closed", "resolved", "cancelled"):
        assert right.ask(f"?status={status}").body == right.ask(f"?status={status}&sort=ended").body


def test_the_limit_may_change_in_mid_walk(right: Reader) -> None:
    first = right.ask("?limit=3").content
    second = right.ask(f"?limit=9&cursor={first['nextCursor']}").content
    assert first["items"] + second["items"] == right.first("?limit=12")


def test_a_walk_is_whole_while_markets_change() -> None:
    with reading(change_every=4) as reader:
        before = {row["id"] for row in listed(reader.server, "all", "popular")}
        walked = [item["id"] for item in reader.walk("all", "popular", 5)]
        stayed = {market_id for market_id in before if reader.ask(f"/{market_id}").status == 200}
        assert reader.server.changes > 5
        assert len(walked) == len(set(walked))
        assert stayed <= set(walked)


def test_a_change_leads_the_newest_and_deletes_another() -> None:
    with reading() as reader:
        before = reader.first()
        reader.server.change()
        leader = reader.first("?sort=new&limit=1")[0]
        gone = {item["id"] for item in before} - {item["id"] for item in reader.walk("all", "new", 100)}
        assert leader not in before
        assert reader.market(leader["id"])["question"] == leader["question"]
        assert [reader.ask(f"/{market_id}").status for market_id in gone] == [404]


def assert_has_fields_of(model: type[BaseModel], items: list[Row]) -> None:
    required = set(model.model_json_schema()["required"])
    assert items
    assert all(set(item) == required for item in items)


def test_answers_have_the_shapes_of_the_contract(right: Reader) -> None:
    contract.PublicMarketList.model_validate_json(right.ask("?status=all&limit=100").body)
    assert_has_fields_of(contract.PublicMarketListItem, right.first())
    snapshot = right.ask("/snapshot")
    contract.PublicMarketSnapshot.model_validate_json(snapshot.body)
    for group in snapshot.content.values():
        assert_has_fields_of(contract.PublicMarketSignal, group)
    for row in demo_rows(right.server.count, as_of=right.server.as_of):
        if row["approval"] == "approved" and row["is_listed"]:
            contract.PublicMarketDetail.model_validate_json(right.ask(f"/{row['id']}").body)
            assert_has_fields_of(contract.PublicMarketDetailMarket, [right.market(row["id"])])


def test_an_item_is_part_of_its_detail(right: Reader) -> None:
    for item in right.walk("all", "new", 100):
        assert item.items() <= right.market(item["id"]).items()


def test_members_of_fx_families_have_details_only(right: Reader) -> None:
    rows = demo_rows(right.server.count, as_of=right.server.as_of)
    members = [row["id"] for row in rows if row["fxFamilyMember"]]
    assert len(members) > 2
    assert all(right.market(market_id)["fxFamilyMember"]["direction"] == "gte" for market_id in members)


def test_the_snapshot_has_the_newest_and_the_soonest(right: Reader) -> None:
    newest = [row["id"] for row in listed(right.server, "open", "new") if row["acceptingBets"]]
    now = right.server.as_of.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    later = [row for row in listed(right.server, "open", "new") if row["closeTime"] > now]
    soonest = [row["id"] for row in sorted(later, key=lambda row: (row["closeTime"], row["id"]))]
    groups = {name: [item["id"] for item in items] for name, items in right.ask("/snapshot").content.items()}
    assert groups == {"freshMarkets": newest[:6], "closingSoonMarkets": soonest[:6]}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("status=any", ["status"]),
        ("sort=newest", ["sort"]),
        *((f"limit={quote(limit)}", ["limit"]) for limit in ("0", "101", "05", "+5", "5.0", "-1", "", "\u0665", "1e1")),
        ("limit=5&limit=5", ["limit"]),
        ("sort=", ["sort"]),
        ("cursor=", ["cursor"]),
        ("cursor=forged", ["cursor"]),
        ("cursor=%C3%A9", ["cursor"]),
        ("q=word", ["q"]),
        ("status=any&limit=0", ["status", "limit"]),
    ],
)
def test_an_invalid_parameter_is_named(right: Reader, query: str, names: list[str]) -> None:
    reply = right.ask(f"?{query}")
    assert reply.status == 400
    assert [detail["path"] for detail in reply.content["details"]] == [[name] for name in names]
    assert_is_error(reply)


def assert_is_error(reply: Reply) -> None:
    contract.ErrorResponse.model_validate_json(reply.body)
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Access-Control-Allow-Origin"] == "*"


def test_unknown_parameters_are_ignored(right: Reader) -> None:
    assert right.ask("?utm=1&utm=2&Limit=x").body == right.ask().body


def test_a_cursor_is_bound_to_its_list_and_to_every_letter(right: Reader) -> None:
    cursor = right.ask("?limit=5").content["nextCursor"]
    altered = [cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :] for at in range(len(cursor))]
    for query in ("&sort=new", "&status=all", "&status=all&sort=new"):
        assert right.ask(f"?cursor={cursor}{query}").status == 400
    assert {right.ask(f"?cursor={text}").status for text in (*altered, cursor[:-1], cursor + "A", cursor + "=")} == {
        400
    }
    assert right.ask(f"?cursor={cursor}&limit=1").status == 200


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("GET", f"{ROOT}/", 404),
        ("GET", f"/{ROOT}", 404),
        ("GET", f"{ROOT}/snapshot/", 404),
        ("GET", f"{ROOT}/{MISSING}", 404),
        ("GET", f"{ROOT}/{MISSING}/", 404),
        ("GET", "/v1/openapi.json", 404),
        ("GET", f"{ROOT}/no-id", 400),
        ("GET", f"{ROOT}?x={'x' * 4096}", 414),
        ("GET", f"{ROOT}?x={'x' * 70_000}", 414),
        *((method, ROOT, 405) for method in ("POST", "PUT", "PATCH", "DELETE", "BREW")),
    ],
)
def test_errors_are_json(method: str, target: str, status: int) -> None:
    with reading() as reader:
        reply = reader.fetch(target, method, {"Content-Length": "0"})
        assert reply.status == status
        assert ("Allow" in reply.headers) == (status == 405)
        assert_is_error(reply)


def test_a_hidden_market_is_a_missing_one(right: Reader) -> None:
    rows = demo_rows(right.server.count, as_of=right.server.as_of)
    hidden = [row["id"] for row in rows if row["approval"] != "approved" or not row["is_listed"]]
    assert right.server.hidden_id in hidden
    assert {row["approval"] for row in rows} == {"approved", "pending", "rejected"}
    replies = [right.ask(f"/{market_id}") for market_id in (MISSING, *hidden)]
    heads = [{name: text for name, text in reply.headers.items() if name != "Date"} for reply in replies]
    assert {(reply.status, reply.body) for reply in replies} == {(404, b'{"error":"market not found"}')}
    assert heads == [heads[0]] * len(replies)


def test_ids_are_accepted_in_either_case(right: Reader) -> None:
    market_id = right.first()[0]["id"]
    assert right.ask(f"/{market_id.upper()}").body == right.ask(f"/{market_id}").body


def test_head_is_get_without_a_body(right: Reader) -> None:
    for rest in ("", "/snapshot", "?limit=0", "/no-id"):
        got, head = right.ask(rest), right.ask(rest, "HEAD")
        assert (head.status, head.headers["Content-Length"], head.body) == (got.status, str(len(got.body)), b"")
        assert head.headers["ETag"] == got.headers["ETag"]
    assert raw_head(right.server).endswith(b"\r\n\r\n")


def test_a_matching_etag_is_not_modified(right: Reader) -> None:
    etag = right.ask().headers["ETag"]
    for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        reply = right.ask("", headers={"If-None-Match": known})
        assert (reply.status, reply.body, reply.headers["ETag"]) == (304, b"", etag)
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
    assert right.ask("?limit=2", headers={"If-None-Match": etag}).status == 200
    assert right.ask().headers["Cache-Control"] == "public, max-age=0"


def test_options_allow_other_origins(right: Reader) -> None:
    reply = right.ask("", "OPTIONS")
    assert (reply.status, reply.body, reply.headers["Access-Control-Allow-Origin"]) == (204, b"", "*")
    assert reply.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"


def test_requests_are_limited_for_a_while() -> None:
    with reading(limit_after=2) as reader:
        replies = [reader.ask("/snapshot") for _ in range(7)]
        assert [reply.status for reply in replies] == [200, 200, 429, 429, 429, 200, 200]
        assert replies[2].headers["Retry-After"] == "1"
        assert_is_error(replies[2])
        assert reader.server.requests == 7


def test_a_connection_outlives_requests_with_bodies(right: Reader) -> None:
    with closing(http.client.HTTPConnection(urlsplit(right.server.url).netloc)) as connection:
        for method, status in (("POST", 405), ("GET", 200)):
            connection.request(method, ROOT, body=b"GET / HTTP/1.1\r\n\r\n")
            response = connection.getresponse()
            assert (response.status, response.will_close) == (status, False)
            assert response.read()


@pytest.mark.parametrize("fault", ["no such fault", "HTML 429"])
def test_a_fault_that_cannot_show_is_refused(fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Dynamic(fault=fault)


# ── its faults ────────────────────────────────────────────────────────────────────────────────────────────────────

#: Whether a server shows a fault.
Proof: TypeAlias = Callable[[Reader], bool]


def _is_stuck(reader: Reader) -> bool:
    pages = reader.pages("all", "new", 7)
    return next(pages) == next(pages) == next(pages)


def _has_gaps(reader: Reader, limit: int = 7) -> bool:
    known = [item["id"] for item in reader.first("?status=all&sort=volume&limit=100")]
    walked = {item["id"] for item in reader.walk("all", "volume", limit)}
    return any(reader.ask(f"/{market_id}").status == 200 for market_id in known if market_id not in walked)


def _repeats(reader: Reader) -> bool:
    ids = [item["id"] for item in reader.walk("all", "popular", 7)]
    expected = [row["id"] for row in listed(reader.server, "all", "popular")]
    return len(ids) > len(set(ids)) and list(dict.fromkeys(ids)) == expected


def _clamps(reader: Reader) -> bool:
    return [len(reader.ask(f"?status=all&limit={limit}").content.get("items", ())) for limit in (0, 101)] == [1, 100]


def _is_stale(reader: Reader) -> bool:
    newest = {item["id"] for item in reader.first("?sort=new&limit=100")}
    return any(item["id"] not in newest for item in reader.walk("open", "popular", 100))


def _has_mixed_statuses(reader: Reader) -> bool:
    """Whether later pages of every sort have statuses that details do not have, and first pages do not."""
    details = {row["id"]: reader.market(row["id"])["status"] for row in listed(reader.server, "all", "new")}
    walks = [list(reader.pages("all", sort, 20)) for sort in SORT_KEYS]
    firsts = [[item["status"] == details[item["id"]] for item in pages[0]] for pages in walks]
    later = [[item["status"] == details[item["id"]] for page in pages[1:] for item in page] for pages in walks]
    return all(map(all, firsts)) and not any(map(all, later))


def _ends_ties_downwards(reader: Reader) -> bool:
    rows = reader.walk("all", "volume", 7)
    return rows == sorted(rows, key=lambda row: (row["volume"], row["id"]), reverse=True)


def _volume_ascends(reader: Reader) -> bool:
    rows = reader.walk("all", "volume", 7)
    return rows == sorted(rows, key=lambda row: (row["volume"], row["id"]))


def _takes_other_cursors(reader: Reader) -> bool:
    cursor = reader.ask("?sort=new").content["nextCursor"]
    return reader.ask(f"?sort=volume&cursor={cursor}").body == reader.ask(f"?sort=new&cursor={cursor}").body


def _ends_early(reader: Reader) -> bool:
    return len(reader.walk("all", "new", 10)) == 50 and len(reader.walk("open", "new", 100)) > 50


def _differs(reader: Reader) -> bool:
    return all(item["prob"] != reader.market(item["id"])["prob"] for item in reader.first("?limit=20"))


def _serves_slashes(reader: Reader) -> bool:
    return {reader.ask(f"{rest}/").status for rest in ("", "/snapshot", f"/{reader.first()[0]['id']}")} == {200}


def _errs_in(kind: str, *, rest: str = "?limit=0") -> Proof:
    return lambda reader: reader.ask(rest).headers["Content-Type"].startswith(kind)


PROOFS: Final[Mapping[str, Proof]] = {
    "stuck cursor": _is_stuck,
    "gap at a page border": _has_gaps,
    "duplicate after a tie": _repeats,
    "silent clamp of limit": _clamps,
    "HTML 429": lambda reader: (reply := reader.ask()).status == 429 and reply.headers["Content-Type"] == "text/html",
    "missing CORS on errors": lambda reader: "Access-Control-Allow-Origin" not in reader.ask("?limit=0").headers,
    "dropped field": lambda reader: all("traderCount" not in item for item in reader.first()),
    "string for number": lambda reader: all(isinstance(item["volume"], str) for item in reader.first()),
    "extra property": lambda reader: all("moderationScore" in item for item in reader.first()),
    "hidden market as 403": lambda reader: reader.ask(f"/{reader.server.hidden_id}").status == 403,
    "hidden market tells": lambda reader: (
        (reply := reader.ask(f"/{reader.server.hidden_id}")).status == 404
        and reply.body != reader.ask(f"/{MISSING}").body
    ),
    "stale page beside fresh ones": _is_stale,
    "mixed generations": _has_mixed_statuses,
    "wrong order among equals": _ends_ties_downwards,
    "wrong order": _volume_ascends,
    "cursor accepted for another sort": _takes_other_cursors,
    "HEAD with a body": lambda reader: not raw_head(reader.server).endswith(b"\r\n\r\n"),
    "weak 304": lambda reader: reader.ask(headers={"If-None-Match": '"another"'}).status == 304,
    "plain text errors": _errs_in("text/plain"),
    "404 for a bad id": lambda reader: reader.ask("/no-id").status == 404,
    "null cursor too early": _ends_early,
    "limit ignored": lambda reader: {len(reader.first(f"?limit={limit}")) for limit in (1, 100)} == {20},
    "details differ": _differs,
    "slash is served": _serves_slashes,
    "POST is served": lambda reader: reader.ask(method="POST").status == 200,
    "error without details": lambda reader: "details" not in reader.ask("?limit=0").content,
}


def test_every_fault_has_a_proof() -> None:
    assert list(PROOFS) == list(FAULTS)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_shows_and_only_where_it_is_asked_for(fault: str) -> None:
    limit_after = 0 if fault == "HTML 429" else None
    with reading(fault, limit_after=limit_after) as wrong, reading(limit_after=limit_after) as right:
        assert PROOFS[fault](wrong)
        assert not PROOFS[fault](right)


@pytest.mark.parametrize("limit", [1, 20, 50])
def test_gaps_are_at_every_limit(limit: int) -> None:
    with reading("gap at a page border") as reader:
        assert _has_gaps(reader, limit)


@pytest.mark.campaign(short=0)
def test_repeating_walks_end_at_every_limit() -> None:
    with reading("duplicate after a tie") as reader:
        for limit in (1, 2, 100):
            for sort in SORT_KEYS:
                ids = [item["id"] for item in reader.walk("all", sort, limit)]
                assert list(dict.fromkeys(ids)) == [row["id"] for row in listed(reader.server, "all", sort)]
