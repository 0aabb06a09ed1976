"""The first intent of a takedown: it names only details to delete, so that these are gone before anything is made.

Of a large record, the root is enough for it: shards stay as they are, and are read only after the deletion.
"""

from generator.models import replaced
from generator.publish.apply import Applier
from generator.publish.late_requests import LateRequests
from generator.publish.lease import Lease
from generator.publish.record import Published
from generator.tree.manifest import Manifest


class FirstIntent:
    """Takes the lease for the deletion of details, and deletes them."""

    def __init__(self, lease: Lease, late_requests: LateRequests, applier: Applier) -> None:
        self._lease = lease
        self._late_requests = late_requests
        self._applier = applier
        #: The markets whose details were deleted; None until the lease was taken.
        self._gone: frozenset[str] | None = None

    def delete(self, before: Published, built: Manifest, ids: frozenset[str]) -> None:
        """Put `before` as the record with this run at work, and delete what shows these markets, unless that was done.

        `built` is what the record says of them. A former archive may show them, too, so it goes whole.
        """
        new = (ids & built.markets.keys()) - (self._gone or frozenset())
        if self._gone is not None and not new:
            return
        self._late_requests.take_over(before)
        details = sorted(built.all_details(new))
        touched = (*details, *sorted(before.unfinished().difference(details)))
        # Nothing is forgotten yet: what the root leaves out may be told from it.
        self._lease.take(replaced(before, abandoned=self._late_requests.inherited), touched)
        self._applier.delete_details(details)
        if before.built.may_have_archive:
            self._applier.delete_archive()
        self._gone = new | (self._gone or frozenset())

    def complete(self) -> Published | None:
        """The whole record, of which only the root may have been read until now."""
        published = self._lease.complete()
        if published:
            self._late_requests.reread(published)
        return published
