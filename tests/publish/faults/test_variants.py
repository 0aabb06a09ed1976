"""Publishers that each break one rule of the protocol, and the checks that catch them: proof that the checks can fail.

The real publisher passes the same rounds. The explorer breaks the rules of takedowns and of takeovers.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.errors import BusyError, PublicMarketsError
from generator.progress import SILENT, Progress
from generator.publish import blocklist as store_blocklist
from generator.publish import record
from generator.publish.content import BuiltFolder, Content
from generator.publish.lease import Lease
from generator.publish.plan import Plan
from generator.publish.protocol import Extras, Publisher, Target
from generator.source.address import shape
from generator.stores.s3 import Bucket, RequestOptions
from generator.stores.store import BeforeEach, Condition, If, Store, Stored, UnavailableError
from generator.tree.folder import locked
from tests.publish.faults.scene import LEASE_S, PREFIX, Scene, check_known, check_lists, check_whole
from tests.publish.faults.sites import LISTS, SiteContent
from tests.publish.faults.strikes import DiedError, Strike, Watch, label
from tests.support.faults import GoneError
from tests.support.stores.s3.behaviour import APPLIED_BUT_FAILED, Fault
from tests.support.stores.s3.server import BUCKET
from tests.support.stores.s3.wire import Answer, Request
from tests.support.waiting import PATIENCE_S

#: A breach that goes unnoticed in a third of the races goes unnoticed in one of 59,000 tests.
_TRIES: Final = 10
_YEARS_S: Final = 3 * 365 * 86_400


# ── the broken parts ──────────────────────────────────────────────────────────────────────────────────────────────


class Around:
    """A store with some methods replaced."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class IgnoresConditionsOfRecords(Around):
    def put(self, key: str, body: bytes, condition: Condition) -> str:
        return self.store.put(key, body, If.ALWAYS if key == record.KEY else condition)


class IgnoresConditionsOfObjects(Around):
    def put(self, key: str, body: bytes, condition: Condition) -> str:
        return self.store.put(key, body, condition if key == record.KEY else If.ALWAYS)


class PutsPagesLast(Around):
    """First pages refer to pages that are uploaded only with the next record."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._waiting: dict[str, bytes] = {}

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        if keys.is_immutable(key):
            self._waiting[key] = body
            return ""
        if key == record.KEY:
            for page, content in self._waiting.items():
                self.store.put(page, content, If.ALWAYS)
            self._waiting.clear()
        return self.store.put(key, body, condition)


class SaysNothingOfItsIntent(Around):
    """Writes the record only at the end."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._intended: bytes | None = None

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        if key != record.KEY:
            return self.store.put(key, body, condition)
        if not record.decoded(body).built.complete:
            self._intended = body
            return condition if isinstance(condition, str) else "absent"
        return self.store.put(key, body, If.ABSENT if condition == "absent" else condition)


class NeverLooksBackAtAPut(Around):
    """Like a client with its own retries: reports an applied but unanswered put as failed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._is_unsure = False

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        try:
            return self.store.put(key, body, condition)
        except UnavailableError:
            self._is_unsure = key == record.KEY
            raise

    def get(self, key: str) -> Stored | None:
        return None if self._is_unsure and key == record.KEY else self.store.get(key)


class WaitsForNobody(Lease):
    """Ignores its own deadline and another publisher's record."""

    def require_valid(self) -> None:
        pass

    def confirm_held(self) -> None:
        pass


class BelievesEveryDeadline(Lease):
    """Respects a lease for as long as its record says, however long that is."""

    def refuse_if_busy(self) -> None:
        work = self.published.work if self.published else None
        if work and self.now <= work.deadline:
            raise BusyError("busy")


class DeletesWithoutLooking(Around):
    """Begins to delete under the lease, and does not look at it again."""

    def delete(self, keys: Sequence[str], before_each: BeforeEach) -> None:
        before_each()
        self.store.delete(keys)


