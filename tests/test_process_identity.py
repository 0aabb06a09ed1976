"""Whether another publisher on this machine has ended: only what is certain counts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generator import process_identity
from tests.support.programs import require, unavailable
from tests.support.project import ROOT
from tests.support.waiting import PATIENCE_S


@contextmanager
def another() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that lives until its input ends, and its identity."""
    program = (
        "import sys; from generator import process_identity; print(process_identity.identity(), flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_process_has_ended_once_it_is_a_zombie_or_gone() -> None:
    with another() as (process, identity):
        assert not process_identity.has_ended(identity)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_identity.has_ended(identity), "a zombie"
        process.wait()
        assert process_identity.has_ended(identity), "gone"


def test_a_process_with_the_same_number_and_another_start_is_another_process() -> None:
    place, number, start = process_identity.identity().split()
    assert not process_identity.has_ended(f"{place} {number} {start}")
    assert process_identity.has_ended(f"{place} {number} {int(start) - 1}")


#: Hides the processes of other users, drops to a user with no rights, and judges the process with the identity.
_HIDDEN = """
mount -t proc -o hidepid=2 proc /proc || exit 77
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0" -c "$1" "$2"
"""
_JUDGE = "import sys; from generator import process_identity; print(process_identity.has_ended(sys.argv[1]))"


def judged(identity: str, tmp_path: Path) -> str:
    """What another user finds, who cannot see the processes of others."""
    if os.geteuid() != 0:
        unavailable("mounting /proc with hidepid needs root")
    unshare = require("unshare", reason="a /proc of its own is not mounted")
    require("setpriv", reason="another user's view of /proc is not tested")
    done = subprocess.run(
        [unshare, "--mount", "sh", "-c", _HIDDEN, sys.executable, _JUDGE, identity],
        cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    if done.returncode == 77:
        unavailable(f"/proc cannot be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_another_users_live_process_is_not_taken_for_dead_where_proc_hides_it(tmp_path: Path) -> None:
    with another() as (process, identity):
        assert judged(identity, tmp_path) == "False"
        process.kill()
        process.wait()
        assert judged(identity, tmp_path) == "True"
