"""Both clients, of Python and of TypeScript, at sites that mean them harm, or are none: they do the same."""

import gzip
import json
import re
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

import httpx
import pytest

from public_markets_client import ApiError, Client, ClientError, NoSiteError, Options
from tests.clients.test_clients import read_asynchronously, read_at_once
from tests.clients.typescript.programs import Program
from tests.clients.typescript.scripted_site import Scripted, ScriptedSite, scripted

PRICES: Final = {"asOf": "2026-01-31T12:00:00.000Z", "markets": []}
BODY: Final = json.dumps(PRICES).encode()
PATH: Final = "/v1/prices.json"
MB: Final = 1 << 20
#: Raw deflate: an empty block that is not the last one.
NOTHING: Final = b"\x00\x00\x00\xff\xff"

#: Asks for prices; returns what the clients say of the error, if there is one.
Ask = Callable[..., str]


@pytest.fixture(params=[read_at_once, read_asynchronously, "node"])
def ask(request: pytest.FixtureRequest, run: Program) -> Ask:
    script = """
    const options = { wait, retries: given.tries - 1, timeout: 2_000, ...given.options };
    const asked = (async () => new Client(given.url, options).prices())();
    const { message } = await failure(asked);
    return message === "it did not fail" ? JSON.stringify(await asked) : message;
    """

    def of_python(url: str, tries: int = 1, **options: Any) -> str:
        try:
            return str(request.param(url, "prices", options=Options(tries=tries, **options)).json == PRICES)
        except ClientError as error:
            return str(error)

    def of_node(url: str, tries: int = 1, **options: Any) -> str:
        said: str = run(script, url=url, tries=tries, options=options)
        return str(json.loads(said) == PRICES) if said.startswith("{") else said

    return of_node if request.param == "node" else of_python


@pytest.fixture
def elsewhere() -> Iterator[ScriptedSite]:
    with scripted() as other:
        other.put(PATH, Scripted(PRICES))
        yield other


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("identity", BODY), ("gzip", gzip.compress(BODY)), ("x-gzip", gzip.compress(BODY)),
        ("GZIP", gzip.compress(BODY)),
        ("gzip", gzip.compress(BODY[:9]) + gzip.compress(BODY[9:])),
    ],
    ids=range(5),
)  # fmt: skip
def test_an_answer_that_is_compressed_once_is_read(ask: Ask, site: ScriptedSite, coding: str, body: bytes) -> None:
    site.put(PATH, Scripted(body, headers={"Content-Encoding": coding}))
    assert ask(site.url) == "True"


@pytest.mark.parametrize(
    ("coding", "body", "problem"),
    [
        ("gzip, gzip", gzip.compress(gzip.compress(BODY)), "has the Content-Encoding gzip, gzip, which cannot be read"),
        ("gzip, identity", gzip.compress(BODY), "cannot be read"), ("br, gzip", BODY, "cannot be read"),
        ("deflate", zlib.compress(BODY), "has the Content-Encoding deflate, which cannot be read"),
        ("br", b"\x0b\x02\x80{}\x03", "cannot be read"), ("zstd", BODY, "cannot be read"),
        ("gzip", gzip.compress(BODY) + b"garbage", ""), ("gzip", b"no gzip", ""),
        ("gzip", gzip.compress(BODY * 99)[:-20], ""),
        ("gzip", gzip.compress(bytes(MB)) * 64, "16"),
        ("gzip, gzip", gzip.compress(gzip.compress(bytes(MB)) * 64), "cannot be read"),
        ("gzip", b"\x1f\x8b\x08" + bytes(7) + NOTHING * (4 * MB), ""),
        ("identity", b"[" * (17 * MB), "16"),
        ("identity", b"[" * 9_999 + b"]" * 9_999, "not"), ("identity", BODY.replace(b"[]", b"NaN"), "not"),
        ("identity", b"\xff" + BODY, "not"),
    ],
    ids=range(16),
)  # fmt: skip
def test_no_answer_becomes_more_than_it_may(
    ask: Ask, site: ScriptedSite, coding: str, body: bytes, problem: str
) -> None:
    site.put(PATH, Scripted(body, headers={"Content-Encoding": coding}))
    tracemalloc.start()
    try:
        said = ask(site.url)
        # Of 16 MB that may come, and the site's own side of the connection.
        assert tracemalloc.get_traced_memory()[1] < 48 * MB + len(body)
    finally:
        tracemalloc.stop()
    assert said.startswith(site.url + PATH)
    assert problem in said