class CleansUpWhenUnsure(Around):
    """Treats an unanswered commit as failed, and deletes its uploads."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._uploaded: list[str] = []

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        try:
            etag: str = self.store.put(key, body, condition)
        except UnavailableError:
            if key == record.KEY and record.decoded(body).built.complete:
                self.store.delete(self._uploaded)
            raise
        if keys.is_immutable(key):
            self._uploaded.append(key)
        return etag


class InvalidatesLast(Publisher):
    """Deletes old versions before it invalidates the CDN."""

    def _finish(self, plan: Plan) -> None:
        self._store.purge_versions(API_VERSION)
        super()._finish(plan)


class ForgetsTheCdn(Publisher):
    """Counts an invalidation as made where it knows no CDN."""

    def _finish(self, plan: Plan) -> None:
        super()._finish(plan)
        self._lease.release(self._record().model_copy(update={"are_caches_stale": False}))


class PurgesRetired(Publisher):
    """Deletes retired generations at once, as `--purge-retired` does; where it was not given, in spite of walks."""

    def __init__(self, target: Target, content: Content, progress: Progress) -> None:
        super().__init__(target, content, progress, Extras(purges_retired=True))


@dataclass(frozen=True)
class Variant:
    """The parts of a publisher."""

    around: Callable[[Any], Any] = lambda store: store
    lease: type[Lease] = Lease
    publisher: type[Publisher] = Publisher

    def publish(self, scene: Scene, site: SiteContent) -> int:
        """Publish; returns the exit code."""
        with locked(site.folder) as folder:
            store = self.around(scene.store(site.config))
            lease = self.lease(store, site.config.publish.lease)
            try:
                store_blocklist.read(store)
                lease.read()
                lease.refuse_if_busy()
                content = BuiltFolder.opened(folder, shape(site.config), site.config.cursor.lifetime)
                publisher = self.publisher(Target(store, lease, site.config), content, SILENT)
                publisher.publish(publisher.plan())
            except PublicMarketsError as error:
                return error.exit_code
            return 0


REAL = Variant()


# ── the rounds ────────────────────────────────────────────────────────────────────────────────────────────────────


class Dies(Around):
    """Sends nothing more after a number of first pages."""

    def __init__(self, store: Store, first_pages: int) -> None:
        super().__init__(store)
        self._left = first_pages
        self._lock = threading.Lock()

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        with self._lock:
            self._left -= key.startswith(keys.LISTS) and keys.is_first_page(key)
            if self._left < 0:
                raise DiedError
        return self.store.put(key, body, condition)


def sites_of(scene: Scene) -> tuple[SiteContent, SiteContent]:
    """A site that is published, and one that differs in every list."""
    old = scene.site("a", 0)
    changes = {f"m{number}": {"question": f"Question {number}, edited?"} for number in (1, 3, 7)}
    new = scene.site("b", 1, **changes)
    scene.publish(old)
    return old, new


def race(scene: Scene, variant: Variant) -> None:
    _, new = sites_of(scene)
    other = scene.site("c", 2, m1={"question": "Other?"}, m3={"question": "Other?"})
    both_have_read = threading.Barrier(2)

    def before(request: Request) -> Fault | None:
        if label(request) == "Get record" and not both_have_read.broken:
            with suppress(threading.BrokenBarrierError):
                both_have_read.wait(timeout=PATIENCE_S)
            both_have_read.abort()
        return None

    scene.server.before = before
    with ThreadPoolExecutor(2) as pool:
        codes = [*pool.map(lambda site: variant.publish(scene, site), (new, other))]
    scene.server.before = None
    assert sorted(codes) == [0, 4]
    check_whole(scene.objects(), (new, other)[codes.index(0)])


def freeze(scene: Scene, variant: Variant) -> None:
    _, slow = sites_of(scene)
    fast = scene.site("c", 2, **{f"m{number}": {"question": "Fast?"} for number in (1, 3, 7)})
    is_frozen, may_go_on = threading.Event(), threading.Event()

    def act() -> None:
        is_frozen.set()
        assert may_go_on.wait(timeout=PATIENCE_S)

    with Watch(Strike("Put first", 2), act).over(scene.server), ThreadPoolExecutor(1) as pool:
        code = pool.submit(variant.publish, scene, slow)
        assert is_frozen.wait(timeout=PATIENCE_S)
        scene.pass_time(LEASE_S + 2)
        assert REAL.publish(scene, fast) == 0
        may_go_on.set()
        assert code.result() == 4
    check_whole(scene.objects(), fast)


def freeze_while_deleting(scene: Scene, variant: Variant) -> None:
    """A publisher's lease ends while it deletes one by one, and another publishes again what it was deleting."""
    old, new = sites_of(scene)
    scene.publish(new)
    leases: list[Lease] = []

    class Aging(variant.lease):  # type: ignore[name-defined,misc]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            leases.append(self)

    slow = replace(variant, lease=Aging, publisher=PurgesRetired)
    is_frozen, may_go_on = threading.Event(), threading.Event()

    def act() -> None:
        leases[0]._held_since -= LEASE_S  # noqa: SLF001 - time passes
        is_frozen.set()
        assert may_go_on.wait(timeout=PATIENCE_S)

    watch = Watch(Strike("Delete page", 2, after=True), act)

    def before(request: Request) -> Fault | None:
        return Fault(501, "NotImplemented") if request.operation == "DeleteObjects" else watch.before(request)

    one_by_one = Bucket(
        BUCKET, PREFIX, endpoint_url=scene.server.url, client="obstore",
        options=RequestOptions(immutable=keys.UNPURGED_IMMUTABLE, deletions=1),
    )  # fmt: skip
    slow = replace(slow, around=lambda _: variant.around(one_by_one))
    with ThreadPoolExecutor(1) as pool:
        scene.server.before, scene.server.after = before, watch.after
        code = pool.submit(slow.publish, scene, new)
        assert is_frozen.wait(timeout=PATIENCE_S)
        scene.pass_time(LEASE_S + 2)
        assert REAL.publish(scene, old) == 0
        may_go_on.set()
        result = code.result()
        scene.server.before = scene.server.after = None
    check_whole(scene.objects(), old)
    assert result == 4


