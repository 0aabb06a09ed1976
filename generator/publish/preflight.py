"""Everything that can keep a publish from working, and what of the store its owner should know.

It writes one object, which it deletes again, to see whether the store keeps conditions.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from generator.api import times
from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import CheckError, StoreError
from generator.findings import Finding, error, fine, tried, warning
from generator.publish import invalidation, record
from generator.publish.record import Published
from generator.publish.run import answering
from generator.publish.stores.factory import open_store
from generator.publish.stores.requests import probe, with_retries
from generator.publish.stores.store import Store, UnavailableError
from generator.tree import manifest

#: A build older than so many schedules means that cron has stalled.
STALE_AFTER: Final = 3
#: Clocks that differ by more trouble people; stores refuse requests from a quarter of an hour on.
_CLOCK_TOLERANCE: Final = timedelta(seconds=30)

Answer = TypeVar("Answer")
#: This machine's clock.
Clock = Callable[[], datetime]


def findings(config: Config, clock: Clock) -> Iterator[Finding]:
    """Look at the store that `publish.target` names."""
    check = _StoreCheck(open_store(config), config, clock)
    # Whoever cannot read the record can do nothing else there either.
    yield from check.record()
    for look in (check.clock(), check.conditions(), check.exposure(), check.versions(), check.copies()):
        yield from tried(look)


def require_fresh(config: Config) -> str:
    """A sentence on what is published; raise CheckError when it is so old that cron must have stalled."""
    store = open_store(config)
    with answering(store):
        published = with_retries(partial(_published, store))
        now = times.instant(with_retries(store.now))
    if published is None:
        raise CheckError(f"{store.name}: nothing is published there; run `public-markets rebuild`")
    told = f"{store.name}: {_told(published, now)}"
    if _age(published, now) > STALE_AFTER * config.schedule:
        raise CheckError(
            f"{told}, which is more than {STALE_AFTER} schedules of {config.schedule} minutes; is cron running? look "
            "at how `public-markets rebuild` ended last"
        )
    return told


class _StoreCheck:
    def __init__(self, store: Store, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock

    def record(self) -> Iterator[Finding]:
        """Whether the store answers, and what it says is published."""
        name = self._store.name
        published, now = self._asked(lambda: (_published(self._store), times.instant(self._store.now())))
        if published is None:
            yield from self._strangers()
            return
        told = f"{name}: {_told(published, now)}"
        stale = _age(published, now) > STALE_AFTER * self._config.schedule
        yield warning(f"{told}; is cron running?") if stale else fine(told)
        if published.work and now <= published.work.deadline:
            yield warning(f"{name}: {published.work.who} is publishing there, until {published.work.deadline} at most")
        site = published.built.settings.get("base_url", self._config.base_url)
        if site != self._config.base_url:
            yield error(
                f"{name}: holds the site {site}, base_url is {self._config.base_url}; is it the right bucket? "
                "then publish once with --allow-other-site"
            )

    def _strangers(self) -> Iterator[Finding]:
        name = self._store.name
        stranger = self._asked(lambda: next(iter(self._store.list(f"{API_VERSION}/")), None))
        if stranger:
            yield error(
                f"{name}: holds {stranger.key} but no record of this program, so it may be somebody else's; choose "
                f"another target, or run publish --verify, which deletes what is under {API_VERSION}/ and unknown"
            )
        else:
            yield fine(f"{name}: can be read; nothing is published there yet")

    def clock(self) -> Iterator[Finding]:
        """How far the clocks of this machine and of the store are apart."""
        apart = self._clock() - self._asked(self._store.now)
        if abs(apart) > _CLOCK_TOLERANCE:
            ahead = "ahead of" if apart > timedelta(0) else "behind"
            yield warning(
                f"{self._store.name}: this machine's clock is {abs(apart).total_seconds():.0f} s {ahead} the store's; "
                "set it: builds are dated by it"
            )

    def conditions(self) -> Iterator[Finding]:
        """Whether it can be written and keeps the conditions of puts."""
        if self._config.publish.single_writer:
            yield warning(
                f"{self._store.name}: publish.single_writer promises that nobody else publishes; two publishers at "
                "once would undo each other's work"
            )
        elif self._asked(partial(probe, self._store)):
            yield fine(f"{self._store.name}: can be written, and keeps the conditions of puts")
        else:
            yield error(
                f"{self._store.name}: ignores the conditions of puts (If-Match, If-None-Match); use another store, or "
                "promise that there is only one publisher by publish.single_writer: true"
            )

    def exposure(self) -> Iterator[Finding]:
        """Whether strangers can write there."""
        if self._asked(self._store.is_open_to_everyone):
            yield warning(f"{self._store.name}: everybody can write here, without credentials; close it")

    def versions(self) -> Iterator[Finding]:
        """Whether what was withdrawn lives on as an old version."""
        if self._asked(self._store.is_versioned):
            yield warning(
                f"{self._store.name}: keeps old versions, which hold withdrawn texts; withdrawals and takedowns delete "
                "them and need s3:DeleteObjectVersion; let a lifecycle rule expire the others"
            )

    def copies(self) -> Iterator[Finding]:
        """Whether a CDN can be told of withdrawals."""
        if self._config.publish.bucket() and not invalidation.are_known(self._config):
            yield warning(
                "publish: no CDN is named, so copies of what was withdrawn would live on in it; set "
                "publish.cloudfront_distribution or publish.purge_command"
            )

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Ask once; a store that does not answer is a finding and not worth waiting for."""
        try:
            return ask()
        except UnavailableError as problem:
            raise StoreError(
                f"{self._store.name}: does not answer ({problem}); check publish.endpoint_url and the network"
            ) from problem


def _published(store: Store) -> Published | None:
    stored = store.get(record.KEY)
    try:
        return record.decoded(stored.body) if stored else None
    except ValueError as problem:
        raise StoreError(
            f"{store.name}: {record.KEY}: damaged or of another version of this program; upgrade it, or let "
            "`public-markets publish --verify` write it anew"
        ) from problem


def _age(published: Published, now: str) -> float:
    return manifest.minutes_between(published.built.as_of, now)


def _told(published: Published, now: str) -> str:
    built = published.built
    return f"{len(built.markets)} markets are published as of {built.as_of}, {_age(published, now):.0f} minutes ago"
