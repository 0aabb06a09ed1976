"""Shared by the fault tests of publishing: a bucket, publishers, readers, and the invariants."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import PublicMarketsError
from generator.progress import SILENT
from generator.publish import takedown
from generator.publish.apply import Tally
from generator.publish.guards import LiftedGuards, Options
from generator.publish.lease import LEASE, Target
from generator.publish.publication import Outcome, Publication
from generator.publish.record import Published
from generator.search.buckets import KEY_LENGTH
from generator.source.address import shape
from generator.stores.factory import open_store
from generator.stores.store import Store
from generator.tree import pages
from generator.tree.blocklist import BlockedList
from generator.tree.files import MANIFEST
from generator.tree.folder import locked
from generator.tree.generations import object_keys
from generator.tree.run_lock import Notify
from tests.publish.explorer import downloads
from tests.publish.faults import sites as publish_sites
from tests.publish.faults.sites import LISTS, SiteContent
from tests.support import commands
from tests.support.faults import State, expected_keys, fast_folder
from tests.support.readers.remembered import RememberingReader
from tests.support.sites.builds import NOW, make_config, text_of
from tests.support.sites.rows import market_id
from tests.support.stores.places import use_credentials
from tests.support.stores.records import named_states, state_keys, whole
from tests.support.stores.s3.bucket import Bucket, RefusedError
from tests.support.stores.s3.server import S3Server

PREFIX: Final = "api/"
LIFETIME_S: Final = 24 * 3600
LEASE_S: Final = LEASE.total_seconds()
LIFTED: Final = LiftedGuards(shrink=True, older=True)
#: Plays a test with the record with a state, and with a whole one.
ON_BOTH: Final = pytest.mark.parametrize("is_split", [True, False], indirect=True, ids=["split", "whole"])


@dataclass(frozen=True)
class Found:
    """An object as a store has it."""

    body: bytes
    etag: str
    headers: Mapping[str, str]


#: Everything in a bucket, by key without the prefix.
Objects = Mapping[str, Found]


class Scene:
    """A bucket on our S3 server, folders with sites, and publishers in this process and others."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.folder = folder
        self.server = server
        self.reader = RememberingReader(self.read)
        self._stores: dict[Path, Store] = {}
        #: The layout of each machine that does not use the default.
        self.layouts: dict[str, str] = {}
        #: Whether its machines publish a search index; and dump, change feed and Parquet.
        self.searches = False
        self.has_downloads = False
        #: The folder that later ones begin as a copy of, so that their change feeds go on with its session.
        self._origin: Path | None = None
        #: Who has read the change feed: the serial and session, and the lines of the dump.
        self._followers: set[tuple[int, str, tuple[object, ...]]] = set()

    def publish_everything(self) -> None:
        """From now on, its machines publish every kind of object."""
        self.searches = self.has_downloads = True

    def config(self, name: str, **settings: object) -> Config:
        """The settings of a machine that publishes here, with an output folder of its own."""
        (self.folder / name).mkdir(exist_ok=True)
        return make_config(self.folder / name, **self._settings(name) | settings)

    def arguments(self, command: str, name: str, *more: str) -> list[str]:
        """The command line with the settings of `config(name)`."""
        config = self.config(name)
        place = ["--config", str(self.folder / name / "config.yaml"), "--set", f"output={config.output}"]
        return [command, *more, *place, *commands.overrides(self._settings(name))]

    @property
    def lists(self) -> tuple[str, ...]:
        """The lists and searches that readers walk."""
        return (*LISTS, *publish_sites.SEARCHES) if self.searches else LISTS

    def _settings(self, name: str) -> dict[str, object]:
        search = {"variant": "extended", "search": "title+description"} if self.searches else {}
        downloads = {"dumps__parquet": True, "dumps__fills": True, "history__public": True}
        kinds = downloads if self.has_downloads else {"dumps__ndjson": False}
        return {**search, **kinds} | {
            "layout": self.layouts.get(name, pages.LAYOUT),
            "source__url": f"sqlite:///{self.folder / 'markets.db'}",
            "publish__target": f"s3://{self.server.name}/{PREFIX}",
            "publish__endpoint_url": self.server.url,
            "cursor__lifetime": LIFETIME_S,
        }

    def site(self, name: str, minute: int, **changes: Mapping[str, Any] | None) -> SiteContent:
        """Make a site in its own folder, from the usual markets with some changes."""
        config = self.config(name)
        if self.has_downloads and self._origin and not (config.output / MANIFEST).exists():
            shutil.copytree(self._origin, config.output, dirs_exist_ok=True)
        self._origin = self._origin or config.output
        return publish_sites.make(config, publish_sites.markets(**changes), minute)

    def publish(self, site: SiteContent, **options: Any) -> Outcome:
        """Publish in this process; each machine opens its store once."""
        return publish_site(site, self.store(site.config), **options)

    def store(self, config: Config) -> Store:
        if config.output not in self._stores:
            self._stores[config.output] = open_store(config)
        return self._stores[config.output]

    def read(self, key: str) -> bytes | None:
        """Read as the edge does."""
        try:
            return self.server.bucket.get(PREFIX + key).body
        except RefusedError:
            return None

    def objects(self) -> dict[str, Found]:
        """All current objects."""
        return {
            key.removeprefix(PREFIX): Found(version.body, version.etag.strip('"'), version.headers)
            for key, version in self.server.bucket.current().items()
        }

    def reset(self, objects: Objects) -> None:
        """Replace the whole content with these objects."""
        bucket = Bucket(self.server.behaviour, self.server.clock)
        for key, found in objects.items():
            bucket.put(PREFIX + key, found.body, found.headers)
        self.server.bucket = bucket
        self._followers.clear()
        self._follow({key: found.body for key, found in objects.items()})

    def check_followers(self) -> None:
        """The steps of the change feed lead everybody who has read it to what it says now."""
        bodies = {key: found.body for key, found in self.objects().items()}
        for serial, session, had in self._followers:
            if downloads.is_in_session(bodies, session):
                assert not downloads.leads_astray(bodies, serial, had), "the change feed leads to another state"
        self._follow(bodies)

    def _follow(self, bodies: Mapping[str, bytes]) -> None:
        self._followers |= {
            (serial, session, had) for (name, serial, session), had in downloads.begun(bodies) if name == keys.CHANGES
        }

    def pass_time(self, seconds: float) -> None:
        """Move the store's clock."""
        self.server.behaviour.clock_offset_s += seconds


