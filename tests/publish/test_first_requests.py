"""A takedown deletes the details of its markets after a few requests, however large the site is, whoever is at work."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from generator.api import keys
from generator.api.forms import instant
from generator.config.settings import Config
from generator.errors import StoreError
from generator.models import replaced
from generator.progress import SILENT
from generator.publish import decisions, lookup, record, references, states, takedown
from generator.publish.guards import Options
from generator.publish.lease import Target
from generator.publish.publication import Publication
from generator.publish.record import Published, Work
from generator.source.address import shape
from generator.stores.directory import Directory
from generator.stores.store import BeforeEach, Condition, If, Stored, nothing
from generator.tree import blocklist
from generator.tree.blocklist import BlockedList
from generator.tree.files import STATES
from generator.tree.folder import locked
from tests.publish.faults import sites
from tests.publish.faults.scene import publish_site
from tests.support.sites.builds import NOW, build_now, make_config
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import insert_market, market_id
from tests.support.stores.records import split
from tests.support.stores.s3.wire import Request

#: The requests before the details of a market are gone must be fewer.
LIMIT = 10


class Watched(Directory):
    """Lists the requests after which a detail that it watches is still there."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.watched: Sequence[str] = ()
        self.early: list[str] = []
        #: The keys of each deletion by the last takedown.
        self.deletions: list[list[str]] = []

    def get(self, key: str) -> Stored | None:
        self._note("GET")
        return super().get(key)

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        self._note("PUT")
        return super().put(key, body, condition)

    def delete(self, keys_: Sequence[str], before_each: BeforeEach = nothing) -> None:
        super().delete(keys_, before_each)
        self.deletions.append([*keys_])
        self._note("DELETE")

    def keys(self, prefix: str) -> Iterator[str]:
        self._note("LIST")
        return super().keys(prefix)

    def _note(self, request: str) -> None:
        if any(Path(self.name, key).exists() for key in self.watched):
            self.early.append(request)


