"""Probes that killed runs left are deleted by the next run that probes; those of live runs are left alone."""

import subprocess
import sys
from datetime import timedelta

import pytest

from generator import process_identity
from generator.stores import probes
from generator.stores.store import If
from tests.support.project import ROOT
from tests.support.stores.places import open_bucket
from tests.support.stores.s3.server import S3Server

HOUR_S = timedelta(hours=1).total_seconds()


def ended() -> str:
    program = "from generator import process_identity; print(process_identity.identity())"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def left_by(s3: S3Server, identity: str) -> None:
    """Leave a probe of the process with this identity, and an object of somebody else's."""
    store = open_bucket(s3, "obstore")
    body = probes.body(store, 1).replace(process_identity.identity().encode(), identity.encode())
    store.put(probes.new_key(), body, If.ABSENT)
    store.put("v1/build.json", b"{}", If.ABSENT)


def swept(s3: S3Server) -> int:
    """The probes that remain."""
    probes.sweep(open_bucket(s3, "obstore"))
    assert "v1/build.json" in s3.objects()
    return len(s3.objects()) - 1


@pytest.mark.parametrize(
    "identity",
    [process_identity.identity(), "another-boot/4026531836 1 1", "0123456789abcdef"],
    ids=["alive", "another boot", "unknown"],
)
def test_a_probe_that_may_be_in_use_is_left_alone_for_an_hour(identity: str, s3: S3Server) -> None:
    left_by(s3, identity)
    s3.behaviour.clock_offset_s = HOUR_S - 60
    assert swept(s3) == 1
    s3.behaviour.clock_offset_s = HOUR_S + 60
    assert swept(s3) == 0


def test_probes_of_a_killed_run_and_of_nobody_are_deleted(s3: S3Server) -> None:
    left_by(s3, ended())
    open_bucket(s3, "obstore").put("probe-0123.json", b"1", If.ABSENT)
    assert swept(s3) == 0
