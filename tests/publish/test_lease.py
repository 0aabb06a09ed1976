"""The lease: one publisher at a time, by the store's clock."""

import os
import re
import socket
import subprocess
import sys
from contextlib import nullcontext
from datetime import timedelta

import pytest

from generator.errors import BusyError
from generator.publish import record
from generator.publish.lease import LEASE, LONGEST_LEASE, Lease
from generator.publish.record import Published
from tests.support.project import ROOT
from tests.support.sites.builds import manifest_of
from tests.support.stores.places import open_bucket, use_credentials
from tests.support.stores.s3.server import S3Server

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
    s3.bucket.put(record.KEY, body, {})


def held_by(s3: S3Server, process: str) -> None:
    """Leave a record whose lease a process of this identity holds."""
    opened(s3).take(RECORD, ("v1/build.json",))
    found = stored(s3)
    assert found.work
    put(s3, found.model_copy(update={"work": found.work.model_copy(update={"process": process})}).encoded())


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


@pytest.mark.parametrize(
    ("duration", "taken_s", "read_s", "is_held"),
    [
        (LEASE, 0, LEASE.total_seconds() - 5, True),
        (LEASE, 0, LEASE.total_seconds() + 5, False),
        (LEASE, 86_400.0 * 365 * 3, 0, False),  # the clock was years ahead
        (LONGEST_LEASE, 0, 0, True),
    ],
)
def test_a_lease_lasts_and_expires_by_the_stores_clock(
    s3: S3Server, duration: timedelta, taken_s: float, read_s: float, *, is_held: bool
) -> None:
    s3.behaviour.clock_offset_s = taken_s
    opened(s3, duration).take(RECORD, ())
    s3.behaviour.clock_offset_s = read_s
    with pytest.raises(BusyError) if is_held else nullcontext():
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
