"""Dry runs: the publisher that carries out its plan on a store which only pretends to write."""

from collections.abc import Mapping

from generator.publish.apply import Rehearsing
from generator.publish.plan import Plan
from generator.publish.protocol import Publisher
from generator.publish.record import Published


class Rehearsal(Publisher):
    """A dry run: carries out its plan on a store that only pretends to write, and leaves everything else alone."""

    _applies = Rehearsing

    def prepare(self) -> None:
        """Probe nothing: that takes writes."""

    def publish(self, plan: Plan) -> None:
        """Count what the plan would do."""
        if self._is_done(plan):
            return
        self._progress.start(plan.steps)
        self._applier.sweep(self._carry_out(plan))

    def _commit(self, plan: Plan, before: Published, put: Mapping[str, str]) -> None:
        """Leave the record alone: computing its new ETags would mean reading all the old ones."""

    def _blocked_since(self, plan: Plan) -> frozenset[str]:  # noqa: ARG002 - the publisher's
        """None: a dry run takes nothing out."""
        return frozenset()
