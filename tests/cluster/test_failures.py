"""A failure of a cluster ends the build with one sentence and exit code 1, and changes nothing."""

import os
import re
import shutil
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import quote

import dask
import pytest

from generator.program import this_program
from generator.tree.folder import locked
from tests.cluster.relay import relayed
from tests.cluster.sites import ClusterSite, assert_same, everything
from tests.support.cluster import Cluster, running
from tests.support.commands import Running
from tests.support.edges.servers import free_port
from tests.support.postgres import PASSWORD, Server
from tests.support.project import ROOT

LATER: Final = "2026-01-31T13:00:00.000Z"
_URL: Final = "PUBLIC_MARKETS_SOURCE__URL"
#: In no message of ours or of Dask's.
CANARY: Final = "canary8f3a"


@pytest.fixture
def unchanged(demo: ClusterSite) -> Iterator[ClusterSite]:
    """The demo; the output folder `cluster`, which a build at another time would change, must be as before the test."""
    output = demo.output("cluster")
    if not output.exists():
        shutil.copytree(demo.output("forked"), output)
    before = everything(output)
    yield demo
    assert_same(before, everything(output))


def begin(site: ClusterSite, cluster: str, *, url: str = "", is_fresh: bool = False) -> Running:
    return site.begin(cluster, as_of=LATER, url=url, is_fresh=is_fresh)


def sentence(begun: Running) -> str:
    """The command must fail with one sentence."""
    ended = begun.wait()
    assert ended.returncode == 1, ended.stderr
    (found,) = re.findall(r"^error: (.+)", ended.stderr, re.MULTILINE)
    for unwanted in ("Traceback", "distributed", "bug", PASSWORD, quote(PASSWORD, safe=""), CANARY):
        assert unwanted not in ended.stderr, ended.stderr
    return str(found)


# ── the scheduler ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("listens", [False, True], ids=["nothing listens", "a server that is not a scheduler"])
def test_an_address_without_a_scheduler(unchanged: ClusterSite, *, listens: bool) -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0))) if listens else None
        address = f"tcp://127.0.0.1:{silent.getsockname()[1] if silent else free_port()}"
        with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
            found = sentence(begin(unchanged, address))
    assert found.startswith(f"cluster: {address}: no Dask scheduler can be reached{' (no answer)' * listens}")


@pytest.mark.campaign(short=0)
def test_a_scheduler_that_is_killed_while_workers_render(
    unchanged: ClusterSite, worker_environ: Mapping[str, str]
) -> None:
    with running(worker_environ, workers=1) as cluster, unchanged.held():
        begun = begin(unchanged, cluster.address, is_fresh=True)
        unchanged.worker_at_gate(cluster, begun)
        cluster.scheduler.kill()
        assert sentence(begun) == (
            f"cluster: the scheduler {cluster.address} went away; nothing was replaced; run again"
        )


@pytest.mark.campaign(short=0)
def test_an_interrupt_while_workers_render(unchanged: ClusterSite, workers: Cluster) -> None:
    with unchanged.held():
        begun = begin(unchanged, workers.address, is_fresh=True)
        unchanged.worker_at_gate(workers, begun)
        os.kill(begun.pid, signal.SIGINT)
        ended = begun.wait()
    assert ended.returncode == 1
    assert ended.stderr.split() == ["Aborted!"]
    with locked(unchanged.output("cluster")):
        pass  # nobody else has it


# ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_a_worker_of_another_version(
    unchanged: ClusterSite, odd: Cluster, worker_environ: Mapping[str, str], tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "generator", tmp_path / "generator", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "generator/wording.py").open("a") as file:
        file.write("# another version\n")
    worker = odd.joined(odd.begin(worker_environ, tmp_path))
    found = sentence(begin(unchanged, odd.address))
    digests = re.fullmatch(
        rf"worker {worker.address} runs public-markets \S+ \(program (\w+)\), but the coordinator runs "
        r"public-markets \S+ \(program (\w+)\); install the same version of this program, with the same Python, on "
        r"every worker",
        found,
    )
    assert digests, found
    assert digests[2] == this_program().digest != digests[1]


def test_a_worker_without_an_installation(
    unchanged: ClusterSite, odd: Cluster, worker_environ: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "generator").mkdir()
    (tmp_path / "generator/__init__.py").touch()  # before any that is installed
    worker = odd.joined(odd.begin(worker_environ, tmp_path))
    assert f"worker {worker.address} cannot import public-markets" in sentence(begin(unchanged, odd.address))


@pytest.mark.campaign(short=0)
def test_a_worker_without_the_address_of_the_database(unchanged: ClusterSite, odd: Cluster) -> None:
    worker = odd.joined(odd.begin({}))
    assert sentence(begin(unchanged, odd.address)) == (
        f"worker {worker.address}: {_URL} is not set; set it in the environment of every worker"
    )


@pytest.mark.campaign(short=0)
def test_a_worker_that_names_another_database(unchanged: ClusterSite, odd: Cluster, postgres: Server) -> None:
    worker = odd.joined(odd.begin({_URL: postgres.url(postgres.create_database())}))
    found = sentence(begin(unchanged, odd.address))
    assert worker.address in found
    assert _URL in found


# ── the database ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_transaction_that_exports_the_snapshot_is_ended_while_workers_render(
    unchanged: ClusterSite, workers: Cluster
) -> None:
    with unchanged.held():
        begun = begin(unchanged, workers.address)
        unchanged.worker_at_gate(workers, begun)
        unchanged.cut_off(begun)
    assert sentence(begun).endswith("run again")


def test_sqlite(unchanged: ClusterSite, demo_rows: Path) -> None:
    begun = begin(unchanged, "tcp://127.0.0.1:1", url=f"sqlite:///{demo_rows}")
    assert "cluster needs PostgreSQL" in sentence(begun)


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_of_the_databases_address_reaches_the_scheduler(demo: ClusterSite, workers: Cluster) -> None:
    with relayed(workers.port) as relay:
        demo.build(relay.address, "relayed")
    assert relay.has_passed(demo.schema), "settings pass, and can be read"
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "postgresql:"):
        assert not relay.has_passed(secret)


@pytest.mark.campaign(short=0)
def test_the_password_of_a_worker_stays_there_when_the_database_refuses_it(
    unchanged: ClusterSite, odd: Cluster, postgres: Server
) -> None:
    worker = odd.joined(odd.begin({_URL: postgres.url(unchanged.rows.name, password=CANARY)}))
    with relayed(odd.port) as relay:
        found = sentence(begin(unchanged, relay.address))
    assert "password authentication failed" in found
    assert not relay.has_passed(CANARY)
    assert CANARY not in worker.text() + odd.scheduler.text()
