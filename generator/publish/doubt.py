"""The time in which the store may hold what no record says: requests that take effect late, of whichever publisher."""

from datetime import datetime

from generator.api.forms import instant
from generator.errors import StoreError
from generator.publish import record
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS, Doubts
from generator.stores.store import Watched
from generator.wording import counted


class Doubt:
    """Until when runs list the store, and what was found so far, in the order of this run's plans.

    The record was read with the `lease`; the store is listed from then on.
    """

    def __init__(self, store: Watched, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self._looked_at = lease.now
        published = lease.published
        #: Whether this run is to list the store.
        self.is_on = published is not None and published.is_doubted
        # No longer than an hour, or the store's clock was ahead. One that is at work was cut short.
        until = published.doubted_until if published else ""
        self._inherited = self._in_an_hour() if published and published.work else min(until, self._in_an_hour())
        self._planned = set[Doubts]()
        self._unsettled = NO_DOUBTS

    def _in_an_hour(self) -> str:
        return instant(datetime.fromisoformat(self._lease.now) + record.IN_FLIGHT)

    def until(self) -> str:
        """What the record is to say; nothing is forgotten before a look after it, nor while something is missing."""
        is_over = self._looked_at > self._inherited and self._unsettled == NO_DOUBTS
        is_unanswered = self._store.is_unanswered or self._lease.is_unanswered
        return max("" if is_over else self._inherited, self._in_an_hour() if is_unanswered else "")

    def is_new(self, doubts: Doubts) -> bool:
        """Note that a plan is to settle what was found; False if one was to before, so that none can."""
        if doubts in self._planned:
            self._unsettled = doubts
            self._inherited = self._inherited or self._in_an_hour()
        self._planned.add(doubts)
        return self._unsettled == NO_DOUBTS

    def require_settled(self) -> None:
        """Raise StoreError for what no plan could settle."""
        if found := sorted(self._unsettled.missing | self._unsettled.keys):
            more = f" (and {counted(len(found) - 1, 'object')} more)" if len(found) > 1 else ""
            raise StoreError(
                f"{self._store.name}: {found[0]}{more}: deleted or altered by a request that took effect late, which "
                "this run cannot repair; run `public-markets rebuild`"
            )
