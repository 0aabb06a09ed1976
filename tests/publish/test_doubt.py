"""Until when runs list the store."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from generator.models import replaced
from generator.publish.audit import Doubt
from generator.publish.lease import Lease
from generator.publish.plan import Doubts
from generator.publish.record import Published, Work
from generator.stores.directory import Directory
from generator.stores.store import BeforeEach, UnavailableError, UnreachableError, Watched, nothing
from tests.support.sites.builds import manifest_of

NOON, LATER, ONE, PAST_ONE = (f"2026-01-31T{time}.000Z" for time in ("12:00:00", "12:30:00", "13:00:00", "13:00:01"))
RECORD = Published(sequence=1, built=manifest_of(), etags={})
WORK = Work(owner="o", process="p", who="w", since=NOON, deadline=NOON, touched=())


class Silent(Directory):
    """Answers no deletion; never gets one of nothing."""

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:  # noqa: ARG002 - the protocol's
        raise UnavailableError if keys else UnreachableError


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    return Watched(Silent(tmp_path))


def of(store: Watched, published: Published | None, now: str = NOON) -> Doubt:
    lease = Lease(store, timedelta(minutes=5))
    lease.published, lease.now = published, now
    return Doubt.of(lease)


def test_nobody_doubts_a_store_whose_publishers_ended_well(store: Watched) -> None:
    for published in (None, RECORD):
        doubt = of(store, published)
        assert (doubt.is_on, doubt.left(NOON, is_unanswered=False)) == (False, "")


def test_a_publisher_that_was_cut_short_leaves_an_hour(store: Watched) -> None:
    doubt = of(store, replaced(RECORD, work=WORK, doubted_until=NOON))
    assert (doubt.is_on, doubt.left(LATER, is_unanswered=False)) == (True, ONE), "of the time when it was found"


def test_it_is_forgotten_by_a_run_that_looks_after_it_and_by_no_other(store: Watched) -> None:
    doubted = replaced(RECORD, doubted_until=ONE)
    doubt = of(store, doubted, LATER)
    assert (doubt.is_on, doubt.left(PAST_ONE, is_unanswered=False)) == (True, ONE), "it looked before the hour was over"
    doubt = of(store, doubted, PAST_ONE)
    assert (doubt.is_on, doubt.left(PAST_ONE, is_unanswered=False)) == (True, "")


def test_a_clock_that_was_ahead_doubts_no_longer_than_an_hour(store: Watched) -> None:
    doubt = of(store, replaced(RECORD, doubted_until="2099-01-31T12:00:00.000Z"))
    assert doubt.left(NOON, is_unanswered=False) == ONE


def test_a_request_without_an_answer_leaves_an_hour_but_not_one_that_was_never_sent(store: Watched) -> None:
    doubt = of(store, RECORD)
    with pytest.raises(UnreachableError):
        store.delete([])
    assert doubt.left(NOON, is_unanswered=store.is_unanswered) == ""
    with pytest.raises(UnavailableError):
        store.delete(["v1/a"])
    assert (doubt.is_on, doubt.left(NOON, is_unanswered=store.is_unanswered)) == (False, ONE), "later runs look"


def test_what_no_plan_could_settle_is_named_and_doubted_on(store: Watched) -> None:
    lost = Doubts(frozenset({"v1/b"}), missing=frozenset({"v1/a"}))
    doubt = of(store, replaced(RECORD, doubted_until=NOON), PAST_ONE).noting(lost, PAST_ONE)
    doubt = doubt.noting(Doubts(frozenset({"v1/b"})), PAST_ONE)
    assert not [*doubt.faults(store)]
    doubt = doubt.noting(lost, PAST_ONE)
    assert doubt.left(PAST_ONE, is_unanswered=False) == NOON
    (fault,) = doubt.faults(store)
    assert "v1/a (and 1 object more): deleted or altered by a request" in fault
