"""Stores and records that were altered, damaged, foreign, out of date or full; and other servers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.errors import StoreError
from generator.progress import SILENT
from generator.publish import record, takedown
from generator.publish.lease import Target
from generator.stores.directory import Directory
from generator.stores.factory import open_store
from generator.stores.store import BeforeEach, Condition, If, Store, nothing
from generator.tree.blocklist import BlockedList
from tests.publish.faults.scene import (
    LEASE_S,
    LIFETIME_S,
    PREFIX,
    Found,
    Scene,
    check_hidden,
    check_known,
    check_lists,
    check_whole,
    publish_site,
    record_of,
)
from tests.publish.faults.sites import LISTS, SiteContent, make, markets, without
from tests.support.faults import Reader
from tests.support.sites.builds import NOW, make_config
from tests.support.sites.rows import market_id
from tests.support.stores.places import use_credentials
from tests.support.stores.s3.servers import Endpoint


@pytest.fixture
def published(scene: Scene) -> SiteContent:
    """A site published over another, so that there are retired generations."""
    scene.publish(scene.site("a", 0, m1={"question": "Old?"}))
    site = scene.site("b", 1)
    scene.publish(site)
    return site


# ── altered objects ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("share", range(5))
def test_altered_objects_are_found_and_repaired(scene: Scene, published: SiteContent, share: int) -> None:
    objects = dict(scene.objects())
    altered = sorted(key for key in objects if key.startswith("v1/"))[share::5]
    for number, key in enumerate(altered):
        if number % 3 == 0:
            del objects[key]
        elif number % 3 == 1:
            objects[key] = Found(b"{}", "", objects[key].headers)
        else:
            objects[f"{key}.orig"] = objects[key]
    scene.reset(objects)
    with pytest.raises(AssertionError):
        check_whole(scene.objects(), published)
    scene.publish(published, is_verifying=True)
    check_whole(scene.objects(), published)
    check_lists(scene, published.state)
    assert len(altered) > 10


# ── records ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_outdated_record_is_repaired_by_verify(scene: Scene) -> None:
    first, second = scene.site("a", 0), scene.site("b", 1, m1={"question": "New?"}, m3=None)
    scene.publish(first)
    old = scene.objects()[record.KEY]
    scene.publish(second)
    scene.reset({**scene.objects(), record.KEY: old})
    scene.publish(second, is_verifying=True)
    check_whole(scene.objects(), second)
    check_hidden(scene.objects(), 3)


# ── clocks ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    "steps",
    [(3600, *[LIFETIME_S / 4] * 2), (-3600, *[LIFETIME_S / 4] * 2), (0, 3600, -7200, 1800)],
    ids=["ahead", "behind", "set back between two runs"],
)
def test_a_store_whose_clock_is_off_retires_by_its_own_clock_and_nothing_early(
    scene: Scene, steps: tuple[float, ...]
) -> None:
    for minute, step in enumerate(steps):
        scene.pass_time(step)
        site = scene.site("a", minute, m1={"question": f"Edition {minute}?"})
        scene.publish(site)
        check_whole(scene.objects(), site)
        assert retired(scene) == minute * len(LISTS) * 2 // 3
    scene.pass_time(LIFETIME_S * 5 / 4)
    site = scene.site("a", 4, m1={"question": "Last?"})
    scene.publish(site)
    check_whole(scene.objects(), site)
    assert retired(scene) == len(LISTS) * 2 // 3


def retired(scene: Scene) -> int:
    published = record_of(scene.objects())
    assert published
    return len(published.built.retired)


# ── other servers ─────────────────────────────────────────────────────────────────────────────────────────────────


def objects_of(store: Store) -> dict[str, Found]:
    """Every object of any store, without its headers."""
    found = {}
    for listed in store.list(""):
        stored = store.get(listed.key)
        assert stored
        found[listed.key] = Found(stored.body, stored.etag, {})
    return found


@pytest.mark.campaign(short=0)
def test_another_server_agrees(radosgw: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch, radosgw.key_id, radosgw.secret)
    bucket = radosgw.new_bucket()

    def config(name: str) -> Config:
        (tmp_path / name).mkdir()
        settings: dict[str, Any] = {"publish__target": f"s3://{bucket}/{PREFIX}", "publish__endpoint_url": radosgw.url}
        return make_config(tmp_path / name, source__url=f"sqlite:///{tmp_path}/markets.db", **settings)

    old, new = make(config("a"), markets(), 0), make(config("b"), markets(m1={"question": "New?"}, m3=None), 1)
    stores = [open_store(site.config) for site in (old, new)]
    publish_site(old, stores[0])
    check_same(stores[0], old)
    publish_site(new, stores[1])
    check_same(stores[1], new)
    check_hidden(objects_of(stores[1]), 3)
    blocked = BlockedList().decided([market_id(6)], is_blocked=True, now=NOW)
    takedown.from_store(Target.of(stores[0], old.config), blocked, blocked.ids(), SILENT, lambda _: None)
    check_hidden(objects_of(stores[0]), 3, 6)
    check_known(objects_of(stores[0]))
    read = reader_of(stores[0])
    read.check(without(new.state, 6), lists=LISTS)
    stores[0].put("v1/stranger.json", b"{}", If.ALWAYS)
    publish_site(new, stores[1], is_verifying=True)
    check_known(objects_of(stores[1]))
    read.check(without(new.state, 6), lists=LISTS)


def check_same(store: Store, site: SiteContent) -> None:
    objects = objects_of(store)
    check_known(objects)
    site = site.published()
    # The folder keeps the index of the session that its build began and publishing replaced: no store has seen it.
    current = site.manifest.current["changes"].generation if "changes" in site.manifest.current else ""
    built = {key: body for key, body in site.files.items() if "/changes/" not in key or current in key}
    assert {key: objects[key].body for key in built} == built
    reader_of(store).check(site.state, lists=LISTS)


def reader_of(store: Store) -> Reader:
    def read(key: str) -> bytes | None:
        stored = store.get(key)
        return stored.body if stored else None

    return Reader(read)


class NotedDirectory(Directory):
    """Records the order of what reaches the disk; deletes no generation while it `refuses`. Its clock is settable."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.refuses = False
        self.ahead = timedelta()
        self.calls: list[str] = []

    def now(self) -> datetime:
        return super().now() + self.ahead

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        if key == record.KEY:
            self.calls.append("record")
        return super().put(key, body, condition)

    def delete(self, keys_: Sequence[str], before_each: BeforeEach = nothing) -> None:
        if self.refuses and any(map(keys.is_immutable, keys_)):
            raise StoreError("refused")
        if any(key.startswith("v1/") and Path(self.name, key).exists() for key in keys_):
            self.calls.append("delete")
        super().delete(keys_, before_each)

    def flush(self) -> None:
        self.calls.append("flush")
        super().flush()


