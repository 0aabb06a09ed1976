"""Takedown: remove markets from everything published, at once, working from the published state alone.

No database, build or guard is asked. The blocked list is written first: from then on every publisher leaves the markets
out, including a takedown that was killed and runs again.
"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api import keys
from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import OutputError, PublicMarketsError, StoreError
from generator.progress import Progress
from generator.publish import blocklist as store_blocklist
from generator.publish import copies, guards, protocol, quotations, record, references, store_checks, withdrawal
from generator.publish.apply import Tally
from generator.publish.audit import stray_details
from generator.publish.decisions import Change, Request
from generator.publish.guards import Options
from generator.publish.lease import OtherFormatError, Target
from generator.publish.protocol import Run
from generator.publish.record import Published
from generator.publish.withdrawal import StoredSite
from generator.site import published_downloads
from generator.site.families import fixed_keys, made_of_dump
from generator.site.published import OtherVersionError
from generator.stores.requests import body_of, explaining_outage, parallel_map, with_retries
from generator.stores.store import Store
from generator.tree import blocklist, shrink
from generator.tree.blocklist import BlockedList
from generator.tree.folder import Output, locked, locked_in_turn
from generator.tree.manifest import Manifest
from generator.tree.manifest_file import UnreadableManifestError
from generator.tree.run_lock import Notify, retried_while_busy
from generator.wording import counted

#: How far a takedown gets where nobody can tell what else is published.
_DETAILS_ONLY: Final = "the details of blocked markets were deleted, but lists may still show them"

#: Objects that show no market.
_OF_NO_MARKET: Final = frozenset({*fixed_keys(), keys.BUILD})
#: Objects below these do not name the markets that they show, or are compressed.
_UNREADABLE: Final = tuple(f"{keys.list_prefix(name)}/" for name in keys.INDEXED)

# In the store


def block(store: Store, request: Request) -> None:
    """Block the ids of a request that ends here, as nobody knows what else it names."""
    after = blocked_by_store(store, request).after
    store_blocklist.change(store, lambda stored: stored.merged(after), keeps_damaged=True)


def blocked_by_store(store: Store, request: Request) -> Change:
    """The change of the store's blocked list that the request makes; nothing is written yet."""
    with explaining_outage(store):
        return request.applied_to(store_blocklist.read(store, keeps_damaged=True))


def from_store(
    target: Target, blocked: BlockedList, named: Collection[str], progress: Progress, notify: Notify
) -> Tally:
    """Merge `blocked` into the store's list, and remove all its markets from the store.

    The details of those that are `named` now go at once, after a few requests however large the site is, and whoever is
    at work; the rest after any other publisher.
    """
    store = target.store
    with _opened(target, progress) as opened:
        after = store_blocklist.change(store, lambda stored: stored.merged(blocked), keeps_damaged=True)
        gone = after.ids() & {*named}
        if gone and not target.config.publish.single_writer:
            store_blocklist.require_conditions(store, after)
        opened.delete_details(gone)
        try:
            # A publisher at work reads the blocked list when it is done; if it hangs, its lease expires.
            tally = retried_while_busy(
                lambda: opened.take_down(after, gone), notify, "blocked in every later publish; waiting"
            )
        except OtherVersionError as error:
            raise OtherVersionError(error.version, f"{_DETAILS_ONLY}; ") from error
        tally.faults += store_blocklist.faults(store, after)
        return tally


