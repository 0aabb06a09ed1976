"""Requests that may take effect late: those of earlier publishers, and those of this run that got no answer."""

from generator.errors import StoreError
from generator.publish import record
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS, Doubts
from generator.publish.record import Abandoned, Published
from generator.stores.store import Remembering
from generator.wording import counted


class LateRequests:
    """What they may still do, for the record, and what they were found to have done, in the order of this run's plans.

    The record was read with the `lease`, and the store is searched for their traces from then on.
    """

    def __init__(self, store: Remembering, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self._searched_at = lease.now
        self._inherited: tuple[Abandoned, ...] | None = None
        self._planned = set[Doubts]()
        self._unsettled = NO_DOUBTS

    def take_over(self, before: Published) -> None:
        """Add what the record says, and the publisher that it names, which was cut short; only the first time.

        What that one may do is not said again of those before it, or each killed run would add all keys that it
        touched.
        """
        if self._inherited is not None:
            return  # by now, the record names this publisher
        left = before.abandoned_at(self._lease.now, is_sharded=self._lease.is_sharded)
        known = [entry.beside(left) if left else entry for entry in before.abandoned]
        self._inherited = tuple(entry for entry in (*known, left) if entry)

    def abandoned(self) -> tuple[Abandoned, ...]:
        """What the record is to say; nothing is forgotten while something is missing."""
        is_settled = self._unsettled == NO_DOUBTS
        known = [entry for entry in self._inherited or () if self._searched_at <= entry.until or not is_settled]
        own = record.unanswered(self._store.unanswered | self._lease.unanswered, self._lease.now)
        return (*known, own) if own else (*known,)

    @property
    def may_have_put_shards(self) -> bool:
        """Whether one may have put a shard that no record names, be it so long ago that the record forgets it."""
        return bool(self._inherited) or bool(self.abandoned())

    def plan_for(self, doubts: Doubts) -> None:
        """Note that a plan is to settle what was found."""
        self._planned.add(doubts)

    def were_planned_for(self, doubts: Doubts) -> bool:
        """Whether a plan was to settle the same before, and did not."""
        return doubts in self._planned

    def give_up(self, doubts: Doubts) -> None:
        """Note that no plan can settle what was found."""
        self._unsettled = doubts

    def require_settled(self) -> None:
        """Raise StoreError for what no plan could settle."""
        if found := sorted(self._unsettled.missing | self._unsettled.keys):
            more = f" (and {counted(len(found) - 1, 'object')} more)" if len(found) > 1 else ""
            raise StoreError(
                f"{self._store.name}: {found[0]}{more}: deleted or altered by a request that took effect late, which "
                "this run cannot repair; run `public-markets rebuild`"
            )
