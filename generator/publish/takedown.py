"""Takedown: remove markets from everything published, at once, working from the published state alone.

No database, build or guard is asked. The blocked list is written first: from then on every publisher leaves the markets
out, including a takedown that was killed and runs again.
"""

import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import OutputError, StoreError
from generator.progress import Progress
from generator.publish import blocklist as store_blocklist
from generator.publish import brief_record, guards, invalidation, known, record, store_checks, withdrawal
from generator.publish.apply import Tally
from generator.publish.audit import stray_details
from generator.publish.content import StoredSite
from generator.publish.decisions import Change, Request
from generator.publish.lease import OtherFormatError
from generator.publish.protocol import Publisher, Target
from generator.publish.record import DamagedShardError, Published
from generator.site.published import OtherVersionError
from generator.stores.requests import body_of, explaining_outage, with_retries
from generator.stores.store import Store
from generator.tree import blocklist, shrink
from generator.tree.blocklist import BlockedList
from generator.tree.folder import Output, locked
from generator.tree.in_turn import Notify, locked_in_turn, retried_while_busy
from generator.tree.manifest import Manifest
from generator.tree.manifest_file import UnreadableManifestError

#: How far a takedown gets where nobody can tell what else is published.
_DETAILS_ONLY: Final = "the details of blocked markets were deleted, but lists may still show them"

# In the store


def block(store: Store, request: Request) -> None:
    """Block the ids of a request that ends here, as nobody knows what else it names."""
    store_blocklist.merge(store, blocked_by_store(store, request).after)


def blocked_by_store(store: Store, request: Request) -> Change:
    """The change of the store's blocked list that the request makes; nothing is written yet."""
    with explaining_outage(store):
        return request.applied_to(store_blocklist.read(store))


def from_store(
    target: Target, blocked: BlockedList, named: Collection[str], progress: Progress, notify: Notify
) -> Tally:
    """Merge `blocked` into the store's list, and remove all its markets from the store, after any other publisher.

    The details of those that are `named` now go first, after a few requests however large the site is.
    """
    with _opened(target, progress) as opened:
        ids = store_blocklist.merge(target.store, blocked).ids()
        try:
            # A publisher at work reads the blocked list when it is done; if it hangs, its lease expires.
            return retried_while_busy(
                lambda: opened.take_down(ids, ids & {*named}), notify, "blocked in every later publish; waiting"
            )
        except OtherVersionError as error:
            raise OtherVersionError(error.version, f"{_DETAILS_ONLY}; ") from error


def withdraw_hidden(
    store: Store, config: Config, blocked: frozenset[str], visible: frozenset[str] | None, progress: Progress
) -> Tally:
    """Remove what must not be public although there is no build: blocked markets, and those that are not `visible`.

    `visible` are the markets the database shows, quarantined ones included; None if it could not be read. A loss of
    more than guards.max_shrink looks like an accident: then only blocked markets go. Another site's is left alone.
    """
    with _opened(Target.of(store, config), progress) as opened:
        return Tally() if opened.is_other_site() else opened.withdraw(blocked, visible)


@contextmanager
def _opened(target: Target, progress: Progress) -> Iterator["_PublishedSite"]:
    with explaining_outage(target.store), tempfile.TemporaryDirectory() as scratch, locked(Path(scratch)) as folder:
        yield _PublishedSite(target, folder, progress)