def test_what_an_earlier_run_left_is_off_the_disk_before_the_record_forgets_it(scene: Scene, tmp_path: Path) -> None:
    store = NotedDirectory(tmp_path / "site")
    publish_site(scene.site("a", 0), store)
    new = scene.site("b", 1, m6=None)
    store.refuses = True
    with pytest.raises(StoreError, match="refused"):
        publish_site(new, store)
    store.refuses, store.ahead = False, timedelta(seconds=LEASE_S + 2)
    store.calls.clear()
    publish_site(new, store)
    calls = [call for call, _ in groupby(store.calls)]
    assert calls[calls.index("record") :][:4] == ["record", "delete", "flush", "record"]


def test_a_takedown_without_a_record_ends_when_details_are_off_the_disk(scene: Scene, tmp_path: Path) -> None:
    store = NotedDirectory(tmp_path / "site")
    site = scene.site("a", 0)
    publish_site(site, store)
    (tmp_path / "site" / record.KEY).unlink()
    store.calls.clear()
    blocked = BlockedList().decided([market_id(6)], is_blocked=True, now=NOW)
    with pytest.raises(StoreError, match="the details of blocked markets were deleted"):
        takedown.from_store(Target.of(store, site.config), blocked, blocked.ids(), SILENT, lambda _: None)
    assert store.calls == ["delete", "flush", "flush"]
