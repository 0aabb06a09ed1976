"""`verify --contract URL` finds every fault of live servers, names it, and accuses none that is right."""

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import pytest

from generator.api.contract import PublicMarketList
from generator.progress import SILENT
from generator.verify import request_table
from generator.verify.contract import answers, subject
from generator.verify.contract.run import MOST_REQUESTS, ContractVerification, verify_contract
from generator.verify.mismatches import Verdict
from generator.verify.reader import SiteAnswer, SiteReader
from tests.support import commands
from tests.verify.dynamic import ROOT, Answer, Dynamic
from tests.verify.rows import FAMILY, Row

#: What is said of each fault of a `Dynamic`: the verdict, and words of some mismatch.
NAMED: Final[dict[str, tuple[Verdict, str]]] = {
    "stuck cursor": (Verdict.WRONG, "the nextCursor leads to the same page again"),
    "gap at a page border": (Verdict.WRONG, "has a gap: it lacks market"),
    "duplicate after a tie": (Verdict.WRONG, "shows market .* again: an earlier page has it"),
    "silent clamp of limit": (Verdict.BROKEN, r"limit=(0|101): is answered 200, not 400"),
    "HTML 429": (Verdict.BROKEN, "the 429 has the type 'text/html', not application/json"),
    "hidden market as 403": (Verdict.BROKEN, "a hidden market is answered 403, a missing one 404"),
    "hidden market tells": (Verdict.BROKEN, "the answer for a hidden market is not that for a missing one"),
    "stale page beside fresh ones": (Verdict.WRONG, "sort=new.* alone, .*: these are of different states"),
    "mixed generations": (Verdict.WRONG, "has status 'closed' here, and 'open' in .*: these are of different states"),
    "wrong order": (Verdict.WRONG, "is not in the order of sort=volume"),
    "cursor accepted for another sort": (Verdict.BROKEN, "a cursor of another sort is answered 200, not 400"),
    "HEAD with a body": (Verdict.BROKEN, "the answer to HEAD has a body"),
    "weak 304": (Verdict.BROKEN, "If-None-Match with another ETag than it has .* is answered 304, not 200"),
    "plain text errors": (Verdict.BROKEN, "the 40[04] has the type 'text/plain; charset=utf-8', not application/json"),
    "404 for a bad id": (Verdict.BROKEN, "markets/0: is answered 404, not 400"),
    "null cursor too early": (Verdict.WRONG, "nextCursor is null too early in the walk through status=open&sort=new"),
    "limit ignored": (Verdict.BROKEN, "has 20 items, more than its limit of 7"),
    "POST is served": (Verdict.BROKEN, "POST /v1/public/markets: is answered 200, not 405"),
    "error without details": (Verdict.BROKEN, "the details of the 400 do not name the parameter limit"),
}
NO_DOCUMENT: Final = "there is no OpenAPI document at /v1/openapi.json"


def held(url: str, *hidden: str) -> ContractVerification:
    reader = SiteReader(url, 1e6, print, MOST_REQUESTS)
    return verify_contract(reader, hidden, SILENT)


def told(found: ContractVerification) -> list[str]:
    return [str(one) for one in found.mismatches]


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("fault", NAMED)
def test_a_fault_is_found_and_named(fault: str) -> None:
    verdict, words = NAMED[fault]
    with Dynamic(fault=fault, limit_after=40 if fault == "HTML 429" else None) as server:
        found = held(server.url, server.hidden_id)
        assert found.requests == server.requests <= MOST_REQUESTS
    named = [one for one in found.mismatches if one.verdict == verdict and re.search(words, str(one))]
    assert named, told(found)
    assert found.mismatches[0].verdict == max(one.verdict for one in found.mismatches), "the worst is first"


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("fault", sorted({*NAMED} - {"HTML 429", "gap at a page border"})[::2])
def test_a_fault_is_found_while_the_server_changes(fault: str) -> None:
    with Dynamic(fault=fault, change_every=11) as server:
        found = held(server.url, server.hidden_id)
        assert server.requests <= MOST_REQUESTS
    assert any(re.search(NAMED[fault][1], str(one)) for one in found.mismatches), told(found)