@pytest.mark.parametrize("coding", ["identity", "gzip", "br"])
def test_an_error_is_what_its_status_says_whatever_its_body_is(ask: Ask, site: ScriptedSite, coding: str) -> None:
    site.put(PATH, Scripted(b"x" * MB, 500, headers={"Content-Encoding": coding}))
    assert "500" in ask(site.url)


def test_answers_are_kept_up_to_16_mb(site: ScriptedSite, run: Program) -> None:
    """Both clients ask for eight answers of 3 MB each, then for the same, newest first."""
    names = [*"abcdefgh", *"hgfedcba"]
    page = Scripted({"items": [], "nextCursor": None, "new": "x" * 3 * MB}, headers={"ETag": '"1"'})
    paths = {
        name: [
            f"/v1/public/markets?status=open&category={name}&limit=100",
            f"/v1/public/markets?limit=100&category={name}",
        ]
        for name in "abcdefgh"
    }
    for path in chain(*paths.values()):
        site.put(path, page)
    with Client(site.url) as client:
        for name in names:
            assert [*client.markets(category=name)] == []
    script = """
    const site = new Client(given.url);
    for (const category of given.names) await all(site.markets({ category }));
    """
    run(script, url=site.url, names=names)
    for language in (0, 1):
        asked = {
            name: ["If-None-Match" in headers for headers in site.headers[paths[name][language]]] for name in paths
        }
        assert asked == {name: [False, name in "defgh"] for name in paths}


# ── addresses ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_to_a_host_that_was_allowed(
    ask: Ask, site: ScriptedSite, elsewhere: ScriptedSite, status: int
) -> None:
    host = elsewhere.url.removeprefix("http://")
    site.put(PATH, Scripted(b"", status, {"Location": elsewhere.url + PATH}))
    assert ask(site.url).startswith(f"{site.url}{PATH}")
    assert "leads to another host; if that is right, allow it: hosts" in ask(site.url)
    assert elsewhere.asked == []
    assert ask(site.url, hosts=[host]) == "True"
    site.put(PATH, Scripted(b"", status, {"Location": "moved.json"}))
    site.put("/v1/moved.json", Scripted(PRICES))
    assert ask(site.url) == "True"


@pytest.mark.parametrize(
    "location",
    ["//{host}/", "http://a@{host}/", "http://{site}@{host}/", "file:///etc/hostname",
     "data:,x", "http://[x", "http://localhost:{port}/", "http://{site}.example/", "https://{host}/"],
)  # fmt: skip
def test_no_other_address_is_asked(ask: Ask, site: ScriptedSite, elsewhere: ScriptedSite, location: str) -> None:
    host, own = (one.url.removeprefix("http://") for one in (elsewhere, site))
    address = location.format(host=host.replace("127.0.0.1", "127.0.0.2"), site=own, port=host.partition(":")[2])
    site.put(PATH, Scripted(b"", 302, {"Location": address}))
    assert site.url in ask(site.url)
    assert (site.asked, elsewhere.asked) == ([PATH], [])


def test_a_redirect_without_end_ends(ask: Ask, site: ScriptedSite) -> None:
    site.put(PATH, Scripted(b"", 302, {"Location": PATH}))
    assert "redirects more than 5 times" in ask(site.url)
    assert len(site.asked) == 6


def test_no_redirect_leads_from_https_to_http(run: Program) -> None:
    """But from http to https, at the same name."""
    asked = list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        other = {"https": "http", "http": "https"}[request.url.scheme]
        return httpx.Response(302, headers={"Location": f"{other}://site.example{PATH}"})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http, pytest.raises(ClientError) as raised:
        Client("http://site.example", Options(tries=1), http).prices()
    expected = [f"http://site.example{PATH}", f"https://site.example{PATH}"]
    assert ("leads from https to http" in str(raised.value), asked) == (True, expected)
    script = """
    const asked = [];
    const fetch = async (url) => {
      asked.push(url);
      const other = url.startsWith("https:") ? url.replace("https:", "http:") : url.replace("http:", "https:");
      return new Response(null, { status: 302, headers: { Location: other } });
    };
    return [(await failure(new Client("http://site.example", { fetch, wait, retries: 0 }).prices())).message, asked];
    """
    said, asked = run(script)
    assert ("leads from https to http" in said, asked) == (True, expected)