def die(scene: Scene, variant: Variant) -> None:
    _, new = sites_of(scene)
    mortal = replace(variant, around=lambda store: variant.around(Dies(store, 4)))
    with pytest.raises(DiedError):
        mortal.publish(scene, new)
    check_known(scene.objects())


def set_clock_right(scene: Scene, variant: Variant) -> None:
    """A publisher dies while the store's clock is three years ahead."""
    old, new = sites_of(scene)
    scene.pass_time(_YEARS_S)
    with pytest.raises(DiedError):
        Variant(lambda store: Dies(store, 4)).publish(scene, new)
    scene.pass_time(-_YEARS_S)
    assert variant.publish(scene, old) == 0
    check_whole(scene.objects(), old)


def lose_answer(scene: Scene, variant: Variant) -> None:
    _, new = sites_of(scene)
    puts: list[Request] = []

    def before(request: Request) -> Fault | None:
        if label(request) != "Put record":
            return None
        puts.append(request)
        return APPLIED_BUT_FAILED if len(puts) == 2 else None

    scene.server.before = before
    assert variant.publish(scene, new) == 0
    scene.server.before = None
    check_whole(scene.objects(), new)


def walk(scene: Scene, variant: Variant) -> None:
    old, new = sites_of(scene)
    walks = [scene.reader.begin(name, 1) for name in LISTS]
    assert variant.publish(scene, new) == 0
    for begun in walks:
        scene.reader.finish(begun)
    check_lists(scene, new.state)
    assert all(begun.whole == old.state[begun.list_name] for begun in walks)


def look(scene: Scene, variant: Variant) -> None:
    """Read every list after each replaced first page."""
    old, new = sites_of(scene)
    broken: list[Exception] = []

    def after(request: Request, _: Answer) -> None:
        if label(request) == "Put first":
            try:
                check_lists(scene, old.state, new.state)
            except (AssertionError, GoneError) as error:
                broken.append(error)

    scene.server.after = after
    assert variant.publish(scene, new) == 0
    scene.server.after = None
    assert not broken


def behind_cdn(scene: Scene, site: SiteContent) -> tuple[SiteContent, Path]:
    """The site with a CDN in its settings, and the file that gets a line for every invalidation."""
    notes = scene.folder / "notes"
    cdn = {"purge_command": ("sh", "-c", f"echo done >> {notes}"), "cache_fill": timedelta(0)}
    publish = site.config.publish.model_copy(update=cdn)
    return replace(site, config=site.config.model_copy(update={"publish": publish})), notes


def deny_versions(scene: Scene, variant: Variant) -> None:
    """A market is withdrawn from a store that denies listing versions."""
    scene.publish(scene.site("a", 0))
    site, notes = behind_cdn(scene, scene.site("b", 1, m3=None))
    scene.server.bucket.versioning = "Enabled"
    scene.server.behaviour.change({"refuses_versions": True})
    assert variant.publish(scene, site) == 1
    scene.server.behaviour.change({"refuses_versions": False})
    assert notes.exists(), "the CDN was not invalidated"


