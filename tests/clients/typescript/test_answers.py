"""The TypeScript client: what it makes of each answer, against sites whose answers are written down."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final

import pytest

from tests.clients.typescript.programs import Program
from tests.clients.typescript.scripted_site import Scripted, ScriptedSite
from tests.downloads import states
from tests.downloads.states import IDS
from tests.support.edges.servers import free_port

FIRST_PAGE: Final = "/v1/public/markets?limit=100"
EXPIRED: Final = Scripted(
    {"error": "invalid request", "details": [{"path": ["cursor"], "message": "has expired"}]}, 400
)
BUILD: Final = "/v1/build.json"
STATE: Final = states.state({one: [("question", '"Snow?"')] for one in IDS[:9]})
AS_OF: Final = {"asOf": "2026-01-31T12:00:00.000Z"}


def page(*ids: str, cursor: str | None = None) -> Scripted:
    return Scripted({"items": [{"id": one} for one in ids], "nextCursor": cursor})


def following(cursor: str) -> str:
    return f"{FIRST_PAGE}&cursor={cursor}"


WALK: Final = """
const found = [];
const site = new Client(given.url, { wait, retries: 2 });
const failed = await failure((async () => {
  for await (const market of site.markets(given.query, given.options)) found.push(market.id);
})());
return { found, failed, waits: [...waits] };
"""
ASK: Final = """
const site = new Client(given.url, { wait, retries: 2, ...given.options });
return { found: await site.build(), waits: [...waits] };
"""
FAIL: Final = """
const site = new Client(given.url, { wait, retries: 2, ...given.options });
return { ...(await failure(site[given.name](...given.arguments))), waits: [...waits] };
"""


# ── walks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_walk_passes_each_cursor_on_with_its_query(run: Program, site: ScriptedSite) -> None:
    asked = "/v1/public/markets?limit=2&status=all&q=caf%C3%A9%20%26%20bar"
    site.put(asked, page("a", "b", cursor="c/1"))
    site.put(f"{asked}&cursor=c%2F1", page("c", cursor="2"))
    site.put(f"{asked}&cursor=2", page())
    query = {"status": "all", "limit": 2, "q": "café & bar", "category": None}
    assert run(WALK, url=site.url + "/", query=query)["found"] == ["a", "b", "c"]
    assert site.asked == [asked, f"{asked}&cursor=c%2F1", f"{asked}&cursor=2"]


def test_what_is_newer_than_the_client_is_kept(run: Program, site: ScriptedSite) -> None:
    """Properties, values of enumerations, properties of the page."""
    items = [{"id": "a", "status": "paused", "mood": {"is": "good"}, "resolution": None}]
    site.put(FIRST_PAGE, Scripted({"items": items, "nextCursor": None, "total": 1}))
    assert run("return all(new Client(given.url).markets());", url=site.url) == items


def test_an_expired_walk_goes_on_in_the_new_list_without_what_came_already(run: Program, site: ScriptedSite) -> None:
    site.put(FIRST_PAGE, page("a", "b", cursor="1"), page("new", "b", cursor="3"))
    site.put(following("1"), page("c", cursor="2"))
    site.put(following("2"), EXPIRED)
    site.put(following("3"), page("d", "a", "c"))
    assert run(WALK, url=site.url)["found"] == ["a", "b", "c", "new", "d"]
    assert len(site.asked) == 5


def test_an_expired_walk_ends_with_the_error_if_that_is_asked(run: Program, site: ScriptedSite) -> None:
    site.put(FIRST_PAGE, page("a", cursor="1"))
    site.put(following("1"), EXPIRED)
    walked = run(WALK, url=site.url, options={"onExpired": "error"})
    assert walked["found"] == ["a"]
    failed = walked["failed"]
    assert (failed["name"], failed["status"], failed["path"]) == ("ApiError", 400, ["cursor"])
    assert failed["message"] == f"{site.url}{following('1')} answers 400: invalid request: cursor has expired"


def test_a_walk_that_always_expires_ends_with_the_error(run: Program, site: ScriptedSite) -> None:
    site.put(FIRST_PAGE, page("a", cursor="1"))
    site.put(following("1"), EXPIRED)
    walked = run(WALK, url=site.url)
    assert (walked["found"], walked["failed"]["status"]) == (["a"], 400)
    assert walked["waits"] == [0, 1000, 8000]


@pytest.mark.parametrize(
    ("second", "problem"), [(page("b", "a"), "lists a twice"), (page("b", cursor="1"), "leads to itself")]
)
def test_a_list_that_repeats_itself_is_an_error(
    run: Program, site: ScriptedSite, second: Scripted, problem: str
) -> None:
    site.put(FIRST_PAGE, page("a", cursor="1"))
    site.put(following("1"), second)
    assert problem in run(WALK, url=site.url)["failed"]["message"]


def test_a_refused_parameter_is_named_at_once(run: Program, site: ScriptedSite) -> None:
    details = [{"path": ["limit"], "message": "must be small"}, {"path": ["sort"], "message": "must be known"}]
    site.put(FIRST_PAGE, Scripted({"error": "invalid request", "details": [*details, 7, {"path": "x"}]}, 400))
    failed = run(WALK, url=site.url)["failed"]
    assert (failed["status"], failed["path"], failed["details"]) == (400, ["limit"], details)
    assert failed["message"].endswith("answers 400: invalid request: limit must be small; sort must be known")
    assert len(site.asked) == 1


# ── retries ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "bad",
    [
        Scripted({"error": "down"}, 503), Scripted(b"<html>", 502), Scripted(b"", 500), Scripted(AS_OF, cut=3),
        Scripted(b"<html>"), Scripted(b""),
        Scripted({"error": "slow down"}, 429), Scripted(b"", 304),
    ],
    ids=str,
)  # fmt: skip
def test_what_may_pass_is_asked_again(run: Program, site: ScriptedSite, bad: Scripted) -> None:
    site.put(BUILD, bad, bad, Scripted(AS_OF))
    done = run(ASK, url=site.url)
    assert done["found"] == AS_OF
    first, second = done["waits"]
    assert 500 <= first <= 1000 <= second <= 2000


def test_what_does_not_pass_is_an_error_that_says_what_it_was(run: Program, site: ScriptedSite) -> None:
    site.put(BUILD, Scripted(b"<html>"))
    failed = run(FAIL, url=site.url, name="build", arguments=[])
    assert failed["message"] == f"{site.url}{BUILD} is not what was asked for"
    assert len(site.asked) == 3
    site.put(BUILD, Scripted({"error": "down"}, 503))
    failed = run(FAIL, url=site.url, name="build", arguments=[])
    assert (failed["status"], failed["message"]) == (503, f"{site.url}{BUILD} answers 503: down")
    failed = run(FAIL, url=f"http://127.0.0.1:{free_port()}", name="build", arguments=[])
    assert failed["message"].endswith("cannot be read (ECONNREFUSED)")


def test_a_site_that_asks_to_wait_is_not_asked_before(run: Program, site: ScriptedSite) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    for asked, least, most in (("7", 7_000, 7_000), (later, 60_000, 100_000), ("soon", 500, 1_000)):
        site.put(BUILD, Scripted({}, 429, {"Retry-After": asked}), Scripted(AS_OF))
        (waited,) = run(ASK, url=site.url)["waits"]
        assert least <= waited <= most


def test_a_site_that_asks_to_wait_for_longer_than_allowed_is_an_error(run: Program, site: ScriptedSite) -> None:
    site.put(BUILD, Scripted({"error": "enough"}, 429, {"Retry-After": "121"}))
    failed = run(FAIL, url=site.url, name="build", arguments=[])
    assert (failed["status"], failed["retryAfter"], failed["waits"]) == (429, 121, [])
    failed = run(FAIL, url=site.url, name="build", arguments=[], options={"longestWait": 121_000})
    assert (failed["retryAfter"], failed["waits"]) == (121, [121_000] * 2)


def test_while_one_request_waits_as_asked_no_other_is_sent(run: Program, site: ScriptedSite) -> None:
    site.put(BUILD, Scripted({}, 429, {"Retry-After": "7"}), Scripted(AS_OF))
    site.put("/v1/prices.json", Scripted({"markets": []}))
    script = """
    let [goOn, began] = [];
    const isWaiting = new Promise((resolve) => { began = resolve; });
    const pausing = () => { began(); return new Promise((resolve) => { goOn = resolve; }); };
    const site = new Client(given.url, { wait: pausing });
    const first = site.build();
    await isWaiting;
    const second = site.prices();
    // It would have been sent by the end of two others.
    for (const _ of [1, 2]) await fetch(`${given.url}/v1/other`).then((answer) => answer.text());
    goOn();
    await Promise.all([first, second]);
    """
    run(script, url=site.url)
    assert site.asked[:3] == [BUILD, "/v1/other", "/v1/other"]
    assert sorted(site.asked[3:]) == [BUILD, "/v1/prices.json"]


def test_what_sends_nothing_is_given_up_and_asked_again(run: Program, site: ScriptedSite) -> None:
    script = """
    let asked = 0;
    const silent = (_, { signal }) => new Promise((_, fail) => signal.addEventListener("abort", fail));
    const some = (...request) => (asked++ === 0 || given.isSilent ? silent : fetch)(...request);
    const site = new Client(given.url, { wait, fetch: some, timeout: given.timeout, retries: 1 });
    return { failed: await failure(site.build()), asked };
    """
    site.put(BUILD, Scripted(AS_OF))
    done = run(script, url=site.url, timeout=1, isSilent=True)
    assert (done["failed"]["message"], done["asked"]) == (f"{site.url}{BUILD} sent nothing for 1 ms", 2)
    done = run(script, url=site.url, timeout=1_000, isSilent=False)
    assert (done["failed"]["message"], done["asked"]) == ("it did not fail", 2)


def test_a_signal_ends_requests_and_waits(run: Program, site: ScriptedSite) -> None:
    site.put(BUILD, Scripted({}, 503, {"Retry-After": "100"}))
    script = """
    const ending = new AbortController();
    const end = () => ending.abort(new Error("enough"));
    const first = () => fetch(given.url + given.path).finally(() => setTimeout(end));
    const site = new Client(given.url, { signal: ending.signal, fetch: first });
    return [await failure(site.build()), await failure(site.build())];
    """
    assert [failed["message"] for failed in run(script, url=site.url, path=BUILD)] == ["enough"] * 2
    assert len(site.asked) == 1
    script = """
    const silent = (_, { signal }) => new Promise((_, fail) => signal.addEventListener("abort", fail));
    const ending = new AbortController();
    const ended = failure(new Client(given.url, { signal: ending.signal, fetch: silent }).build());
    ending.abort(new Error("enough"));
    return ended;
    """
    assert run(script, url=site.url)["message"] == "enough"


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_has_not_changed_is_not_sent_again(run: Program, site: ScriptedSite) -> None:
    site.put(BUILD, Scripted(AS_OF, headers={"ETag": '"one"'}), Scripted(b"", 304))
    script = """
    const site = new Client(given.url, { cacheSize: given.size });
    const first = await site.build();
    first.asOf = "changed by the caller";
    return site.build();
    """
    assert run(script, url=site.url, size=1) == AS_OF
    assert [asked.get("If-None-Match") for asked in site.headers[BUILD]] == [None, '"one"']
    site.put(BUILD, Scripted(AS_OF, headers={"ETag": '"one"'}))
    run(script, url=site.url, size=0)
    assert [asked.get("If-None-Match") for asked in site.headers[BUILD][2:]] == [None, None]


def test_a_market_is_the_one_that_was_asked_for(run: Program, site: ScriptedSite) -> None:
    site.put(f"/v1/public/markets/{IDS[0].upper()}", Scripted({"market": {"id": IDS[0]}}))
    site.put(f"/v1/public/markets/{IDS[1]}", Scripted({"market": {"id": IDS[0]}}))
    site.put("/v1/public/markets/a%2Fb", Scripted({"market": {"id": IDS[0]}}))
    for ref in (IDS[0].upper(), "a/b"):
        found = run("return new Client(given.url).market(given.ref);", url=site.url, ref=ref)
        assert found == {"market": {"id": IDS[0]}}
    failed = run(FAIL, url=site.url, name="market", arguments=[IDS[1]])
    assert failed["message"].endswith("is not what was asked for")


def test_a_dump_is_checked_before_its_first_market_comes(run: Program, site: ScriptedSite) -> None:
    made = states.make(STATE).body
    digest = hashlib.sha256(made).hexdigest()
    head = {"markets": [{"format": "ndjson", "url": "../x.gz", "sha256": digest, "size": len(made)}]}
    site.put("/v1/dumps/head.json", Scripted(head))
    site.put("/v1/x.gz", Scripted(made[:-1] + b"?"), Scripted({}, 404), Scripted(made))
    script = "return all(new Client(given.url, { wait, retries: 1 }).dump());"
    assert run(script, url=site.url) == [json.loads(line) for line in STATE.values()]
    assert [path for path in site.asked if path == "/v1/dumps/head.json"] == ["/v1/dumps/head.json"] * 2
    site.put("/v1/x.gz", Scripted(made[:-1] + b"?"))
    script = """
    const found = [];
    const failed = await failure((async () => {
      for await (const market of new Client(given.url, { wait, retries: 1 }).dump()) found.push(market);
    })());
    return [found, failed.message];
    """
    assert run(script, url=site.url) == [[], f"{site.url}/v1/x.gz is not the file that the head names"]
    site.put("/v1/dumps/head.json", Scripted({"markets": []}))
    assert run(script, url=site.url)[1].endswith("/v1/dumps/head.json names no NDJSON")