def test_a_name_and_password_are_neither_sent_nor_shown(ask: Ask, site: ScriptedSite) -> None:
    said = ask(site.url.replace("http://", "http://user:secret@"))
    assert "has a user name in it; leave it out" in said
    assert "secret" not in said
    assert site.asked == []


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (404, "text/html", b"<html>Not found</html>"), (403, "text/html", b"<html>Just a moment...</html>"),
        (200, "text/html; charset=utf-8", b"<html>Welcome</html>"), (200, "text/plain", b"OK"), (401, "text/html", b""),
        (404, "application/json", b'{"detail":"Not Found"}'), (400, "application/json", b'{"error":{"code":1}}'),
    ],
)  # fmt: skip
def test_a_wrong_address_is_one_sentence_at_once(
    ask: Ask, site: ScriptedSite, status: int, kind: str, body: bytes
) -> None:
    site.put(PATH, Scripted(body, status, {"Content-Type": kind}))
    said = "no Public Markets site answers at {}; give the address before /v1"
    assert ask(site.url, tries=6) == said.format(site.url)
    assert site.asked == [PATH]
    assert ask(f"{site.url}/v1/public/markets") == said.format(f"{site.url}/v1/public/markets")
    tls = site.url.replace("http:", "https:")
    assert re.fullmatch(said.format(rf"{tls} \(.*SSL.*\)"), ask(tls, tries=6))


@pytest.mark.parametrize("address", ["", "list", "localhost:8000", "ftp://site.example", "http:"])
def test_what_is_no_address_is_one_sentence(ask: Ask, address: str) -> None:
    said = f"no Public Markets site answers at {address}; give the address before /v1, with https:// or http://"
    assert ask(address) == said


@pytest.mark.parametrize("end", ["/", "/v1", "/v1/", "//v1//", " "])
def test_slashes_and_v1_may_end_an_address(ask: Ask, site: ScriptedSite, end: str) -> None:
    site.put(PATH, Scripted(PRICES))
    assert ask(site.url + end) == "True"
    assert site.asked == [PATH]
    assert re.fullmatch(r"public-markets-client/\d+\.\d+\.\d+", site.headers[PATH][0]["User-Agent"])


@pytest.mark.parametrize(
    ("coding", "body"), [("identity", b"{}"), ("identity", b"[]"), ("br", BODY), ("identity", b"[" * (17 * MB))],
    ids=range(4),
)  # fmt: skip
def test_what_will_not_become_right_is_asked_for_once(ask: Ask, site: ScriptedSite, coding: str, body: bytes) -> None:
    site.put(PATH, Scripted(body, headers={"Content-Encoding": coding, "Content-Type": "application/json"}))
    assert ask(site.url, tries=6).startswith(site.url + PATH)
    assert site.asked == [PATH]


def test_every_site_has_lists_and_one_that_has_answered_is_a_site(site: ScriptedSite, run: Program) -> None:
    wall = Scripted(b"<html>", 403, {"Content-Type": "text/html"})
    script = """
    const site = new Client(given.url);
    const first = await failure(all(site.markets()));
    return [first.message, (await failure(site.prices().then(() => site.prices()))).message];
    """
    nobody = f"no Public Markets site answers at {site.url}; give the address before /v1"
    for answers, refusal in (([wall], nobody), ([Scripted(PRICES), wall], f"{site.url}{PATH} answers 403")):
        site.put(PATH, *answers)
        assert run(script, url=site.url) == [nobody, refusal]
        site.put(PATH, *answers)
        with Client(site.url) as client:
            with pytest.raises(NoSiteError, match=nobody):
                [*client.markets()]
            with pytest.raises(NoSiteError if refusal == nobody else ApiError) as raised:
                [client.prices(), client.prices()]
            assert raised.value.status == 403


# ── walks and waits ───────────────────────────────────────────────────────────────────────────────────────────────


class Endless(dict[str, list[Scripted]]):
    """Empty pages, each with a cursor of its own."""

    cursor = "x"

    def get(self, path: str, _: Any) -> list[Scripted]:  # type: ignore[override]
        return [Scripted({"items": [], "nextCursor": f"{self.cursor}{len(path)}{hash(path)}"})]


@pytest.mark.parametrize(("cursor", "pages"), [("x", 101), ("x" * 5_000, 1)])
def test_a_walk_without_end_ends(site: ScriptedSite, run: Program, cursor: str, pages: int) -> None:
    site.answers = Endless()
    site.answers.cursor = cursor
    with Client(site.url) as client, pytest.raises(ClientError):
        [*client.markets()]
    assert len(site.asked) == pages
    site.asked.clear()
    failed = run("return failure(all(new Client(given.url).markets()));", url=site.url)
    assert failed["name"] == "ApiError"
    assert len(site.asked) == pages
    site.answers = {}


@pytest.mark.parametrize("pause", ["9" * 4_000, "1e9", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_pause_without_end_is_not_waited_for(ask: Ask, site: ScriptedSite, pause: str) -> None:
    site.put(PATH, Scripted({"error": "later"}, 503, {"Retry-After": pause}))
    assert "503" in ask(site.url)
