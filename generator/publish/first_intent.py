"""The first intent of a takedown: it names only the details to delete, so that they are gone before anything is made.

Of a large record, the root is enough for it: shards stay as they are, and are read only after the deletion.
"""

from collections.abc import Set as AbstractSet

from generator.models import replaced
from generator.publish.apply import Applier
from generator.publish.late_requests import LateRequests
from generator.publish.lease import Lease
from generator.publish.record import Published


class FirstIntent:
    """Takes the lease for the deletion of details, and deletes them."""

    def __init__(self, lease: Lease, late_requests: LateRequests, applier: Applier) -> None:
        self._lease = lease
        self._late_requests = late_requests
        self._applier = applier
        self._deleted: AbstractSet[str] | None = None

    def delete(self, before: Published, details: AbstractSet[str]) -> None:
        """Put `before` as the record with this run at work, and delete these details, unless both was done already."""
        if self._deleted is not None and details <= self._deleted:
            return
        self._late_requests.take_over(before)
        touched = (*sorted(details), *sorted(before.unfinished() - details))
        # Nothing is forgotten yet: what the root leaves out may be told from it.
        self._lease.take(replaced(before, abandoned=self._late_requests.inherited), touched)
        self._applier.delete_details(sorted(details))
        self._deleted = details

    def complete(self) -> Published | None:
        """The whole record, of which only the root may have been read until now."""
        published = self._lease.complete()
        if published:
            self._late_requests.reread(published)
        return published
