"""Finds everything that would stop a publish, and warns about the store's configuration.

It writes one object and deletes it again, to see whether the store honours conditional puts.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from generator.api import forms
from generator.config.settings import Config
from generator.errors import CheckError, StoreError
from generator.findings import Finding, clocks, error, fine, tried, warning
from generator.publish import blocklist, copies, lease, store_checks
from generator.publish.lease import Lease
from generator.publish.record import Published, Work
from generator.stores.factory import open_store
from generator.stores.requests import explaining_outage, what_to_check, with_retries
from generator.stores.store import Store, UnavailableError
from generator.tree import blocklist as folder_blocklist
from generator.tree import folder
from generator.tree.blocklist import Hold, sentence
from generator.tree.manifest import Manifest
from generator.tree.status import AHEAD, AHEAD_HERE, STALE_AFTER, age, is_ahead
from generator.wording import are, counted, distance

Answer = TypeVar("Answer")
#: This machine's clock.
Clock = Callable[[], datetime]


def findings(config: Config, clock: Clock) -> Iterator[Finding]:
    """Check the store at `publish.target`."""
    yield from _warnings(store_checks.unused_endpoint(config))
    yield from _warnings(store_checks.plain_endpoint(config))
    store = _StoreCheck(open_store(config), config, clock)
    # If the record cannot be read, no other check can pass.
    yield from store.record()
    for check in (
        store.state(), store.clock(), store.conditions(), store.exposure(), store.versions(), store.copies()
    ):  # fmt: skip
        yield from tried(check)


def require_fresh(config: Config, clock: Clock) -> str:
    """Say what readers are shown, and how old it is; raise CheckError if it is so old that cron must have stalled.

    Without `publish.target`, that is the output folder, by this machine's clock.
    """
    command = "rebuild" if config.publish.target else "build"
    shown = _at_target(config) if config.publish.target else _in_folder(config, clock)
    name, built, hold, now = shown.name, shown.built, shown.hold, shown.now
    if built is None:
        raise CheckError(f"{name}: nothing is published there; run `public-markets {command}`")
    if built.is_first:
        raise CheckError(f"{name}: {_unended(shown, command)}")
    state = f"{name}: {_state(built, now)}"
    if is_ahead(built.as_of, now):
        raise CheckError(f"{state}: {AHEAD if config.publish.target else AHEAD_HERE}")
    if age(built.as_of, now) > STALE_AFTER * config.schedule:
        cause = (
            sentence(hold, has_target=bool(config.publish.target))
            if hold
            else f"check that cron runs, and how the last `public-markets {command}` ended"
        )
        late = f"which is more than {STALE_AFTER} schedules of {counted(config.schedule, 'minute')}"
        raise CheckError(f"{state}, {late}; {cause}")
    return f"{state}; {hold}" if hold else state


class _Shown(NamedTuple):
    """What readers are shown; `built` is None if nothing is, and `now` is the time by the clock of that place.

    `work` is that of the publisher that the record names, at work or not.
    """

    name: str
    built: Manifest | None
    now: str
    hold: Hold | None = None
    work: Work | None = None


def _at_target(config: Config) -> _Shown:
    store = open_store(config)
    with explaining_outage(store):
        published, _ = with_retries(partial(lease.root, store))
        hold = blocklist.read(store).hold if published and published.is_held else None
        now = forms.instant(with_retries(store.now))
    if published is None:
        return _Shown(store.name, None, now)
    return _Shown(store.name, published.built, now, hold or published.hold, published.work)


def _in_folder(config: Config, clock: Clock) -> _Shown:
    with folder.read_only(config.output) as output:
        hold = folder_blocklist.load(output).hold
        return _Shown(f"{config.output}/", output.manifest(is_light=True), forms.instant(clock()), hold)


class _StoreCheck:
    def __init__(self, store: Store, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        #: The record's root.
        self._published: Published | None = None

    def record(self) -> Iterator[Finding]:
        """Whether the store answers, and what is published there."""
        name = self._store.name
        (published, _), now = self._ask(lambda: (lease.root(self._store), forms.instant(self._store.now())))
        if published is None:
            yield from self._unpublished()
            return
        self._published = published
        blocked = self._ask(lambda: blocklist.read(self._store))
        built, hold = published.built, blocked.hold or published.hold
        state = f"{name}: {_state(built, now)}"
        is_running = published.work is not None and lease.is_running(published.work, now)
        if built.is_first:
            if not is_running:
                yield warning(f"{name}: {_unended(_Shown(name, built, now), 'rebuild')}")
        elif is_ahead(built.as_of, now):
            yield warning(f"{state}: {AHEAD}")
        elif age(built.as_of, now) > STALE_AFTER * self._config.schedule and not hold:
            yield warning(f"{state}; check that cron runs")
        else:
            yield fine(state)
        if hold:
            yield warning(f"{name}: {sentence(hold, has_target=True)}")
        if published.work and is_running:
            yield warning(f"{name}: {published.work.who} is publishing there, until {published.work.deadline} at most")
        site = built.settings.get("base_url", self._config.base_url)
        if site != self._config.base_url:
            yield error(
                f"{name}: holds the site {site}, but base_url is {self._config.base_url}; if it is the right "
                "target, publish once with --accept other-site"
            )
        self._ask(lambda: blocklist.require_whole(self._store, blocked))

    def state(self) -> Iterator[Finding]:
        """Whether the record's state is whole."""
        if self._published and self._published.is_root:
            Lease(self._store).read()
            yield fine(f"{self._store.name}: the record's state is whole")

    def _unpublished(self) -> Iterator[Finding]:
        name = self._store.name
        problem = self._ask(partial(store_checks.foreign_object, self._store))
        yield error(problem) if problem else fine(f"{name}: can be read; nothing is published there yet")

    def clock(self) -> Iterator[Finding]:
        """Whether the clocks of this machine and of the store agree."""
        yield from clocks(self._store.name, "store", self._clock() - self._ask(self._store.now))

    def conditions(self) -> Iterator[Finding]:
        """Whether the store can be written to and honours conditional puts."""
        if self._config.publish.single_writer:
            yield warning(
                f"{self._store.name}: publish.single_writer declares that nobody else publishes; two concurrent "
                "publishers would overwrite each other's work"
            )
            return
        problem = self._ask(partial(store_checks.ignored_conditions, self._store))
        yield error(problem) if problem else fine(f"{self._store.name}: can be written, and honours conditional puts")

    def exposure(self) -> Iterator[Finding]:
        """Whether anybody can write to the store, or read what is not for readers."""
        yield from _warnings(self._ask(partial(store_checks.open_to_everyone, self._store)))
        yield from map(warning, self._ask(lambda: [*store_checks.exposed(self._store, self._config)]))

    def versions(self) -> Iterator[Finding]:
        """Whether withdrawn texts remain as old versions."""
        yield from _warnings(self._ask(partial(store_checks.old_versions, self._store)))

    def copies(self) -> Iterator[Finding]:
        """Whether a CDN in front of a bucket can be invalidated."""
        if self._config.publish.bucket():
            yield from _warnings(copies.unnamed_cdn(self._config, self._published))

    def _ask(self, ask: Callable[[], Answer]) -> Answer:
        """Ask without retries: a store that does not answer is a finding."""
        try:
            return ask()
        except UnavailableError as problem:
            raise StoreError(
                f"{self._store.name}: does not answer ({problem}); {what_to_check(self._store)}"
            ) from problem


def _warnings(problem: str | None) -> Iterator[Finding]:
    if problem:
        yield warning(problem)


def _unended(shown: _Shown, command: str) -> str:
    """Why readers are shown nothing whole yet: no publish, or build in a folder without a target, has ended."""
    if shown.work and lease.is_running(shown.work, shown.now):
        return f"the first publish has not ended yet: {shown.work.who} has been at work since {shown.work.since}"
    what = "publish" if command == "rebuild" else "build"
    return f"the first {what} did not end; run `public-markets {command}`"


def _state(built: Manifest, now: str) -> str:
    minutes = age(built.as_of, now)
    passed = distance(minutes if is_ahead(built.as_of, now) else max(0, minutes))
    markets = len(built.ids()) or built.market_count
    return f"{counted(markets, 'market')} {are(markets)} published as of {built.as_of}, {passed}"
