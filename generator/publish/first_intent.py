"""The first intent of a takedown: it names only what to delete, so that this is gone before anything is made.

These are the details, and the archived days that may show the markets. Of a large record, the root is enough for it:
shards stay as they are, and are read only after the deletion.
"""

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from generator.api import keys
from generator.config.shape import shaped
from generator.models import replaced
from generator.publish.apply import Applier
from generator.publish.late_requests import LateRequests
from generator.publish.lease import Lease
from generator.publish.record import Published
from generator.site import archive_index
from generator.stores.requests import body_of, parallel_map
from generator.stores.store import Store
from generator.tree.manifest import Manifest
from generator.wording import counted


def _can_make(built: Manifest) -> bool:
    """Whether this program can read the settings that the site was built with, and so put its days back."""
    try:
        shaped(built.settings)
    except ValidationError:
        return False
    return True


class FirstIntent:
    """Takes the lease for the deletion of details and archived days, and deletes them."""

    def __init__(self, store: Store, lease: Lease, late_requests: LateRequests, applier: Applier) -> None:
        self._store = store
        self._lease = lease
        self._late_requests = late_requests
        self._applier = applier
        #: The markets whose details were deleted; None until the lease was taken.
        self._gone: frozenset[str] | None = None
        self._days = frozenset[str]()

    def delete(self, before: Published, built: Manifest, ids: frozenset[str]) -> None:
        """Put `before` as the record with this run at work, and delete what shows these markets, unless that was done.

        `built` is what the record says of them.
        """
        new = (ids & built.markets.keys()) - (self._gone or frozenset())
        if self._gone is not None and not new:
            return
        self._late_requests.take_over(before)
        days = archive_index.days_since(self._read_all, built, new) if _can_make(built) else []
        details = sorted(built.all_details(new))
        first = (*details, *days, *([keys.head(keys.ARCHIVE)] if days else ()))
        touched = (*first, *sorted(before.unfinished().difference(first)))
        # Nothing is forgotten yet: what the root leaves out may be told from it.
        self._lease.take(replaced(before, abandoned=self._late_requests.inherited), touched)
        self._applier.delete_details(details)
        self._applier.delete_days(days)
        self._gone = new | (self._gone or frozenset())
        self._days |= {*days}

    def _read_all(self, object_keys: Iterable[str]) -> Iterator[bytes | None]:
        def body(key: str) -> bytes | None:
            self._lease.renew_if_held()
            return body_of(self._store, key)

        return parallel_map(body, [*object_keys], self._store.parallel)

    def told(self, final: Manifest) -> Iterator[str]:
        """What a takedown says of the archived days that it deleted; `final` is what is published now."""
        if self._days:
            back = len(self._days & final.objects.keys())
            yield f"deleted {counted(len(self._days), 'archived day')} with the details, and put {back} back"

    def complete(self) -> Published | None:
        """The whole record, of which only the root may have been read until now."""
        published = self._lease.complete()
        if published:
            self._late_requests.reread(published)
        return published
