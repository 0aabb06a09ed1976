"""The lease: one publisher at a time, by the store's clock."""

import os
import re
import socket
import subprocess
import sys
from datetime import timedelta

import pytest

from generator.config.settings import LONGEST_LEASE
from generator.errors import BusyError, OutcomeUnknownError, StoreError
from generator.publish import record
from generator.publish.lease import Lease
from generator.publish.record import Published
from tests.support.project import ROOT
from tests.support.sites.builds import manifest_of
from tests.support.stores.places import open_bucket, use_credentials
from tests.support.stores.s3.behaviour import APPLIED_BUT_FAILED, DROPPED, Fault
from tests.support.stores.s3.bucket import Conditions
from tests.support.stores.s3.server import S3Server
from tests.support.stores.s3.wire import Request

LEASE = timedelta(minutes=5)
RECORD = Published(sequence=0, built=manifest_of(), etags={})


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch)


def opened(s3: S3Server, duration: timedelta = LEASE) -> Lease:
    lease = Lease(open_bucket(s3, "obstore"), duration)
    lease.read()
    return lease


def stored(s3: S3Server) -> Published:
    return record.decoded(s3.objects()[record.KEY][0])


def put(s3: S3Server, body: bytes) -> None:
    s3.bucket.put(record.KEY, body, {}, Conditions())


def held_by(s3: S3Server, process: str) -> None:
    """Leave a record whose lease a process of this identity holds."""
    opened(s3).take(RECORD, ("v1/build.json",))
    found = stored(s3)
    assert found.work
    put(s3, found.model_copy(update={"work": found.work.model_copy(update={"process": process})}).encoded())


def test_a_store_without_a_record_is_read_as_none(s3: S3Server) -> None:
    lease = opened(s3)
    assert lease.published is None
    lease.refuse_if_busy()


def test_a_held_lease_names_its_holder_deadline_and_touched_keys(s3: S3Server) -> None:
    s3.behaviour.clock_offset_s = 86_400.0 * 365
    lease = opened(s3)
    lease.take(RECORD, ("v1/build.json",))
    found = stored(s3)
    assert found.sequence == 1
    assert found.work
    assert found.work.who == f"process {os.getpid()} on {socket.gethostname()}"
    assert found.work.touched == ("v1/build.json",)
    assert found.work.since <= lease.now < found.work.deadline
    assert int(found.work.deadline[:4]) == int(lease.now[:4])
    lease.release(RECORD)
    assert stored(s3).work is None
    assert stored(s3).sequence == 2


def test_a_busy_error_names_the_holder(s3: S3Server) -> None:
    opened(s3).take(RECORD, ())
    with pytest.raises(BusyError) as caught:
        opened(s3).refuse_if_busy()
    assert re.fullmatch(
        r"s3://markets: process \d+ on \S+ has been publishing since \S+Z and holds the lease until \S+Z "
        r"\(now \S+Z, all by the store's clock\); run again then",
        str(caught.value),
    )


def test_a_lease_expires_by_the_stores_clock(s3: S3Server) -> None:
    opened(s3).take(RECORD, ())
    s3.behaviour.clock_offset_s = LEASE.total_seconds() - 5
    with pytest.raises(BusyError):
        opened(s3).refuse_if_busy()
    s3.behaviour.clock_offset_s = LEASE.total_seconds() + 5
    opened(s3).refuse_if_busy()


def test_a_lease_from_a_time_when_the_stores_clock_was_years_ahead_has_expired(s3: S3Server) -> None:
    s3.behaviour.clock_offset_s = 86_400.0 * 365 * 3
    opened(s3).take(RECORD, ())
    with pytest.raises(BusyError):
        opened(s3).refuse_if_busy()
    s3.behaviour.clock_offset_s = 0
    opened(s3).refuse_if_busy()


def test_the_longest_lease_that_can_be_set_keeps_others_out(s3: S3Server) -> None:
    opened(s3, LONGEST_LEASE).take(RECORD, ())
    with pytest.raises(BusyError):
        opened(s3).refuse_if_busy()


def test_the_lease_of_an_ended_process_on_this_machine_is_taken_over(s3: S3Server) -> None:
    program = "from generator import process_identity; print(process_identity.identity())"
    identity = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    held_by(s3, identity)
    opened(s3).refuse_if_busy()


