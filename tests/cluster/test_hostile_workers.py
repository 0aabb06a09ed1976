"""Whoever runs a worker, or reaches the scheduler, cannot run code on the coordinator, which holds the keys."""

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.sites import ClusterSite
from tests.support.cluster import Cluster, running
from tests.support.project import ROOT

#: Replaces what a worker runs; `{run}` is what it does with each call. The process that unpickles an `Attack` notes its
#: own number.
_WORKER: Final = """

def run(program, payload, worker):
    import os, pickle

    class Attack:
        def __reduce__(self):
            return os.system, ("echo $PPID >> '{mark}'",)

    class AttackError(Exception):
        __reduce__ = Attack.__reduce__

    def everywhere(dask_scheduler):
        from distributed.protocol.serialize import ToPickle
        for stream in dask_scheduler.client_comms.values():
            stream.send({{"op": "print", "args": ToPickle(Attack())}})

    {run}
"""
ATTACKS: Final = {
    "a message of the scheduler": (
        "from distributed import get_client; get_client().run_on_scheduler(everywhere); return b''"
    ),
    "bytes that are a pickle": "return pickle.dumps(Attack())",
    "a result that Dask pickles": "return Attack()",
    "an error that Dask pickles": "raise AttackError",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with a copy of the program."""
    shutil.copytree(ROOT / "generator", tmp_path / "generator", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def change(program: Path, run: str) -> None:
    """Replace what a worker runs."""
    worker = program / "generator" / "cluster" / "worker.py"
    worker.write_text(worker.read_text("utf-8") + run, "utf-8")


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_pickle_from_a_worker_runs_no_code_on_the_coordinator(
    demo: ClusterSite, odd: Cluster, program: Path, attack: str
) -> None:
    mark = program / "attacked"
    change(program, _WORKER.format(mark=mark, run=ATTACKS[attack]))
    odd.joined(odd.begin({"PUBLIC_MARKETS_SOURCE__URL": demo.rows.url}, program))
    begun = demo.begin(odd.address, "attacked")
    ended = begun.wait()
    attacked = mark.read_text("utf-8").split() if mark.exists() else []
    assert str(begun.pid) not in attacked, ended.stderr
    assert ended.returncode == 1
    assert re.fullmatch(r"error: cluster: .*(a pickle that names|returned something else).*\n", ended.stderr)


def test_the_pickle_with_which_dask_gives_up_a_task_is_told_as_what_it_means(demo: ClusterSite, program: Path) -> None:
    change(program, "\ndef run(*_):\n    import os; os._exit(1)\n")
    own = {"PUBLIC_MARKETS_SOURCE__URL": demo.rows.url}
    with running(own, workers=0, scheduler={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}) as cluster:
        cluster.joined(cluster.begin(own, program))
        ended = demo.begin(cluster.address, "given up").wait()
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: cluster: one worker after the other died while it ran the same task; ")