# ── damage on the way ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Altered(Dynamic):
    """The server behind something that alters answers which may be packed, to targets with a part in them."""

    part: str = ""
    alter: Callable[[Answer], Answer] = lambda answer: answer

    def respond(self, method: str, target: str, if_none_match: str | None) -> Answer:
        answer = super().respond(method, target, if_none_match)
        is_altered = answer.status == 200 and self.accepted == "gzip" and self.part in target
        return self.alter(answer) if is_altered else answer


def rewritten(pattern: str, other: str) -> Callable[[Answer], Answer]:
    """Replaces what fits the pattern in bodies."""
    return lambda answer: replace(answer, body=re.sub(pattern, other, answer.body.decode()).encode())


def packed_and_cut_off(answer: Answer) -> Answer:
    headers = {**answer.headers, "Content-Encoding": "gzip"}
    return replace(answer, body=gzip.compress(answer.body)[:-20], headers=headers)


#: A part of targets, what is done to their answers, and what is said of it.
DAMAGES: Final[dict[str, tuple[str, Callable[[Answer], Answer], Verdict, str]]] = {
    "a body is cut off": ("limit=9", lambda answer: replace(answer, lost=7), Verdict.BROKEN, "cut off before the end"),
    "gzip is cut off": ("limit=100", packed_and_cut_off, Verdict.BROKEN, "is no gzip, .* but something shorter"),
    "a property comes twice": (
        "sort=volume", rewritten(r'("prob":[^,]*)', r"\1,\1"), Verdict.BROKEN, "the property 'prob' is given twice",
    ),
    "texts are garbled": (
        "markets/", lambda answer: replace(answer, headers={"Content-Type": "application/json; charset=ISO-8859-1"}),
        Verdict.BROKEN, "has the charset 'ISO-8859-1'",
    ),
    "lists show a family": (
        f"{ROOT}/0", rewritten('("fxFamilyMember":)null', rf"\1{json.dumps(FAMILY)}"), Verdict.WRONG,
        "is a member of an FX family, which no list may show, yet status=",
    ),
    "bets after the closing": (
        "status=open&sort=new", rewritten('("closeTime":)"[^"]*"', r'\1"2020-01-01T00:00:00Z"'), Verdict.WRONG,
        "acceptingBets true after its closeTime 2020-01-01T00:00:00Z: the same page has a time of 20",
    ),
    "bets after the end": (
        "status=archive", rewritten('"acceptingBets":false', '"acceptingBets":true'), Verdict.WRONG,
        "which is [a-z]+, with acceptingBets true",
    ),
    "a market twice in the snapshot": (
        "/snapshot", rewritten(r'("freshMarkets":\[)(.*?})', r"\1\2,\2"), Verdict.WRONG, "freshMarkets .* 2 times",
    ),
    "an id of a person is shown": (
        f"{ROOT}/", rewritten('("market":{)', r'\1"creatorUserId":7,'), Verdict.BROKEN, "'creatorUserId' .* be private",
    ),
    "a field is dropped": (
        "sort=new", rewritten('"traderCount":[0-9]+,', ""), Verdict.BROKEN, "items.0.traderCount: Field required",
    ),
    "a string for a number": ("sort=new", rewritten('"volume":0', '"volume":"0"'), Verdict.BROKEN, "volume: Input"),
    "details differ": (f"{ROOT}/", rewritten('("volume":)', r"\g<1>1"), Verdict.WRONG, "its market has volume 1"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_seen_and_named(damage: str) -> None:
    part, alter, verdict, words = DAMAGES[damage]
    with Altered(part=part, alter=alter) as server:
        found = held(server.url)
        assert found.requests == server.requests <= MOST_REQUESTS
    assert any(one.verdict == verdict and re.search(words, str(one)) for one in found.mismatches), told(found)


# ── a server that is right ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("count", [2, 5, 120, 1000])
def test_nothing_is_wrong_with_a_server_that_is_right(count: int) -> None:
    with Dynamic(count=count) as server:
        found = held(server.url, server.hidden_id)
        assert found.requests == server.requests <= MOST_REQUESTS
    assert told(found) == []
    assert found.notes == []
    assert found.checks > 80
    assert ("no list has a second page, so no cursor was used elsewhere" in found.left_out) == (count == 2)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("every", [1, 2, 3, 5, 8, 13, 29])
def test_nothing_is_wrong_with_a_server_that_changes(every: int) -> None:
    with Dynamic(change_every=every) as server:
        found = held(server.url, server.hidden_id)
        assert found.requests == server.requests <= MOST_REQUESTS
        assert server.changes >= 5
    assert told(found) == []


def test_a_refusal_that_is_right_is_waited_for() -> None:
    with Dynamic(limit_after=40) as server:
        found = held(server.url)
    assert told(found) == []


class Below(Dynamic):
    """The server below a path."""

    def respond(self, method: str, target: str, if_none_match: str | None) -> Answer:
        assert target.startswith("/markets/api/v1/"), "everything is asked below the address"
        return super().respond(method, target.removeprefix("/markets/api"), if_none_match)


def test_the_address_may_have_a_path() -> None:
    with Below() as server:
        found = held(f"{server.url}/markets/api/", server.hidden_id)
    assert told(found) == []


class Otherwise(Dynamic):
    """A server of the core variant as others may write it: right, with other habits than ours where they may differ."""

    def respond(self, method: str, target: str, if_none_match: str | None) -> Answer:
        path, _, query = target.partition("?")
        given = {name: value for name, value in parse_qsl(query) if name not in ("category", "q")}
        answer = super().respond(method, f"{path.rstrip('/')}?{urlencode(given)}", if_none_match)
        if method in ("HEAD", "OPTIONS"):
            answer = self.error(405, "only GET")
        elif answer.status == 404:
            answer = self.error(404, f"there is no {path.lower()}")
        return replace(answer, headers={"Content-Type": "application/json;charset=UTF-8"})

    def _limit(self, text: str) -> int | None:
        limit = super()._limit(text)
        return limit and min(limit, 30)

    def _compared(self, sort: str, row: Row) -> list[Any]:
        return [row["prob"]] if sort == "popular" else [*super()._compared(sort, row), row["question"]]


def test_habits_of_others_are_notes_that_do_not_count() -> None:
    with Otherwise(count=300) as server:
        assert subject.of(SiteReader(server.url, 1e6, print), ()).variant == "core"
        found = held(server.url, server.hidden_id.upper())
    assert told(found) == []
    assert found.left_out == ["lists have no ETag, so no copy could be confirmed", NO_DOCUMENT]
    assert {one.text for one in found.notes} == {
        "is answered 200, not 400", "is answered 200, not 404", "is answered 405, not 204", "is answered 405, not 200",
        "is answered 405, not 400", "is answered 405, and GET 200", "the 405 has no Allow header",
        "equal markets are not in the order of their ids", "has fewer items than its limit, yet a nextCursor",
        "sort=popular does not compare traderCount and volume, greatest first",
        "has no Access-Control-Allow-Origin, so browsers on other sites cannot read it",
    }  # fmt: skip


@dataclass
class Filtering(Dynamic):
    """A server of the extended variant that shows none of its fields, no order books, and has no search.

    One that `is_strict` refuses a category that no market has.
    """

    is_strict: bool = False

    def respond(self, method: str, target: str, if_none_match: str | None) -> Answer:
        if "category=" in target and self.is_strict:
            return self.error(400, "invalid request", {"category": "must be a category"})
        if "category=" in target:
            return Answer(200, b'{"items":[],"nextCursor":null}', {"Content-Type": "application/json"})
        answer = super().respond(method, target.partition("?q=")[0], if_none_match)
        if answer.status >= 400 and target.startswith(f"{ROOT}/"):
            return self.error(404, f"request {self.requests} names no market")
        content = json.loads(answer.body or "{}")
        content.pop("orderBook", None)
        return replace(answer, body=json.dumps(content).encode())


def test_a_category_that_is_filtered_tells_the_extended_variant() -> None:
    with Filtering() as server:
        found = held(server.url, server.hidden_id)
    assert told(found) == []
    assert "no two missing markets have the same answer, so no hidden one was compared with them" in found.left_out


@pytest.mark.parametrize("count", [0, 120])
def test_where_nothing_tells_the_variant_what_either_allows_is_right(count: int) -> None:
    with Filtering(count, is_strict=True) as server:
        found = held(server.url)
    assert told(found) == []
    assert found.left_out[0] == "nothing tells the variant, so what either of them allows was taken for right"


@pytest.mark.parametrize(("part", "times"), [("sort=volume", 1), ("status=all&sort=new", 1_000)])
def test_a_page_that_nobody_can_take_hides_no_fault(part: str, times: int) -> None:
    unfit = [{f"X-{number}": "x" * 60_000 for number in range(20)}] * times
    alter: Callable[[Answer], Answer] = lambda answer: replace(answer, headers=unfit.pop()) if unfit else answer  # noqa: E731
    with Altered(fault="wrong order", part=part, alter=alter) as server:
        found = held(server.url)
    assert {one.verdict for one in found.mismatches} == {Verdict.WRONG, *((Verdict.BROKEN,) if times > 1 else ())}


class Dropping(Dynamic):
    """The server, which ends the connection where its database cannot read a limit, or from a request on."""

    last: float = float("inf")

    def respond(self, method: str, target: str, if_none_match: str | None) -> Answer:
        if "limit=ten" in target or self.requests >= self.last:
            raise ConnectionAbortedError
        return super().respond(method, target, if_none_match)


@pytest.mark.campaign(short=0)
def test_a_server_that_goes_is_left_with_what_was_seen() -> None:
    with Dropping(fault="wrong order") as server:
        server.last = 100
        found = held(server.url)
    assert {one.text.partition(" order")[0] for one in found.mismatches} == {"does not answer", "is not in the"}
    assert sum(text.endswith("as the server does not answer any more") for text in found.left_out) == 2


@pytest.mark.parametrize("most", [20, 100])
def test_what_could_not_be_asked_for_want_of_requests_is_told(most: int) -> None:
    with Dynamic(fault="wrong order") as server:
        found = verify_contract(SiteReader(server.url, 1e6, print, most), (), SILENT)
        assert found.requests == server.requests == most
    assert any(one.endswith("could not be made, for want of requests") for one in found.left_out)


# ── the table of requests ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("variant", ["core", "extended"])
def test_what_is_asked_of_any_deployment_can_be_asked_of_any(variant: Any) -> None:
    blocks = request_table.for_any_deployment(variant)
    rows = [row for block in blocks for row in block.rows]
    assert {block.kind for block in blocks} == {"contract", "habit"}
    assert 65 < len(rows) < 80
    for row in rows:
        assert row.keys() <= {"request", "status", "key", "invalid"}
        assert request_table.fill(row["request"], request_table.market_meanings("x"))


# ── what only this program asks of itself ─────────────────────────────────────────────────────────────────────────

ITEM: Final = {
    "id": "3F2C1A90-5B7E-4D68-9C41-D2A7E8B06F15", "question": "?" * 3000, "status": "open", "prob": 1, "volume": 0,
    "closeTime": "2026-01-31T12:00:00+01:00", "resolution": None, "createdAt": "2026-01-31T12:00:00Z",
    "resolvedAt": None, "lastActivityAt": "2026-01-31T12:00:00.123456Z", "traderCount": 2.0, "fills24h": 0,
    "acceptingBets": True, "category": {"name": "Politics"},
}  # fmt: skip


def page_of(*items: object) -> SiteAnswer:
    headers = {"content-type": "application/json", "access-control-allow-origin": "*"}
    return SiteAnswer("/", 200, headers, json.dumps({"items": items, "nextCursor": None}).encode())


def test_other_spellings_lengths_and_extras_than_ours_keep_the_contract() -> None:
    page, faults = answers.content(page_of(ITEM), PublicMarketList)
    assert faults == []
    assert page["items"] == [ITEM]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"createdAt": "2026-01-31 at noon"}, r"items\.0\.createdAt: String should match"),
        ({"createdAt": "2026-01-31T12:00:00"}, r"items\.0\.createdAt: String should match"),
        ({"createdAt": "2026-02-31T12:00:00Z"}, r"items\.0\.createdAt: String should match"),
        ({"id": "market-1"}, r"items\.0\.id: String should match"),
        ({"prob": 1.5}, r"items\.0\.prob: Input should be less"),
        ({"status": "paused"}, r"items\.0\.status: Input should be 'open'"),
    ],
)
def test_what_is_no_time_id_or_number_breaks_the_contract(changed: dict[str, object], fault: str) -> None:
    page, (found, *_) = answers.content(page_of(ITEM | changed), PublicMarketList)
    assert page is None
    assert re.match(fault, found.text)


