"""Headers by which readers learn what instant an answer describes, when it last changed, and which page is next."""

import json
import os
import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

import pytest

from generator.api import keys
from tests.support.campaigns import full_tier
from tests.support.edges.edge_sites import EDGES, EdgeSite, edge_site
from tests.support.edges.windows import LISTS, made_up
from tests.support.readers import lists
from tests.support.sites.builds import NOW
from tests.support.waiting import PATIENCE_S

MARKETS = f"/{keys.MARKETS}"


CHANGED = 1_700_000_000
PAGES = made_up("open/volume", 45)


@pytest.fixture(scope="module", params=full_tier(EDGES, short=["nginx", "serve", "worker"]))
def edge(request: pytest.FixtureRequest) -> Iterator[EdgeSite]:
    """An edge of a site that has not been rebuilt for long: lists in chunks, and one in pages."""
    with edge_site(request.param, "chunks") as running:
        lists.write(running.output / keys.SNAPSHOT, b"{}")
        running.put(LISTS["all/new"])
        running.put_pages(PAGES, 20)
        running.upload([keys.BUILD, keys.SNAPSHOT])
        for path in (running.output / "v1").rglob("*.json"):
            os.utime(path, (CHANGED, CHANGED))
        yield running


def test_lists_and_documents_say_as_of_when_they_are(edge: EdgeSite) -> None:
    found = [edge.ask("all/new", 20), edge.ask(PAGES.name, 20), edge.client.send("GET", f"{MARKETS}/snapshot")]
    assert [answer.status for answer in found] == [200] * 3
    if edge.edge == "bucket":  # another request to the bucket would be needed
        assert not any("x-as-of" in answer.headers for answer in found)
        return
    assert {answer.headers["x-as-of"] for answer in found} == {NOW}
    assert {"x-as-of", "link"} <= set(found[0].headers["access-control-expose-headers"].lower().split(", "))


def test_later_pages_leave_that_to_the_first_page_of_their_walk(edge: EdgeSite) -> None:
    for name in ("all/new", PAGES.name):
        cursor = json.loads(edge.ask(name, 20).body)["nextCursor"]
        later = edge.ask(name, 20, cursor)
        assert (later.status, "x-as-of" in later.headers) == (200, False)


def test_answers_say_when_they_last_changed(edge: EdgeSite) -> None:
    for name in ("all/new", PAGES.name):
        first = edge.ask(name, 20)
        for answer in (first, edge.ask(name, 20, json.loads(first.body)["nextCursor"])):
            modified = parsedate_to_datetime(answer.headers["last-modified"]).timestamp()
            assert modified == CHANGED if edge.edge != "worker" else modified > CHANGED


def test_the_link_to_the_next_page_leads_through_the_whole_list(edge: EdgeSite) -> None:
    # The second page of PAGES passes an nginx before a bucket unread.
    for one in (LISTS["all/new"], *([] if edge.edge == "bucket" else [PAGES])):
        target: str | None = f"{MARKETS}?sort={one.name.split('/')[1]}&status={one.name.split('/')[0]}&limit=20"
        items = 0
        while target:
            answer = edge.client.send("GET", target)
            page = json.loads(answer.body)
            items += len(page["items"])
            link = answer.headers.get("link")
            assert (link is None) == (page["nextCursor"] is None)
            if link:
                found = re.fullmatch(r'<(\?[^>]*)>; rel="next"', link)
                assert found
                assert found[1].endswith(f"&cursor={page['nextCursor']}")
            target = urljoin(target, found[1]) if link and found else None
        assert items == len(one.items)


def test_an_unchanged_page_is_not_sent_again_but_says_as_of_when_it_was_unchanged(edge: EdgeSite) -> None:
    for name in ("all/new", PAGES.name):
        first = edge.ask(name, 20)
        again = edge.ask(name, 20, If_None_Match=first.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        assert again.headers.get("x-as-of") == first.headers.get("x-as-of")


@pytest.mark.parametrize("edge", ["nginx"], indirect=True)  # only nginx keeps files open
def test_a_file_that_was_just_replaced_has_no_as_of_that_it_may_not_fit(edge: EdgeSite) -> None:
    build, just_now = edge.output / keys.BUILD, time.time() + PATIENCE_S
    lists.write(build, b'{"asOf":"2026-02-28T12:00:00.000Z"}')
    os.utime(build, (just_now, just_now))  # or the answer may come too late on a slow machine
    assert "x-as-of" not in edge.ask("all/new", 20).headers
    os.utime(build, (CHANGED, CHANGED))
    assert edge.ask("all/new", 20).headers["x-as-of"] == "2026-02-28T12:00:00.000Z"