@pytest.fixture
def scene(tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    use_credentials(monkeypatch)
    with fast_folder(tmp_path) as folder:
        yield Scene(folder, s3)


def code_of(run: Callable[[], object]) -> int:
    """The exit code that the command would have."""
    try:
        run()
    except PublicMarketsError as error:
        return error.exit_code
    return 0


def publish_site(site: SiteContent, store: Store, lifted: LiftedGuards = LIFTED, **options: bool) -> Outcome:
    """Publish in this process; `options` are those of the run."""
    with locked(site.folder) as folder:
        publication = Publication(folder, store, site.config, shape(site.config), Options(lifted, **options))
        return publication.publish(publication.plan(SILENT))


def take_down(scene: Scene, *numbers: int, notify: Notify = lambda _: None, store: Store | None = None) -> Tally:
    """Take markets down from a machine that has no output."""
    blocked = BlockedList().decided(map(market_id, numbers), is_blocked=True, now=NOW)
    config = scene.config("elsewhere")
    target = Target.of(store or scene.store(config), config)
    return takedown.from_store(target, blocked, blocked.ids(), SILENT, notify)


# ── invariants ───────────────────────────────────────────────────────────────────────────────────────────────────


def record_of(objects: Objects) -> Published | None:
    return whole({key: found.body for key, found in objects.items()})


def check_known(objects: Objects) -> None:
    """At any moment: the record accounts for every key, so leftovers can be found and deleted."""
    published = record_of(objects)
    known: set[str] = set()
    if published:
        known = expected_keys(published.built) | published.unfinished()
        for entry in published.due:
            known.update(object_keys(entry.list, entry))
    unknown = sorted(key for key in objects if key.startswith(f"{API_VERSION}/") and key not in known)
    assert not unknown, f"unknown to the record: {unknown[:5]} of {len(unknown)}"


def check_whole(objects: Objects, site: SiteContent) -> None:
    """After a completed publish: the store has exactly this site and the retired generations of the record."""
    site, published = site.published(), record_of(objects)
    assert published, "nothing is published"
    assert published.work is None, "the lease is still held"
    assert published.built.complete
    assert not published.due
    assert not [key for key in objects if key.startswith("probe-")], "a probe was left"
    assert published.built.current == site.manifest.current, "the record is of another site"
    assert published.built.objects == site.manifest.objects, "the record lists other objects"
    check_known(objects)
    for key in site.manifest.objects:
        assert key in objects, f"{key} is missing"
        assert objects[key].body == site.files[key], f"{key} is stale"
        assert published.etags[key] == objects[key].etag, f"{key} has another ETag than recorded"
    retired = tuple(entry for entry in published.built.retired if not entry.partial)
    for key in expected_keys(published.built.model_copy(update={"retired": retired})):
        assert key in objects, f"{key} is missing"
    if keys.head(keys.DUMPS) in site.manifest.objects:
        check_downloads(objects, site.state)
    left = state_keys(objects) - named_states({key: found.body for key, found in objects.items()})
    # What a publisher that was cut short put late is looked for in the next runs.
    assert published.doubted_until or not left, f"states were left: {sorted(left)}"


def check_downloads(objects: Objects, *states: State) -> None:
    """The heads of downloads lead to whole files, and the dump has the markets of one of these states."""
    bodies = {key: found.body for key, found in objects.items()}
    assert not [*downloads.faults(bodies)]
    assert keys.head(keys.CHANGES) in bodies
    assert downloads.markets(bodies) in [(*sorted(state["all/popular"]),) for state in states]


def check_hidden(objects: Objects, *numbers: int) -> None:
    """No trace of withdrawn markets is readable."""
    for number in numbers:
        for key, found in objects.items():
            if key.startswith(f"{API_VERSION}/"):
                assert market_id(number) not in key, f"{key} is there"
                assert not _shows(number, key, found.body), f"{key} shows market {number}"


@lru_cache(maxsize=10_000)
def _shows(number: int, key: str, body: bytes) -> bool:
    word_in_index = publish_sites.secret(number)[KEY_LENGTH:]
    texts = (market_id(number).encode(), f"Question {number}".encode(), word_in_index.encode())
    return any(text in text_of(key, body) for text in texts)


def check_lists(scene: Scene, *states: State, with_searches: bool = True) -> None:
    """Every list, search and download can be read to its end, and shows one of these states."""
    scene.reader.check(*states, lists=scene.lists if with_searches else LISTS)
    if scene.has_downloads:
        check_downloads(scene.objects(), *states)
        scene.check_followers()