class _PublishedSite:
    """What a store holds, to remove markets from; `folder` receives what is to be uploaded."""

    def __init__(self, target: Target, folder: Output, progress: Progress) -> None:
        self._target = target
        self._folder = folder
        self._progress = progress

    def is_other_site(self) -> bool:
        """Whether the store holds the site of another base_url."""
        published = self._target.lease.read(is_brief=True)
        return published is not None and guards.is_other_site(published.built, self._target.config)

    def take_down(self, blocked: frozenset[str], named: frozenset[str]) -> Tally:
        """Publish the store's own state without blocked markets; the details of those that are `named` go first."""
        try:
            publisher = self._without_details(named, blocked)
            if publisher is None:
                return self.withdraw(blocked)
        except OtherFormatError as error:
            self._delete_details(blocked)
            raise StoreError(f"{error}; {_DETAILS_ONLY}, until that version takes the markets down") from error
        published = publisher.first_intent.complete()
        if published is None or self._target.lease.is_damaged:
            return self._withdraw_unrecorded(blocked)
        return _withdrawn(publisher, blocked)

    def withdraw(self, blocked: frozenset[str], visible: frozenset[str] | None = None) -> Tally:
        """Publish the store's own state without markets that are blocked or, if it is known, not visible."""
        lease = self._target.lease
        published = lease.read(is_doubted=True)
        if published is None or lease.is_damaged:
            return self._withdraw_unrecorded(blocked)
        ids = blocked | _hidden(published.built, blocked, visible, self._target.config.guards.max_shrink)
        if self._is_without(published, ids, blocked):
            return Tally()
        return _withdrawn(self._publisher(published, blocked), ids)

    def _without_details(self, ids: frozenset[str], blocked: frozenset[str]) -> Publisher | None:
        """A publisher that has deleted the details of these markets, for which it read only the shards they are in.

        None if none of them is published, or if the whole record must be read first.
        """
        published = self._target.lease.read(is_doubted=True, is_brief=True) if ids else None
        # Which chunks a publisher that was cut short had still to delete, all other generations tell.
        if published is None or published.due:
            return None
        try:
            built = brief_record.manifest_of(self._target.store, published, ids)
        except DamagedShardError:  # or another publisher has replaced it
            return None
        if ids.isdisjoint(built.markets):
            return None
        publisher = self._publisher(published, blocked)
        publisher.first_intent.delete(published, built, ids)
        return publisher

    def _is_without(self, published: Published, ids: frozenset[str], blocked: frozenset[str]) -> bool:
        """Whether nothing is left to do without these markets, nor for another run."""
        has_cdn = invalidation.is_configured(self._target.config)
        is_settled = published.is_settled() and not published.holds_copies(has_cdn=has_cdn)
        is_published = not ids.isdisjoint(published.built.markets)
        return is_settled and not is_published and not stray_details(self._target.store, published, blocked).keys

    def _publisher(self, published: Published, blocked: frozenset[str]) -> Publisher:
        """A publisher of the store's own state; raise BusyError while another is at work."""
        lease, lifetime = self._target.lease, self._target.config.cursor.lifetime
        lease.refuse_if_busy()
        stored = StoredSite(self._target.store, lease, self._folder, published.built, lifetime)
        return Publisher(self._target, stored, self._progress, blocked=blocked)

    def _withdraw_unrecorded(self, blocked: frozenset[str]) -> Tally:
        """Delete the details of blocked markets without a record; raise StoreError if other objects may show them."""
        store, lease = self._target.store, self._target.lease
        self._delete_details(blocked)
        # A former archive may show the markets, too.
        if blocked and (left := with_retries(lambda: [*store.keys(keys.ARCHIVE_PREFIX)])):
            with_retries(partial(store.delete, left))
            store.flush()
        found = with_retries(partial(store_checks.foreign_object, store))
        if blocked and found:
            fault = lease.damage if lease.is_damaged and lease.damage else "missing or damaged"
            raise StoreError(
                f"{store.name}: holds {API_VERSION}/ but {record.KEY} is {fault}, so nobody knows what is "
                f"published; {_DETAILS_ONLY}; run `public-markets rebuild --verify`, which writes the record anew"
            )
        return Tally()

    def _delete_details(self, ids: frozenset[str]) -> None:
        """Delete the details of these markets, which are where every version puts them."""
        store = self._target.store
        details = [key for market_id in sorted(ids) for key in _details(partial(body_of, store), market_id)]
        with_retries(partial(store.delete, details))
        store.flush()


def _withdrawn(publisher: Publisher, ids: frozenset[str]) -> Tally:
    """What the publisher did to publish the store's own state without these markets."""
    publisher.withdraw(ids)
    publisher.publish(publisher.plan())
    return publisher.tally


def _details(read: Callable[[str], bytes | None], market_id: str) -> Iterator[str]:
    """The keys of a market's detail, as far as the detail itself tells them."""
    yield keys.detail(market_id)
    found = known.decoded(read(keys.detail(market_id)))
    if found and found.slug is not None:
        yield keys.detail_by_slug(found.slug)


def _hidden(
    published: Manifest, blocked: frozenset[str], visible: frozenset[str] | None, max_shrink: float
) -> frozenset[str]:
    if visible is None:
        return frozenset()
    public = published.markets.keys() - blocked
    hidden = frozenset(public - visible)
    is_accident = shrink.is_excessive(len(hidden), len(public), max_shrink)
    return frozenset() if is_accident else hidden


# In the output folder


def from_folder(config: Config, request: Request, notify: Notify, stored: Change | None = None) -> Change:
    """Carry out the request on the folder, after any other run, and remove all blocked markets from it.

    `stored` is the change of the store's list, which then belongs to the folder's, too.
    """
    with locked_in_turn(config.output, notify) as folder:
        copy = blocklist.load(folder)
        change = request.enforced_on(copy, stored) if stored else request.applied_to(copy)
        folder.save(blocklist.KEY, change.after.encoded())
        try:
            for warning in withdrawal.from_folder(folder, change.after.ids(), config.cursor.lifetime):
                notify(f"{config.output}: {warning}")
            if request.is_blocked and request.ids:
                # A market that is not published may be quoted as one that was quarantined.
                withdrawal.delete_quotations(folder, change.after.ids())
        except UnreadableManifestError as error:
            _delete_details_built(folder, change.after.ids())
            raise OutputError(f"{error.cause}; {_DETAILS_ONLY}; {error.remedy}") from error
        except OtherVersionError as error:
            raise OtherVersionError(error.version, f"{_DETAILS_ONLY}; ") from error
    filesystem.sync(config.output)  # or what was deleted might come back after a power failure
    return change


def _delete_details_built(folder: Output, ids: frozenset[str]) -> None:
    """Delete the details of these markets, and what quotes them, from a folder whose manifest cannot be read."""
    details = [key for market_id in sorted(ids) for key in _details(folder.read, market_id)]
    for key in (*details, keys.ARCHIVE_PREFIX):
        folder.discard_key(key)
    withdrawal.delete_quotations(folder, ids)