_PEOPLE: Final = "creatorUserId creator ownerID author_email createdBy matchedBets orderId betIds userid reviewedAt"
_OTHERS: Final = "previewUrl uniqueUsers userCount authority orderBookUrl sortBy"


@pytest.mark.parametrize("name", [*_PEOPLE.split(), *_OTHERS.split()])
def test_names_tell_of_people_and_orders_by_whole_words_unless_they_count(name: str) -> None:
    (found,) = answers.content(page_of(ITEM | {name: 1}), PublicMarketList)[1]
    assert found.verdict == (Verdict.BROKEN if name in _PEOPLE.split() else Verdict.NOTE)


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_name_that_comes_twice_among_many_is_named_at_once() -> None:
    """A search through all names before each would take hours."""
    many = "".join(f'"{number}":0,' for number in range(200_000))
    answer = page_of()._replace(status=404, body=f'{{"error":"","x":{{{many}"7":1}}}}'.encode())
    (found,) = answers.faults(answer)
    assert "the property '7' is given twice" in found.text


def verified(*arguments: str) -> Any:
    return commands.run("verify", "--contract", "--rate", "1000000", *arguments)


def test_the_command_says_in_one_line_that_a_server_keeps_the_contract() -> None:
    with Dynamic() as server:
        ended = verified(server.url, "--hidden", server.hidden_id)
    assert ended.returncode == 0, ended.stderr
    assert re.fullmatch(rf"{server.url} keeps the contract: \d+ checks in \d+ requests\n", ended.stdout)
    assert NO_DOCUMENT in ended.stderr


