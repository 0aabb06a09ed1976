"""A budget of requests is divided by what matters, and lists that it is too small for are looked at on random pages."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import cursors
from generator.progress import SILENT
from generator.verify import expected
from generator.verify.budget import Wish, shared_out
from generator.verify.earlier_states import EarlierStates
from generator.verify.inquiry import Inquiry
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteReader
from generator.verify.run import verify
from generator.verify.walks import RandomPages
from tests.support.sites.builds import NO_LIMITS, build_now, make_config
from tests.support.sites.rows import create_database, insert_market
from tests.verify.altering import Proxy, Upstream, asked_once, in_process, proxied
from tests.verify.test_verify import altering


@given(st.integers(0, 200), st.lists(st.builds(Wish, st.integers(0, 60), st.integers(1, 20)), max_size=8))
def test_all_of_a_budget_is_shared_out_unless_all_wishes_are_granted(budget: int, wishes: list[Wish]) -> None:
    shares = shared_out(budget, wishes)
    assert all(0 <= share <= wish.requests for share, wish in zip(shares, wishes, strict=True))
    assert sum(shares) == min(budget, sum(wish.requests for wish in wishes))


def test_what_one_wish_has_no_use_for_goes_to_the_others_by_weight() -> None:
    assert shared_out(100, [Wish(4, 50), Wish(90, 2), Wish(90, 1)]) == [4, 64, 32]


# ── a site whose lists have several pages ─────────────────────────────────────────────────────────────────────────────

_LIST: Final = "all/new"
_MARKETS: Final = 230


@pytest.fixture(scope="module", params=["pages", "chunks"])
def upstream(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Upstream:
    folder = tmp_path_factory.mktemp("several")
    with closing(create_database(folder / "markets.db")) as connection:
        for number in range(_MARKETS):
            insert_market(connection, number)
        connection.commit()
    build_now(make_config(folder, layout=request.param))
    return asked_once(in_process(make_config(folder, layout=request.param, **NO_LIMITS)))


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Proxy]:
    with proxied(upstream) as running:
        yield running


def reader(proxy: Proxy) -> SiteReader:
    return SiteReader(proxy.url, 1e6, print)


def on_random_pages(proxy: Proxy, pages: int = 3) -> list[Mismatch]:
    """What is found on so many pages of a list that has three."""
    site = expected.read(reader(proxy), 0)
    assert len(site.lists[_LIST]) == _MARKETS
    return [*RandomPages(_LIST, pages, seed=1)(Inquiry(reader(proxy), site, EarlierStates((), (), site.markets)))]


def cursor_at(proxy: Proxy, position: int) -> str:
    return cursors.mint(_LIST, expected.read(reader(proxy), 0).generation(_LIST), position)


@pytest.mark.parametrize("budget", [50, 90, 300])
def test_a_budget_is_kept_and_small_ones_look_at_lists_on_random_pages(proxy: Proxy, budget: int) -> None:
    found = verify(reader(proxy), budget, 1, SILENT, patience_s=0)
    assert found.mismatches == []
    assert found.requests == len(proxy.asked) <= budget
    assert found.lists
    assert sum((found.lists.whole, found.lists.sampled, found.lists.left_out)) == 30
    assert (found.lists.left_out > 0, found.lists.sampled > 0) == (budget < 90, budget < 300)


def test_a_seed_asks_the_same_again_whatever_is_refused_and_another_asks_otherwise(proxy: Proxy) -> None:
    runs, refusals = list[list[str]](), list[int]()
    proxy.alter = lambda _, answer: (
        replace(answer, status=refusals.pop(), headers={"retry-after": "0"}) if refusals else answer
    )
    for seed, refused in ((1, 0), (1, 3), (2, 0)):
        refusals += [503] * refused
        verify(reader(proxy), 90, seed, SILENT, patience_s=0)
        runs.append(proxy.asked[refused:])
        proxy.asked.clear()
    assert runs[0] == runs[1] != runs[2]


def test_an_item_on_a_later_page_and_a_cursor_that_leads_elsewhere_are_named(proxy: Proxy) -> None:
    at = cursor_at(proxy, 100)
    proxy.alter = altering(f"cursor={at}", lambda page: page["items"][7].update(prob=0.123))
    (found,) = on_random_pages(proxy)
    assert found.verdict == Verdict.WRONG
    assert found.text.startswith("item 8 has prob 0.123; the dump says")
    proxy.alter = altering(f"cursor={at}", lambda page: page.update(nextCursor=at))
    assert [one.text for one in on_random_pages(proxy)] == ["its nextCursor does not lead to item 201"]


def test_a_list_of_another_generation_is_walked_from_its_beginning(proxy: Proxy) -> None:
    other = cursors.mint(_LIST, "p" + "0" * 19, 100)
    proxy.alter = altering(r"sort=new&limit=100$", lambda page: page.update(nextCursor=other))
    (found,) = on_random_pages(proxy)
    assert (found.verdict, found.target.partition("cursor=")[2]) == (Verdict.BROKEN, other)
