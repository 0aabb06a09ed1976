"""Takedown: markets leave everything that is published, now, out of what is published itself.

No database, build or guard is asked. The blocked list comes first: from then on every publisher that looks at it
leaves the markets out, this one included when it is killed and started again.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from generator.api import ids
from generator.config.settings import Config
from generator.errors import BusyError, OutputError, PublicMarketsError
from generator.progress import Progress
from generator.publish import blocklist as store_blocklist
from generator.publish import withdrawal
from generator.publish.apply import Tally
from generator.publish.lease import Lease
from generator.publish.protocol import Content, Publisher, Target
from generator.publish.run import answering
from generator.publish.stores.store import Store
from generator.tree import shrink
from generator.tree.blocklist import KEY, BlockedList, load
from generator.tree.folder import Output, locked
from generator.tree.manifest import Manifest, Slugs

Result = TypeVar("Result")

#: How often to look whether a publisher that holds the record, or a run that holds the folder, has ended.
_LOOK_S: Final = 0.5

#: Tells people what is waited for.
Tell = Callable[[str], None]


def from_store(store: Store, config: Config, words: BlockedList, progress: Progress, tell: Tell) -> Tally:
    """Take every market that `words` or the store's own list bars out of the store."""
    with _opened(store, config, progress, tell) as opened:
        return opened.take_out(store_blocklist.merge(store, words).ids())


def hidden_from_store(
    store: Store, config: Config, barred: frozenset[str], visible: frozenset[str] | None, progress: Progress
) -> Tally:
    """Take out what must not be public though nothing can be built: barred markets, and those that are not `visible`.

    `visible` are the markets that the database shows, bad rows included; None when it could not be asked. A loss of
    more than guards.max_shrink allows looks like an accident, which is left alone.
    """

    def is_hidden(published: Manifest) -> frozenset[str]:
        public = published.markets.keys() - barred
        hidden = public - visible if visible is not None else set[str]()
        is_accident = shrink.is_excessive(len(hidden), len(public), config.guards.max_shrink)
        return barred if is_accident else barred | hidden

    with _opened(store, config, progress, lambda _: None) as opened:
        return opened.take_out_chosen(is_hidden)


def named(references: Iterable[str], slugs: Callable[[], Slugs]) -> tuple[str, ...]:
    """The ids of markets named by id or slug; `slugs` reads those that are published, which ids do not need."""
    return tuple(_id(reference) or _owner(reference, slugs()) for reference in references)


def _id(reference: str) -> str | None:
    with suppress(ValueError):
        return ids.uuid(reference)
    return None


def _owner(slug: str, slugs: Slugs) -> str:
    for market_id, known in slugs.items():
        if slug.lower() in {one.lower() for one in known}:
            return market_id
    raise PublicMarketsError(f"{slug}: no published market has this slug; name the market by its id")


def published_slugs(store: Store, config: Config) -> Slugs:
    """The slugs of what a store holds."""
    published = Lease(store, config.publish.lease).read()
    return published.built.slugs if published else {}


def from_folder(
    config: Config, told: Callable[[BlockedList, Callable[[], Slugs]], BlockedList], tell: Tell
) -> BlockedList:
    """Change the folder's blocked list as `told` does, and take every barred market out of the folder."""
    with _free(config.output, tell) as folder:
        words = told(load(folder), lambda: built.slugs if (built := folder.manifest()) else {})
        folder.save(KEY, words.encoded())
        withdrawal.from_folder(folder, words.ids(), config.cursor.lifetime)
        return words


@contextmanager
def _opened(store: Store, config: Config, progress: Progress, tell: Tell) -> Iterator["_Store"]:
    with answering(store), tempfile.TemporaryDirectory() as scratch, locked(Path(scratch)) as folder:
        yield _Store(Target(store, Lease(store, config.publish.lease), config), folder, progress, tell)


class _Store:
    """A store to take markets out of; `folder` holds what is uploaded for it."""

    def __init__(self, target: Target, folder: Output, progress: Progress, tell: Tell) -> None:
        self._target = target
        self._folder = folder
        self._progress = progress
        self._tell = tell

    def take_out(self, barred: frozenset[str]) -> Tally:
        """Publish the store's own state without the markets, after whoever is publishing now."""
        # A publisher looks at the blocked list when it is done. If it does not end, its lease does.
        said = "barred from every later publish; waiting"
        return _after_others(lambda: self.take_out_chosen(lambda _: barred), self._tell, said)

    def take_out_chosen(self, choose: Callable[[Manifest], frozenset[str]]) -> Tally:
        """Publish the store's own state without the markets that are chosen from it."""
        published = self._target.ledger.read()
        if published is None:
            return Tally()
        chosen = choose(published.built)
        is_done = published.work is None and not published.are_caches_stale
        if is_done and not chosen & published.built.markets.keys():
            return Tally()
        self._target.ledger.refuse_if_busy()
        return self._publish_without(chosen)

    def _publish_without(self, barred: frozenset[str]) -> Tally:
        built = self._without(barred)
        publisher = Publisher(self._target, Content(self._folder, built, self._without), self._progress)
        publisher.publish()
        return publisher.tally

    def _without(self, barred: frozenset[str]) -> Manifest:
        published = self._target.ledger.published
        if published is None:
            raise OutputError(f"{self._target.store.name}: nothing is published there")
        withdrawal.from_store(self._target.store, published, barred, self._folder, self._target.config.cursor.lifetime)
        built = self._folder.manifest()
        if built is None:
            raise OutputError(f"{self._folder.path('')}: somebody deletes what is written there")
        return built


@contextmanager
def _free(root: Path, tell: Tell) -> Iterator[Output]:
    """Hold the folder, after whoever holds it now."""
    with ExitStack() as stack:
        yield _after_others(lambda: stack.enter_context(locked(root)), tell, "waiting")


def _after_others(attempt: Callable[[], Result], tell: Tell, said: str) -> Result:
    """Try until nobody else is at work; tell once who is."""
    is_told = False
    while True:
        try:
            return attempt()
        except BusyError as error:
            if not is_told:
                tell(f"{said}: {error}")
            is_told = True
            time.sleep(_LOOK_S)
