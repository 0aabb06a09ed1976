"""A temporary Ceph with its S3 server, in memory, reachable from this machine only."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.support.edges.servers import await_port, free_port, mortal
from tests.support.programs import require
from tests.support.waiting import PATIENCE_S

KEY_ID: Final = "test-key"
SECRET: Final = "test-secret"  # noqa: S105 - of a temporary server
_PROGRAMS: Final = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool")

#: The `mode`s: without keys nothing can be encrypted. The `paxos` times: every pool waits for the monitor several
#: times, and to wait a second each time makes the start take eleven.
_CONFIGURATION: Final = """
[global]
fsid = {id}
mon_host = v2:127.0.0.1:{monitor_port}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_msgr1 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
auth_allow_insecure_global_id_reclaim = true
ms_cluster_mode = crc
ms_service_mode = crc
ms_client_mode = crc
ms_mon_cluster_mode = crc
ms_mon_service_mode = crc
ms_mon_client_mode = crc
run_dir = {folder}
crash_dir = {folder}
rgw_data = {folder}
mon_data = {folder}/monitor
osd_data = {folder}/disk
admin_socket =
pid_file =
log_file =
log_to_stderr = true
err_to_stderr = true
osd_objectstore = memstore
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
mon_allow_pool_size_one = true
paxos_propose_interval = 0.02
paxos_min_wait = 0.01
rgw_frontends = beast endpoint=127.0.0.1:{port}
"""


@contextmanager
def running() -> Iterator[int]:
    """Run it during the block and yield its port."""
    for program in _PROGRAMS:
        require(program, reason="install Ceph's radosgw to publish to a server that checks signatures")
    with ExitStack() as daemons:
        folder = Path(tempfile.mkdtemp(prefix="public-markets-ceph-"))
        daemons.callback(shutil.rmtree, folder, ignore_errors=True)
        yield _start(folder, daemons)


def _start(folder: Path, daemons: ExitStack) -> int:
    """Start a monitor, a disk in memory and the S3 server; each needs the one before."""
    port = _configure(folder)
    disk = str(uuid4())
    _run(folder, "ceph-mon", "--mkfs", "-i", "a", "--monmap", "monitors")
    _daemon(folder, daemons, "ceph-mon", "-i", "a")
    number = _run(folder, "ceph", "osd", "new", disk).strip()
    _run(folder, "ceph-osd", "-i", number, "--mkfs", "--osd-uuid", disk)
    _daemon(folder, daemons, "ceph-osd", "-i", number)
    user = ("--uid", "test", "--display-name", "test", "--access-key", KEY_ID, "--secret-key", SECRET)
    _run(folder, "radosgw-admin", "user", "create", *user)
    server = _daemon(folder, daemons, "radosgw", "-n", "client.admin")
    await_port(port, server, (folder / "radosgw.log").read_text)
    return port


def _configure(folder: Path) -> int:
    name, monitor_port, port = str(uuid4()), free_port(), free_port()
    text = _CONFIGURATION.format(id=name, folder=folder, monitor_port=monitor_port, port=port)
    (folder / "ceph.conf").write_text(text)
    (folder / "disk").mkdir()
    address = f"[v2:127.0.0.1:{monitor_port}]"
    _run(folder, "monmaptool", "--create", "--fsid", name, "--addv", "a", address, "monitors")
    return port


def _command(program: str, *arguments: str) -> Sequence[str]:
    return (program, "-c", "ceph.conf", *arguments)


def _run(folder: Path, program: str, *arguments: str) -> str:
    command = _command(program, *arguments)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{program} failed: {done.stderr}"
    return done.stdout


def _daemon(folder: Path, daemons: ExitStack, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start a program that runs until `daemons` closes."""
    command = mortal(*_command(program, "-f", *arguments))
    with (folder / f"{program}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    daemons.callback(_stop, process)
    return process


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.kill()  # there is nothing to save
    process.wait()