@pytest.mark.parametrize("identity", ["0123456789abcdef", "another-boot/4026531836 1 1", ""])
def test_the_lease_of_a_publisher_on_another_machine_is_respected(s3: S3Server, identity: str) -> None:
    held_by(s3, identity)
    with pytest.raises(BusyError):
        opened(s3).refuse_if_busy()


def test_of_two_concurrent_publishers_one_is_refused(s3: S3Server) -> None:
    first, second = opened(s3), opened(s3)
    first.take(RECORD, ())
    with pytest.raises(BusyError, match="another publisher replaced the record first, and its publish is complete"):
        second.take(RECORD, ())
    first.release(RECORD)
    with pytest.raises(BusyError, match="replaced the record first"):
        second.take(RECORD, ())


def test_a_renewal_keeps_the_start_and_moves_the_deadline(s3: S3Server) -> None:
    lease = opened(s3)
    lease.take(RECORD, ("v1/build.json",))
    before = stored(s3).work
    lease.renew_if_needed()
    assert stored(s3).work == before, "not due yet"
    s3.behaviour.clock_offset_s = 3
    lease._held_since -= 0.4 * LEASE.total_seconds()  # noqa: SLF001 - as if so much later
    lease.renew_if_needed()
    after = stored(s3).work
    assert before
    assert after
    assert (after.owner, after.since, after.touched) == (before.owner, before.since, before.touched)
    assert after.deadline > before.deadline


def test_a_publisher_that_could_not_renew_in_time_stops(s3: S3Server) -> None:
    lease = opened(s3)
    lease.take(RECORD, ())
    lease.require_valid()
    lease._held_since -= 0.81 * LEASE.total_seconds()  # noqa: SLF001 - as if so much later
    for stopped in (lease.require_valid, lease.renew_if_needed, lease.confirm_held):
        with pytest.raises(BusyError, match="could not renew its lease in time"):
            stopped()
    requests = len(s3.log)
    with pytest.raises(BusyError):
        lease.renew_if_needed()
    assert len(s3.log) == requests, "no further requests"


def test_a_publisher_that_lost_its_lease_notices_when_it_confirms(s3: S3Server) -> None:
    lease = opened(s3)
    lease.take(RECORD, ())
    lease.confirm_held()
    put(s3, stored(s3).model_copy(update={"sequence": 9}).encoded())
    with pytest.raises(BusyError, match="replaced the record first"):
        lease.confirm_held()
    with pytest.raises(BusyError, match="replaced the record first"):
        lease.release(RECORD)
    assert stored(s3).sequence == 9


@pytest.mark.parametrize("fault", [APPLIED_BUT_FAILED, DROPPED, Fault(applied=True)])
def test_the_outcome_of_an_unanswered_put_is_looked_up(s3: S3Server, fault: Fault) -> None:
    faults = [fault]

    def fail_once(request: Request) -> Fault | None:
        return faults.pop() if request.operation == "PutObject" and faults else None

    lease = opened(s3)
    s3.before = fail_once
    lease.take(RECORD, ())
    assert not faults
    lease.confirm_held()
    lease.release(RECORD)
    assert stored(s3).sequence == 2


def test_a_put_that_is_never_answered_leaves_the_outcome_unknown(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    lease = opened(s3)
    s3.before = lambda request: APPLIED_BUT_FAILED if request.operation == "PutObject" else Fault(503, "SlowDown")
    with pytest.raises(OutcomeUnknownError, match=r"it is unknown whether manifest\.json was replaced .* run again"):
        lease.take(RECORD, ())
    s3.before = None
    assert stored(s3).sequence == 1


def test_a_damaged_record_is_refused_unless_it_is_doubted(s3: S3Server) -> None:
    lease = Lease(open_bucket(s3, "obstore"), LEASE)
    for damaged in (b'{"name": "somebody\'s web app"}', b"", RECORD.encoded()[:50]):
        put(s3, damaged)
        with pytest.raises(StoreError, match=r"damaged or not this program's .* `public-markets publish --verify`"):
            lease.read()
        assert lease.read(is_doubted=True) is None
        lease.take(RECORD, ())
        assert stored(s3).work
        lease.release(RECORD)


@pytest.mark.parametrize("is_doubted", [False, True])
def test_the_record_of_a_newer_program_is_never_replaced(s3: S3Server, is_doubted: bool) -> None:  # noqa: FBT001 - a row
    put(s3, b'{"format": 3, "all": "new"}')
    with pytest.raises(StoreError, match="format 3, this program knows 2; upgrade this program"):
        Lease(open_bucket(s3, "obstore"), LEASE).read(is_doubted=is_doubted)