def withdraw_hidden(
    store: Store, config: Config, blocked: BlockedList, visible: frozenset[str] | None, progress: Progress
) -> Tally:
    """Remove what must not be public although there is no build: what is blocked, and what is not `visible`.

    `visible` are the markets and questions the database shows, quarantined ones included; None if it could not be
    read. A loss of more than guards.max_shrink looks like an accident: then only what is blocked goes. Another site's
    is left alone.
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

    def take_down(self, blocked: BlockedList, named: frozenset[str]) -> Tally:
        """Publish the store's own state without blocked markets; `named` are those that are taken down now."""
        try:
            return self.withdraw(blocked, named=named)
        except OtherVersionError:
            self._delete_questions_of(blocked.ids())
            raise
        except OtherFormatError as error:
            self.delete_details(blocked.ids())
            self._delete_questions_of(blocked.ids())
            raise StoreError(f"{error}; {_DETAILS_ONLY}, until that version takes the markets down") from error

    def withdraw(
        self, blocked: BlockedList, visible: frozenset[str] | None = None, named: frozenset[str] = frozenset()
    ) -> Tally:
        """Publish the store's own state without markets that are blocked or, if it is known, not visible.

        Raise BusyError while another publisher is at work.
        """
        lease = self._target.lease
        published = lease.read(is_doubted=True)
        if published is None or lease.is_damaged:
            if published and named and not lease.is_former:
                self._delete_unproven(blocked.ids())
            return self._withdraw_unrecorded(blocked.ids())
        shrink_limit = self._target.config.guards.max_shrink
        ids = blocked.ids() | _hidden(published.built, blocked.ids(), visible, shrink_limit)
        if self._is_without(published, ids, blocked.ids()):
            return Tally()
        lease.refuse_if_busy()
        if published.work:
            # Whoever was cut short may have put them since; to make the rest takes a while.
            self.delete_details(named)
        stored = StoredSite(
            self._target.store, lease, self._folder, published.built, self._target.config.cursor.lifetime
        )
        try:
            run = Run.of(self._target, stored.without(ids), self._progress, Options(), blocked)
            run = protocol.compare(run)
        except PublicMarketsError:
            # Another publisher may have deleted what this run was reading.
            lease.confirm_unchanged()
            raise
        return protocol.publish(run).tally

    def _is_without(self, published: Published, ids: frozenset[str], blocked: frozenset[str]) -> bool:
        """Whether nothing is left to do without these markets, nor for another run."""
        has_cdn = copies.is_configured(self._target.config)
        is_settled = not published.is_doubted and not published.holds_copies(has_cdn=has_cdn)
        is_published = not ids.isdisjoint(published.built.markets)
        return is_settled and not is_published and not stray_details(self._target.store, published, blocked).keys

    def _withdraw_unrecorded(self, blocked: frozenset[str]) -> Tally:
        """Delete the details of blocked markets without a record; raise StoreError if other objects may show them."""
        store, lease = self._target.store, self._target.lease
        self.delete_details(blocked)
        self._delete_questions_of(blocked)
        found = with_retries(partial(store_checks.foreign_object, store))
        if blocked and found:
            if lease.published:
                raise StoreError(f"{lease.damage}; {_DETAILS_ONLY}")
            fault = lease.damage if lease.is_damaged and lease.damage else "missing or damaged"
            raise StoreError(
                f"{store.name}: holds {API_VERSION}/ but {record.KEY} is {fault}, so nobody knows what is "
                f"published; {_DETAILS_ONLY}; run `public-markets rebuild --verify`, which writes the record anew"
            )
        return Tally()

    def _delete_unproven(self, ids: frozenset[str]) -> None:
        """Delete whatever is not provably without these markets, as no state says what shows them; raise StoreError.

        Raise BusyError while another publisher is at work.
        """
        store, lease = self._target.store, self._target.lease
        lease.refuse_if_busy()
        self.delete_details(ids)
        published = with_retries(lambda: [*store.keys(f"{API_VERSION}/")])
        unproven = zip(published, parallel_map(partial(_may_show, store, ids), published, store.parallel), strict=True)
        gone = [key for key, may_show in unproven if may_show]
        # Whoever made the record anew meanwhile has put objects that it names.
        with_retries(partial(store.delete, gone, lease.confirm_unchanged))
        store.flush()
        raise StoreError(
            f"{lease.damage}; until then, {counted(len(gone), 'object')} are missing, each of which may have shown a "
            "blocked market"
        )

    def delete_details(self, ids: Collection[str]) -> None:
        """Delete the details of these markets and questions, whoever is at work, and what else may show them.

        That is a former archive, and the details of questions that have one of the markets. Details are where every
        version puts them. Those by slug go first, as only the one by id tells the slug.
        """
        store = self._target.store
        if not ids:
            return
        read = partial(body_of, store)
        slugs = [*parallel_map(partial(_slug, read), sorted(ids), store.parallel)]
        self._delete(_by_slug(zip(sorted(ids), slugs, strict=True)))
        self._delete([*map(keys.detail, sorted(ids))])
        if held := {*published_downloads.holding(read, ids)}:
            self._delete(_by_slug(held))
            self._delete(sorted(keys.detail(reference) for reference, _ in held))
        self._delete(with_retries(lambda: [*store.keys(keys.ARCHIVE_PREFIX)]))

    def _delete_questions_of(self, ids: Collection[str]) -> None:
        """Delete the details of questions that show one of these markets, where nobody makes them again.

        Definitions may be missing or false, so each detail is read.
        """
        if not ids:
            return
        store = self._target.store
        found = with_retries(lambda: [*store.keys(f"{keys.QUESTION_DETAILS}/")])
        held = [*references.showing(parallel_map(partial(body_of, store), found, store.parallel), ids)]
        self._delete(_by_slug(held))
        self._delete(sorted(keys.detail(reference) for reference, _ in held))

    def _delete(self, found: Sequence[str]) -> None:
        if found:
            with_retries(partial(self._target.store.delete, found))
            self._target.store.flush()