def take_down(
    store: Watched, config: Config, name: str, *details: str, notify: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Take a market down as the command does, elsewhere; returns the requests before these details are gone."""
    assert all(Path(store.name, key).exists() for key in details)
    store.watched, store.early, store.deletions = details, [], []
    target = Target.of(store, replaced(config, output=config.output / "elsewhere"))
    by_itself = references.reference_in(name, config)
    ids, names = ([by_itself], []) if by_itself else ([], [decisions.Name(name)])
    found = lookup.known(target.config, target, ids, names, BlockedList())
    request = decisions.Request(
        (by_itself or found.reference_of(decisions.Name(name), config),), is_blocked=True, at=NOW
    )
    takedown.from_store(target, takedown.blocked_by_store(store, request).after, request.ids, SILENT, notify)
    return store.early


def slug_address(config: Config, slug: str) -> str:
    return f"{config.base_url}/{keys.MARKETS}/{slug}"


@pytest.fixture
def slugged(tmp_path: Path, database: sqlite3.Connection) -> tuple[Watched, Config]:
    """A published site whose markets are found by slug, too; its record is large."""
    for number in range(1, 9):
        insert_market(database, number, slug=f"Slug-{number}")
    config = make_config(tmp_path, variant="extended", layout="chunks")
    build_now(config)
    store = Watched(tmp_path / "store")
    with locked(config.output) as folder, split():
        publication = Publication(folder, store, config, shape(config), Options())
        publication.publish(publication.plan(SILENT))
    return store, config


def root_of(store: Watched) -> Published:
    return record.decoded(Path(store.name, record.KEY).read_bytes())


def details(number: int) -> tuple[str, ...]:
    return keys.details(market_id(number), f"slug-{number}")


def test_a_market_named_by_its_address_with_a_slug_is_looked_up_in_its_detail(slugged: tuple[Watched, Config]) -> None:
    store, config = slugged
    with split():
        requests = take_down(store, config, slug_address(config, "slug-3"), *details(3))
    assert 0 < len(requests) < LIMIT


def test_details_go_while_another_publisher_is_at_work_and_the_one_by_slug_first(
    slugged: tuple[Watched, Config],
) -> None:
    """Only the one by id tells the slug, to a takedown that was killed in between and is repeated."""
    store, config = slugged
    root = root_of(store)
    now, soon = instant(store.now()), instant(store.now() + timedelta(minutes=5))
    work = Work(owner="x", process="y", who="process 1 on elsewhere", since=now, deadline=soon, touched=())
    store.put(record.KEY, replaced(root, work=work).encoded(), If.ALWAYS)
    lists, told = {*store.keys(f"{keys.MARKETS}/lists/")}, list[str]()

    def ends(line: str) -> None:
        told.append(line)
        assert store.deletions == [[key] for key in reversed(details(3))]
        assert {*store.keys(f"{keys.MARKETS}/lists/")} == lists
        store.put(record.KEY, root.encoded(), If.ALWAYS)

    with split():
        take_down(store, config, market_id(3), *details(3), notify=ends)
    assert len(told) == 1
    assert told[0].startswith("blocked in every later publish; waiting: ")
    assert market_id(3) not in root_of(store).built.markets
    assert root_of(store).work is None


def test_a_detail_that_was_not_put_as_its_market_was_blocked_is_put_once_that_is_undone(
    published_site: PublishedSite,
) -> None:
    """The takedown and its undo both happen while a publisher is at work, which finds the detail absent in between."""
    published_site.edit(1, question="Edited?")
    published_site.done("build", "--as-of", hour(1))
    detail, steps = keys.detail(market_id(1)), list[str]()

    def is_taken_down_and_undone(request: Request) -> None:
        if request.operation == "PutObject" and request.key.endswith(detail) and not steps:
            steps.append("blocked")
            published_site.block(1)
            published_site.remove(detail)
        elif request.operation == "PutObject" and request.key.endswith(record.KEY) and steps == ["blocked"]:
            steps.append("undone")
            now = instant(published_site.store().now())
            undone = published_site.blocked_list().decided([market_id(1)], is_blocked=False, now=now)
            published_site.put(blocklist.KEY, undone.encoded())

    published_site.server.before = is_taken_down_and_undone
    published_site.done("publish")
    assert steps == ["blocked", "undone"]
    published_site.check()


def test_another_market_in_the_detail_of_a_slug_does_not_mislead(slugged: tuple[Watched, Config]) -> None:
    """Then the whole record is asked."""
    store, config = slugged
    store.put(details(3)[1], Path(store.name, details(4)[1]).read_bytes(), If.ALWAYS)
    with split():
        take_down(store, config, slug_address(config, "slug-3"), *details(3))
    assert [Path(store.name, key).exists() for key in (*details(3), *details(4))] == [False, False, True, True]


def test_a_takedown_that_finds_the_record_damaged_deletes_the_details_and_takes_no_lease(
    slugged: tuple[Watched, Config],
) -> None:
    """A run on another machine that makes the record anew need not wait for it."""
    store, config = slugged
    store.delete([states.key(root_of(store).built.state)])
    with split(), pytest.raises(StoreError, match=r"missing; .* rebuild --verify` writes anew"):
        take_down(store, config, market_id(3), *details(3))
    assert 0 < len(store.early) < LIMIT
    assert root_of(store).work is None


def test_as_few_requests_come_before_the_deletion_on_a_large_site_as_on_a_small_one(tmp_path: Path) -> None:
    requests, sizes = [], []
    for size in (50, 1_000):
        config = make_config(tmp_path, output=tmp_path / str(size), layout="chunks")
        store = Watched(tmp_path / f"store of {size}")
        with split():
            publish_site(sites.make(config, {number: {} for number in range(1, size + 1)}, 0), store)
            sizes.append(sum(listed.size for listed in store.list(STATES)))
            requests.append(take_down(store, config, market_id(6), keys.detail(market_id(6))))
    assert sizes[0] < sizes[1] // 10
    assert requests[0] == requests[1]
    assert 0 < len(requests[0]) < LIMIT