def test_the_command_shows_notes_and_succeeds() -> None:
    with Otherwise() as server:
        shown, listed = verified(server.url), verified(server.url, "--json")
    assert (shown.returncode, listed.returncode) == (0, 0), shown.stderr
    assert f"note: OPTIONS {ROOT}: is answered 405, not 204" in shown.stderr
    noted = {"target": f"OPTIONS {ROOT}", "text": "is answered 405, not 204"}
    assert noted in json.loads(listed.stdout)["notes"]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("fault", "code"), [("POST is served", 9), ("wrong order", 8)])
def test_the_worst_finding_makes_the_exit_code(fault: str, code: int) -> None:
    with Dynamic(fault=fault) as server:
        ended = verified(server.url, "--json")
    assert ended.returncode == code, ended.stderr
    found = json.loads(ended.stdout)
    assert found["requests"] == server.requests
    assert {one["verdict"] for one in found["mismatches"]} == {Verdict(code).name.lower()}
    assert "mismatch" in ended.stderr


_APART = (
    "--contract --all", "--contract --budget 99", "--contract --seed 3", "--all --budget 99",
    "--hidden 3f2c1a90-5b7e-4d68-9c41-d2a7e8b06f15", "--hidden 3f2c1a90 --contract",
)  # fmt: skip


@pytest.mark.parametrize("arguments", _APART)
def test_options_that_do_not_go_together_or_name_no_market_are_refused(arguments: str) -> None:
    ended = commands.run("verify", "http://127.0.0.1:9", *arguments.split())
    assert ended.returncode == 2
    assert arguments.split(maxsplit=1)[0] in ended.stderr