def _may_show(store: Store, ids: Collection[str], key: str) -> bool:
    """Whether an object may show one of these markets, whose own details are gone."""
    if keys.market_id(key) is not None or key in _OF_NO_MARKET:
        return False
    if key.startswith(_UNREADABLE) or key in made_of_dump():
        return True
    body = body_of(store, key) or b""
    return any(reference.removeprefix(keys.OF_QUESTIONS).encode() in body for reference in ids)


def _slug(read: Callable[[str], bytes | None], reference: str) -> str | None:
    """The slug of a market or question, as far as its detail tells it."""
    subject = references.subject_of(read(keys.detail(reference)))
    return subject.said.slug if subject else None


def _by_slug(found: Iterable[tuple[str, str | None]]) -> list[str]:
    """The keys by slug of the details of these, each with its slug, if that is known."""
    every = (key for reference, slug in found for key in keys.details(reference, slug) if key != keys.detail(reference))
    return sorted(every)


def _hidden(
    built: Manifest, blocked: frozenset[str], visible: frozenset[str] | None, max_shrink: float
) -> frozenset[str]:
    """The markets and questions that the database does not show; none of a kind of which it lost too many."""
    if visible is None:
        return frozenset()
    found = set[str]()
    for public in (built.ids() - blocked, built.questions() - blocked):
        hidden = public - visible
        if not shrink.is_excessive(len(hidden), len(public), max_shrink):
            found |= hidden
    return frozenset(found)


# In the output folder


def from_folder(config: Config, request: Request, notify: Notify, stored: Change | None = None) -> Change:
    """Carry out the request on the folder, after any other run, and remove all blocked markets from it.

    `stored` is the change of the store's list, which then belongs to the folder's, too. Raise OutputError in the end if
    a damaged list is still kept aside.
    """
    with locked_in_turn(config.output, notify) as folder:
        copy = blocklist.opened(folder)
        change = request.enforced_on(copy, stored) if stored else request.applied_to(copy)
        blocklist.save(folder, change.after)
        try:
            for warning in withdrawal.from_folder(folder, change.after.ids(), config.cursor.lifetime):
                notify(f"{config.output}: {warning}")
            if request.is_blocked and request.ids:
                # A market that is not published may be quoted as one that was quarantined.
                quotations.delete(folder, change.after.ids())
        except UnreadableManifestError as error:
            _delete_details_built(folder, change.after.ids())
            raise OutputError(f"{error.cause}; {_DETAILS_ONLY}; {error.remedy}") from error
        except OtherVersionError as error:
            _delete_details_built(folder, change.after.ids())
            raise OtherVersionError(error.version, f"{_DETAILS_ONLY}; ") from error
        faults = [*blocklist.faults(change.after, folder.read, lambda name: str(folder.path(name)))]
    filesystem.sync(config.output)  # or what was deleted might come back after a power failure
    notify(f"{config.output}: nothing is left of the blocked markets")
    if faults:
        raise OutputError(faults[0])
    return change


def _delete_details_built(folder: Output, ids: frozenset[str]) -> None:
    """Delete the details of these markets, and what quotes them, from a folder that cannot be made again."""
    found = folder.path(keys.QUESTION_DETAILS).rglob("*.json")
    held = {*references.showing((path.read_bytes() for path in found), ids)}
    held.update(published_downloads.holding(folder.read, ids))
    known = [(reference, _slug(folder.read, reference)) for reference in sorted(ids)]
    for key in (*_by_slug([*known, *held]), *(keys.detail(reference) for reference, _ in (*known, *held))):
        folder.discard_key(key)
    folder.discard_key(keys.ARCHIVE_PREFIX)
    quotations.delete(folder, ids)
