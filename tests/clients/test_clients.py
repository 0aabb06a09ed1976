"""Both clients: they read all that a site publishes, each market once, and say what is wrong if they cannot."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import cycle, product
from typing import Any, Final, get_args

import httpx
import pytest

from generator.api import keys
from public_markets_client import (
    AnswerError,
    ApiError,
    AsyncClient,
    Client,
    ClientError,
    ExpiredCursorError,
    Market,
    NoSiteError,
    NotFoundError,
    Options,
    UnavailableError,
)
from public_markets_client.decoding import decoded
from public_markets_client.models import Page, Sort, Status
from public_markets_client.requester import Answer, Call, retry_after
from public_markets_client.site import Site
from tests.clients.conftest import DemoSite
from tests.clients.encoding import encoded
from tests.clients.faulting_proxy import Fate, FaultingProxy, running
from tests.support.edges.serving import in_order

BASE: Final = "http://site.example"
MARKET: Final = {
    "id": "a", "question": "Snow?", "status": "open", "prob": 0.5, "volume": 1, "closeTime": "2026-01-31T12:00:00.000Z",
    "resolution": None, "createdAt": "2026-01-31T12:00:00.000Z", "resolvedAt": None,
    "lastActivityAt": "2026-01-31T12:00:00.000Z", "traderCount": 1, "fills24h": 0, "acceptingBets": True,
}  # fmt: skip
EXPIRED: Final = "has expired, or its pages were withdrawn; start again from the first page, without a cursor"

Reading = Callable[..., Any]


def read_at_once(url: str, name: str, *arguments: Any, options: Options | None = None, **named: Any) -> Any:
    with Client(url, options) as client:
        found = getattr(client, name)(*arguments, **named)
        return [*found] if isinstance(found, Iterator) else found


def read_asynchronously(url: str, name: str, *arguments: Any, options: Options | None = None, **named: Any) -> Any:
    async def read() -> Any:
        async with AsyncClient(url, options) as client:
            found = getattr(client, name)(*arguments, **named)
            return [one async for one in found] if hasattr(found, "__aiter__") else await found

    return asyncio.run(read())


@pytest.fixture(params=[read_at_once, read_asynchronously])
def read(request: pytest.FixtureRequest) -> Reading:
    reading: Reading = request.param
    return reading


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_list_comes_in_order_and_whole(read: Reading, demo_site: DemoSite) -> None:
    walked = 0
    for status, sort in {
        *zip(get_args(Status), cycle(get_args(Sort)), strict=False),
        *product(["all"], get_args(Sort)),
    }:
        found = read(demo_site.url, "markets", status=status, sort=sort, limit=30)
        assert [market.id for market in found] == in_order(demo_site.folder / "markets.db", status, sort)
        walked += len(found)
    assert walked > 500


def test_no_value_of_the_site_is_lost_or_changed(read: Reading, demo_site: DemoSite) -> None:
    """What the client has, encoded again, is what the site published."""
    output = demo_site.folder / "output"
    for name, key in (("snapshot", keys.SNAPSHOT), ("build", keys.BUILD), ("prices", keys.PRICES)):
        assert encoded(read(demo_site.url, name)) == json.loads((output / key).read_bytes()), name
    dump = read(demo_site.url, "dump")
    details = [json.loads((output / keys.detail(market.id)).read_bytes()) for market in dump]
    assert [encoded(market) for market in dump] == [detail["market"] for detail in details]
    assert len(dump) == len(in_order(demo_site.folder / "markets.db", "all", "new")) > 80
    for detail in details[:5]:
        found = read(demo_site.url, "market", detail["market"]["id"].upper())
        assert encoded(found) == detail
        assert read(demo_site.url, "market", found.market.slug) == found


def test_a_search_and_a_category_are_asked_for(read: Reading, demo_site: DemoSite) -> None:
    every = read(demo_site.url, "markets", status="all")
    found = read(demo_site.url, "markets", status="all", q="will")
    assert 0 < len(found) < len(every)
    in_category = read(demo_site.url, "markets", status="all", category="politics")
    assert {market.id for market in in_category} == {one.id for one in every if "politics" in (one.categories or ())}


def test_an_error_has_status_path_and_message(read: Reading, demo_site: DemoSite) -> None:
    with pytest.raises(ApiError, match="must be one of") as refused:
        read(demo_site.url, "markets", status="bad")
    assert (refused.value.status, refused.value.path) == (400, "status")
    assert refused.value.message.startswith("must be one of open, archive")
    with pytest.raises(ApiError, match="must be a UUID or a slug"):
        read(demo_site.url, "market", "no/such?market")
    with pytest.raises(NotFoundError) as missing:
        read(demo_site.url, "market", "00000000-0000-4000-8000-000000000000")
    assert (missing.value.status, missing.value.path, missing.value.message) == (404, "", "not found")


def test_an_answer_that_never_ends_is_given_up(demo_site: DemoSite) -> None:
    always = Fate(("stall",), seed=1, share=1, in_a_row=99)
    options = Options(timeout=0.05, tries=2, pause=0)
    with running(FaultingProxy(demo_site.url, always)) as proxy:
        with pytest.raises(UnavailableError, match="cannot be read"), Client(proxy.url, options) as client:
            client.build()
        with pytest.raises(UnavailableError, match="cannot be read"):
            asyncio.run(AsyncClient(proxy.url, options).build())
    assert always.injected["stall"] == 4


def test_who_waits_for_a_dump_is_told_how_much_of_it_came(demo_site: DemoSite) -> None:
    told = list[tuple[int, int]]()
    with Client(demo_site.url, Options(progress=lambda now, most: told.append((now, most)))) as client:
        assert [*client.dump()]
    assert told[-1][0] == told[-1][1] > 10_000
    assert told == sorted(told)


# ── made-up sites ─────────────────────────────────────────────────────────────────────────────────────────────────


class Script:
    """A site that gives these answers one after the other, and keeps what it was asked."""

    def __init__(self, *answers: httpx.Response) -> None:
        self._answers, self.asked = [*answers], list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self._answers.pop(0)

    def client(self, **options: Any) -> Client:
        http = httpx.Client(transport=httpx.MockTransport(self))
        return Client(BASE, Options(**{"pause": 0, **options}), http)


def page(*ids: str, cursor: str | None = None, **values: Any) -> httpx.Response:
    items = [{**MARKET, "id": one, **values} for one in ids]
    return httpx.Response(200, json={"items": items, "nextCursor": cursor})


def expired() -> httpx.Response:
    return httpx.Response(400, json={"error": "invalid request", "details": [{"path": ["cursor"], "message": EXPIRED}]})


def ids(found: Iterator[Market]) -> str:
    return "".join(market.id for market in found)


def test_the_client_at_once_works_where_an_event_loop_runs() -> None:
    async def read() -> str:
        client = Script(page("a", cursor="1"), page("b"), page("c", cursor="2")).client()
        whole = ids(client.markets())
        return whole + next(client.markets()).id

    assert asyncio.run(read()) == "abc"


def test_an_expired_walk_begins_again_without_repeating() -> None:
    site = Script(page("a", "b", cursor="1"), expired(), page("b", "c", cursor="2"), page("a", "d"))
    assert ids(site.client().markets()) == "abcd"
    assert [request.url.params.get("cursor") for request in site.asked] == [None, "1", None, "2"]


def test_an_expired_walk_raises_if_asked_to() -> None:
    site = Script(page("a", cursor="1"), expired())
    walk = site.client().markets(on_expired="error")
    assert next(walk).id == "a"
    with pytest.raises(ExpiredCursorError, match="has expired") as raised:
        next(walk)
    assert (raised.value.status, raised.value.path) == (400, "cursor")


def test_a_walk_that_always_expires_ends() -> None:
    site = Played()
    site.answers = [Answer(one.status_code, {}, one.content) for one in [page("a", cursor="1"), expired()] * 9]

    async def walk() -> None:
        async for market in site.markets():
            found.append(market.id)

    found = list[str]()
    with pytest.raises(ExpiredCursorError):
        asyncio.run(walk())
    assert found == ["a"]
    assert site.waits == [*range(5)]
    assert len(site.answers) == 2 * (9 - 6)


class Played(Site):
    """A site that gives these answers, and how long a client would have waited for them."""

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(BASE, options)
        self.answers, self.waits = list[Answer](), list[float]()

    async def _send(self, call: Call) -> Answer:
        del call
        return self.answers.pop(0)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def _apart(self, work: Callable[[], Any]) -> Any:
        return work()

    def asked(self, *answers: Answer, is_search: bool = False) -> list[float | str]:
        """The waits of a request that gets these answers, and what comes out."""
        self.answers, self.waits = [*answers], []
        try:
            call = Call(BASE, is_search=is_search)
            end = asyncio.run(self._ask(call, lambda one: one.body.decode()))
        except ClientError as error:
            end = str(error)
        assert self.answers == []
        return [*self.waits, end]


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ([page("a", cursor="1"), page("a")], "twice"),
        ([page("a", cursor="1"), page("b", cursor="1")], "leads to an earlier page"),
    ],
)
def test_a_site_that_repeats_itself_is_an_error(pages: list[httpx.Response], problem: str) -> None:
    with pytest.raises(AnswerError, match=problem):
        ids(Script(*pages).client().markets())


def test_unknown_fields_are_kept_and_unknown_values_never_raise() -> None:
    new: dict[str, Any] = {"status": "voided", "resolution": "MAYBE", "odds": {"deep": [1]}}
    (market,) = Script(page("a", **new)).client().markets()
    assert (market.status, market.resolution, dict(market.extra)) == ("voided", "MAYBE", {"odds": {"deep": [1]}})
    assert encoded(market) == MARKET | new


@pytest.mark.parametrize(
    ("values", "path", "problem"),
    [
        ({"prob": None}, "items.0.prob", "must be of type float"),
        ({"traderCount": True}, "items.0.traderCount", "must be of type int"),
        ({"closeTime": "soon"}, "items.0.closeTime", "must be a datetime"),
        ({"prob": 10**400}, "items.0.prob", "must be of type float"),
        ({"categories": [1]}, "items.0.categories.0", "must be of type str"),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_its_place(
    values: dict[str, Any], path: str, problem: str
) -> None:
    with pytest.raises(AnswerError, match=problem) as raised:
        ids(Script(page("a", **values)).client().markets())
    assert (raised.value.path, raised.value.status) == (path, None)
    assert raised.value.url.startswith(f"{BASE}/v1/public/markets?")


def test_what_is_missing_is_an_error_that_names_its_place() -> None:
    with pytest.raises(AnswerError) as raised:
        decoded(Page, {"items": [{"id": "a"}], "nextCursor": None})
    assert (raised.value.path, raised.value.message) == ("items.0", "question is missing")


# ── when it asks again ────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_cached_is_asked_for_conditionally() -> None:
    first = page("a")
    first.headers["ETag"] = '"1"'
    site = Script(first, httpx.Response(304), httpx.Response(304), page("b"))
    client = site.client()
    assert [ids(client.markets()) for _ in range(2)] == ["a", "a"]
    assert "If-None-Match" not in site.asked[0].headers
    assert site.asked[1].headers["If-None-Match"] == '"1"'
    with pytest.raises(UnavailableError, match="304"):
        site.client(tries=1).build()
    assert ids(site.client(cache=None).markets()) == "b"
    assert "If-None-Match" not in site.asked[3].headers


def limited(pause: str | None = None, status: int = 429) -> Answer:
    return Answer(status, {} if pause is None else {"retry-after": pause}, b'{"error":"too many requests"}')


GOOD: Final = Answer(200, {}, b"good")


def test_it_waits_as_long_as_the_site_says() -> None:
    site = Played()
    assert site.asked(limited("7"), limited("0", 503), GOOD) == [7.0, 0.0, "good"]
    assert site.asked(limited("121")) == [f"{BASE}: 429: too many requests; try again in 121 s"]


def test_it_gives_up_after_so_many_tries_each_after_a_longer_wait() -> None:
    *waits, end = Played(Options(tries=4, pause=1)).asked(*[limited()] * 4)
    assert end == f"{BASE}: 429: too many requests; try again later"
    assert [low <= float(wait) <= 2 * low for low, wait in zip((0.5, 1, 2), waits, strict=True)] == [True] * 3


def test_a_pause_may_be_a_date() -> None:
    assert retry_after(format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)) == 0
    assert retry_after(format_datetime(datetime(9020, 1, 1, tzinfo=UTC), usegmt=True)) > 1e9  # type: ignore[operator]
    assert [retry_after(text) for text in (None, "soon", "-1", "²")] == [None] * 4


def test_it_keeps_to_the_limits_of_the_site() -> None:
    site = Played(Options(requests=3, searches=2))
    assert [site.asked(GOOD, is_search=True) for _ in range(2)] == [["good"]] * 2
    wait, good = site.asked(GOOD, is_search=True)
    assert (59 < float(wait) <= 60, good) == (True, "good")
    wait, _ = site.asked(GOOD)
    assert 59 < float(wait) <= 60


def test_requests_at_the_same_time_share_the_limits() -> None:
    site = Played(Options(requests=2))
    site.answers = [GOOD] * 6

    async def read() -> None:
        call = Call(BASE)
        await asyncio.gather(*(site._ask(call, lambda one: one.body) for _ in range(6)))  # noqa: SLF001

    asyncio.run(read())
    assert [round(wait / 60) for wait in site.waits] == [1, 1, 2, 2]


def test_what_will_not_help_is_not_tried_again() -> None:
    for status in (400, 401, 403, 404, 405, 410, 501):
        assert Played().asked(Answer(status, body=b'{"error":"no"}')) == [f"{BASE}: {status}: no"]


@pytest.mark.parametrize(("number", "asked"), [(socket.EAI_NONAME, 1), (socket.EAI_AGAIN, 3)])
def test_a_name_that_nobody_has_is_not_looked_up_again(number: int, asked: int) -> None:
    """Unlike one that nobody answers for."""

    def unnamed(request: httpx.Request) -> httpx.Response:
        urls.append(str(request.url))
        raise httpx.ConnectError("no address") from socket.gaierror(number, "no address")

    urls = list[str]()
    http = httpx.Client(transport=httpx.MockTransport(unnamed))
    with pytest.raises(NoSiteError if asked == 1 else UnavailableError, match="no address"):
        Client(BASE, Options(tries=3, pause=0), http).build()
    assert len(urls) == asked


# ── what the clients give ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_client_that_was_closed_says_so_and_no_other_is_closed_with_it(demo_site: DemoSite) -> None:
    async def closed() -> None:
        client = AsyncClient(demo_site.url)
        await client.build()
        await client.aclose()
        await client.build()

    async def closed_meanwhile() -> None:
        client = AsyncClient(demo_site.url, options=Options(requests=1, window=0.2))
        await client.build()
        waiting = asyncio.create_task(client.build())
        await asyncio.sleep(0)
        await client.aclose()
        await waiting

    for close in (closed, closed_meanwhile):
        with pytest.raises(ClientError, match="the client was closed; make another"):
            asyncio.run(close())
    with httpx.Client() as http, Client(demo_site.url, http=http) as client:
        walk = client.markets(limit=1)
        next(walk)
        client.close()
        for ask in (lambda: next(walk), client.prices):
            with pytest.raises(ClientError, match="the client was closed; make another"):
                ask()
        assert http.get(f"{demo_site.url}/v1/build.json").status_code == 200


def test_objects_hash_and_become_dictionaries(demo_site: DemoSite) -> None:
    with Client(demo_site.url) as client:
        markets, build = [*client.markets()], client.build()
        detail = client.market(markets[0].id)
    assert len({*markets, *markets, build, build, detail, detail}) == len(markets) + 2
    told = detail.to_dict()
    assert told["market"]["close_time"] == markets[0].close_time
    assert told["prob_history"][0] == detail.prob_history[0].to_dict()
    assert "json" not in {*told, *told["market"]}
    assert build.to_dict()["lists"] == build.lists
