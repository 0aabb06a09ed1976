"""Lists without some markets, made of what is in place, are those of the rest, byte for byte; others are not read."""

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator import __version__
from generator.api import keys
from generator.config.settings import Config
from generator.markets import row_validation
from generator.markets.market import Market
from generator.models import replaced
from generator.progress import SILENT
from generator.site import documents
from generator.site.catalog import Catalog
from generator.site.make import memberships_of
from generator.site.published import PublishedState
from generator.site.short_lists import ListsInPlace
from generator.tree import membership, staging
from generator.tree.folder import locked
from generator.tree.layouts import COMPACT
from generator.tree.manifest import Manifest
from generator.tree.staging import StagedFamily
from tests.site import chosen_sites
from tests.site.chosen_sites import rich_site
from tests.site.taken_down import workplace
from tests.support.sites.builds import NOW
from tests.support.sites.rows import catalog_of, market_id, market_row

CONFIG: Final = Config(layout=COMPACT, variant="extended")
STATES: Final = ("open", "open", "open", "closed", "resolved", "cancelled")
#: Some ninety lists: those of a category are shorter, and `rain` ends with the market that is alone in it.
CATEGORIES: Final = ("snow", "frost")
ALONE: Final = 5


class Place:
    """A folder in memory: what is in place, what is staged, and which keys were read."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.staged: dict[str, bytes] = {}
        self.read_keys: list[str] = []

    def read(self, key: str) -> bytes | None:
        self.read_keys.append(key)
        return self.objects.get(key)

    def are_placed(self, object_keys: Iterable[str]) -> bool:
        return self.objects.keys() >= {*object_keys}

    def put(self, key: str, body: bytes) -> bool:
        if self.objects.get(key) == body:
            return False
        self.staged[key] = body
        return True

    def move(self) -> None:
        self.objects |= self.staged
        self.staged = {}


def market(dice: random.Random, number: int) -> Market:
    """A market whose sort keys others have, too."""
    status = dice.choice(STATES)
    day = dice.randrange(1, 4)
    row = market_row(
        number,
        status=status,
        volume=dice.choice([0.0, 7.5, 1e21, dice.random()]),
        trader_count=dice.randrange(3),
        created_at=f"2026-01-0{day} 00:00:00.000000",
        last_activity_at=f"2026-01-1{day} 00:00:00.000000",
        close_time=f"2026-0{day + 3}-01 00:00:00.000000" if status == "open" else "2026-01-20 00:00:00.000000",
        resolution="NO" if status == "resolved" else None,
        resolved_at=f"2026-01-2{day} 00:00:00.000000" if status in {"resolved", "cancelled"} else None,
    )
    names = [name for name in CATEGORIES if dice.random() < 0.3] + ["rain"] * (number == ALONE)
    extended = row_validation.ExtendedFields(None, names)
    return Market.of(row_validation.market(row, fx=None, fills24h=0, as_of=NOW, extended=extended))


def made_whole(place: Place, catalog: Catalog) -> dict[str, StagedFamily]:
    lists = documents.lists(catalog, documents.offered(catalog, CONFIG))
    return {one.name: staging.stage_list(place, COMPACT, {}, one) for one in lists}  # type: ignore[arg-type]


class Site:
    """The lists of some markets, in place."""

    def __init__(self, count: int, seed: int) -> None:
        dice = random.Random(seed)  # noqa: S311 - the same markets every time
        self.catalog = catalog_of(*(market(dice, number) for number in range(1, count + 1)))
        self.place = Place()
        lists = made_whole(self.place, self.catalog)
        self.place.move()
        offered = documents.offered(self.catalog, CONFIG)
        self.state = Manifest(
            complete=True, as_of=NOW, version=__version__, variant="extended", layout=COMPACT, retired=(),
            current={name: one.current for name, one in lists.items()},
            objects={key: digest for one in lists.values() for key, digest in one.first_pages.objects.items()},
            markets={one.id: memberships_of(one, offered) for one in self.catalog.markets},
        )  # fmt: skip

    def without(self, gone: Collection[str], found: Catalog | None = None) -> dict[str, StagedFamily]:
        lists = ListsInPlace(self.place, self.state, map)  # type: ignore[arg-type]
        known = self.catalog if found is None else found
        return lists.without(known, known.without(gone), CONFIG)

    def changed(self, gone: Collection[str]) -> set[str]:
        lists = membership.lists_of(state for market_id in gone for state in self.state.markets[market_id])
        return {*lists} & self.state.current.keys()

    def read_lists(self) -> set[str]:
        return {
            name for name in self.state.current for key in self.place.read_keys
            if key.startswith(f"{keys.list_prefix(name)}/")
        }  # fmt: skip


def ids(*numbers: int) -> list[str]:
    return [*map(market_id, numbers)]


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 900), st.integers(0, 10**9), st.data())
def test_lists_without_some_markets_are_those_of_the_rest(count: int, seed: int, data: Any) -> None:
    site = Site(count, seed)
    gone = ids(*data.draw(st.sets(st.integers(1, count), max_size=6)))
    found = site.without(gone)
    expected_place = Place()
    expected = made_whole(expected_place, site.catalog.without(gone))
    assert found.keys() == expected.keys()
    assert {name: one.current for name, one in found.items()} == {name: one.current for name, one in expected.items()}
    heads = {key: digest for one in found.values() for key, digest in one.first_pages.objects.items()}
    assert heads == {key: digest for one in expected.values() for key, digest in one.first_pages.objects.items()}
    kept = {key: body for key, body in site.place.objects.items() if key not in site.place.staged}
    assert expected_place.staged.items() <= {**kept, **site.place.staged}.items()
    assert site.place.staged.items() <= expected_place.staged.items()
    assert site.read_lists() <= site.changed(gone)


@pytest.fixture(scope="module")
def large() -> Site:
    return Site(3_000, 1)


@pytest.fixture
def site(large: Site) -> Site:
    place = Place()
    place.objects = {**large.place.objects}
    copied = Site.__new__(Site)
    copied.catalog, copied.state, copied.place = large.catalog, large.state, place
    return copied


def test_of_a_large_list_few_objects_are_read(site: Site) -> None:
    gone = ids(1_234)
    found = site.without(gone)
    changed = site.changed(gone)
    assert found.keys() == site.state.current.keys()
    assert len(site.state.current["all/new"].chunks) > 15
    assert 10 <= len(changed) < len(found)
    assert site.read_lists() == changed
    assert 10 * len(changed) > len(site.place.read_keys) == len({*site.place.read_keys})
    assert {name for name, one in found.items() if one.new} == changed
    assert len(site.place.staged) < 6 * len(changed)


def test_a_category_that_ends_has_no_lists_any_more(site: Site) -> None:
    found = site.without(ids(ALONE))
    assert site.state.current.keys() - found.keys() == {name for name in site.state.current if ".rain/" in name}
    assert len(found) < len(site.state.current)


def test_many_markets_are_sooner_left_out_of_whole_lists(site: Site) -> None:
    gone = ids(*range(100, 400))
    assert site.changed(gone).isdisjoint(site.without(gone))
    assert not site.place.read_keys


#: What is in doubt, and how many lists are then left to be made whole.
IN_DOUBT: Final[dict[str, Callable[[Site], object]]] = {
    "an index is missing": lambda site: site.place.objects.pop(index_of(site, "all/new")),
    "an index is damaged": lambda site: damage(site, index_of(site, "all/new")),
    "a chunk at the beginning is missing": lambda site: site.place.objects.pop(chunk_of(site, "all/new", 0)),
    "a chunk elsewhere is missing": lambda site: site.place.objects.pop(chunk_of(site, "all/new", -1)),
    "a chunk that is read is damaged": lambda site: damage(site, chunk_of(site, "all/new", 0)),
    "a list that does not change lacks its index": lambda site: site.place.objects.pop(index_of(site, "closed/new")),
    "a list that does not change lacks a chunk": lambda site: site.place.objects.pop(chunk_of(site, "closed/new", 0)),
}


def index_of(site: Site, name: str) -> str:
    return keys.index(name, site.state.current[name].generation)


def chunk_of(site: Site, name: str, number: int) -> str:
    return keys.chunk(name, site.state.current[name].chunks[number])


def damage(site: Site, key: str) -> None:
    site.place.objects[key] = site.place.objects[key].replace(b'"', b"'", 1)


@pytest.mark.parametrize("fault", IN_DOUBT)
def test_a_list_in_doubt_is_left_to_be_made_whole(fault: str, site: Site) -> None:
    gone = next(one.id for one in site.catalog.markets if one.status == "open")
    IN_DOUBT[fault](site)
    found = site.without([gone])
    assert len(site.state.current.keys() - found.keys()) == 1


def test_so_is_every_list_of_a_market_that_the_catalog_has_otherwise(site: Site) -> None:
    gone = site.catalog.markets[700]
    other = gone._replace(body=gone.body.replace(b'"prob":0.5', b'"prob":0.6'))
    assert other != gone
    rest = [one for one in site.catalog.markets if one is not gone]
    found = site.without([gone.id], catalog_of(*rest, other))
    assert site.state.current.keys() - found.keys() == site.changed([gone.id])


def test_and_all_lists_of_which_nobody_knows_where_markets_are(site: Site) -> None:
    assert site.without(ids(8), site.catalog.without(ids(7))) == {}


#: What is known of a state in place, and how many of its lists are then made of chunks: those of an open market.
STATES_IN_PLACE: Final[dict[str, tuple[Mapping[str, Any], Collection[str], int]]] = {
    "it is whole": ({}, (), 10),
    "a run was killed": ({"complete": False}, (), 0),
    "an object may have been replaced": ({}, (keys.SNAPSHOT,), 0),
    "another version cut its chunks": ({"version": "0.0.1"}, (), 0),
}


@pytest.mark.parametrize("known", STATES_IN_PLACE)
def test_nothing_is_made_of_chunks_nor_of_the_dump_alone_unless_all_that_is_in_place_is_known(known: str) -> None:
    update, doubted, count = STATES_IN_PLACE[known]
    looked_into, details = list[str](), list[str]()

    def each(work: Callable[[str], Any], names: Iterable[str]) -> Iterable[Any]:
        for name in names:
            (details if name.startswith(keys.DETAILS) else looked_into).append(name)
        return map(work, names)

    with workplace(rich_site(COMPACT, "core")) as place:
        chosen_sites.fill(place.folder, place.site.first)
        place.build(chosen_sites.FIRST)
        with locked(place.folder / "output") as folder:
            built = folder.manifest()
            assert built
            state = PublishedState(replaced(built, **update), folder, each, frozenset(doubted))
            rendered, _ = state.without(frozenset(ids(4)), SILENT)
    assert (len(looked_into), [*details]) == (count, [] if count else [keys.detail(market_id(7))])
    assert market_id(4) not in rendered.memberships