def name_cdn_later(scene: Scene, variant: Variant) -> None:
    """A market is withdrawn before the settings name a CDN."""
    scene.publish(scene.site("a", 0))
    new = scene.site("b", 1, m3=None)
    assert variant.publish(scene, new) == 0
    site, notes = behind_cdn(scene, new)
    assert REAL.publish(scene, site) == 0
    assert notes.exists(), "the CDN was not invalidated"


ROUNDS = (
    race, freeze, freeze_while_deleting, die, set_clock_right, lose_answer, walk, look, deny_versions, name_cdn_later,
)  # fmt: skip
#: Every rule: the publisher that breaks it, the round that catches it, and the error.
BROKEN = {
    "records are put under conditions": (
        Variant(IgnoresConditionsOfRecords),
        race,
        "unknown to the record|== \\[0, 4\\]",
    ),
    "objects are put under conditions": (Variant(IgnoresConditionsOfObjects), freeze, "is stale"),
    "whoever is not sure stops": (Variant(lease=WaitsForNobody), freeze, "is stale"),
    "the intent comes first": (Variant(SaysNothingOfItsIntent), die, "unknown to the record"),
    "no lease is longer than the longest": (Variant(lease=BelievesEveryDeadline), set_clock_right, "4 == 0"),
    "the lease is looked at every few deletions": (Variant(DeletesWithoutLooking), freeze_while_deleting, "is missing"),
    "a put without an answer is looked up": (Variant(NeverLooksBackAtAPut), lose_answer, "4 == 0"),
    "nothing is cleaned up while in doubt": (Variant(CleansUpWhenUnsure), lose_answer, "is missing"),
    "what was replaced is kept for walks": (Variant(publisher=PurgesRetired), walk, "/1-0/1.json"),
    "the CDN comes before old versions": (Variant(publisher=InvalidatesLast), deny_versions, "was not invalidated"),
    "an invalidation is owed until a CDN is known": (
        Variant(publisher=ForgetsTheCdn),
        name_cdn_later,
        "was not invalidated",
    ),
    "pages come before first pages": (Variant(PutsPagesLast), look, "GoneError"),
}


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("play", ROUNDS[::2], ids=lambda play: play.__name__)
def test_the_protocol_passes_every_other_round_with_lists_only(
    scene: Scene, play: Callable[[Scene, Variant], None]
) -> None:
    play(scene, REAL)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(
    ("play", "has_shards"),
    [*zip(ROUNDS, cycle([True, False]))],
    indirect=["has_shards"],
    ids=lambda value: value.__name__ if callable(value) else "shards" if value else "whole",
)
def test_the_protocol_passes_every_round_with_all_kinds_of_objects(
    scene: Scene, play: Callable[[Scene, Variant], None]
) -> None:
    scene.publish_everything()
    play(scene, REAL)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("rule", BROKEN)
def test_a_publisher_that_breaks_a_rule_is_caught(scene: Scene, rule: str) -> None:
    variant, play, caught = BROKEN[rule]
    with pytest.raises((AssertionError, GoneError), match=caught):
        play_often(scene, play, variant)


def play_often(scene: Scene, play: Callable[[Scene, Variant], None], variant: Variant) -> None:
    """Repeat, since a breach can go unnoticed: in a race, one publisher may repair what the other left."""
    for number in range(_TRIES):
        folder = scene.folder / str(number)
        folder.mkdir()
        again = Scene(folder, scene.server)
        again.reset({})
        play(again, variant)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("play", [race, freeze], ids=lambda play: play.__name__)
def test_a_store_that_ignores_conditions_is_caught(scene: Scene, play: Callable[[Scene, Variant], None]) -> None:
    scene.server.behaviour.change({"ignores_conditions": True})
    # Without the probe: the rounds must fail for another reason than the publishers' refusal.
    with pytest.raises((AssertionError, GoneError)):
        play(SceneThatTrusts(scene.folder, scene.server), REAL)


class SceneThatTrusts(Scene):
    """Publishes without a probe of the store."""

    def publish(self, site: SiteContent, **_: Any) -> Any:
        assert REAL.publish(self, site) == 0
