"""A scheduler with TLS, configured as in docs/cluster.md, serves only clients with a certificate of the cluster."""

import gc
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from generator.cluster import engine
from generator.errors import ClusterError
from tests.source.native import Postgres, assert_same_files
from tests.support import commands
from tests.support.edges.servers import free_port, mortal
from tests.support.postgres import Server
from tests.support.project import ROOT
from tests.support.sites.builds import NOW
from tests.support.waiting import wait_until
from tests.test_cluster_docs import ROLES, configured, environment, make_certificates

Environment = Mapping[str, str]
REQUIRED: Environment = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}


@dataclass(frozen=True)
class Encrypted:
    """A scheduler with TLS and without workers, and the variables of each role.

    A `stranger` trusts the cluster, and has a certificate of another authority.
    """

    address: str
    environ: Mapping[str, Environment]


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    own, other, folder = (tmp_path_factory.mktemp(name) for name in ("own", "other", "scheduler"))
    for certificates in (own, other):
        make_certificates(certificates)
    strange = environment("client", other) | {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(own / "ca.pem")}
    environ = {**{role: environment(role, own) for role in ROLES}, "stranger": strange}
    address = f"tls://127.0.0.1:{free_port()}"
    with running("scheduler", "--host", address, environ=environ["scheduler"], folder=folder) as log:
        wait_until(lambda: "Scheduler at:" in log.read_text())
        yield Encrypted(address, environ)


@contextmanager
def running(program: str, *words: str, environ: Environment, folder: Path) -> Iterator[Path]:
    """Run a program of Dask, `scheduler` or `worker`; yield its log."""
    log = folder / "log"
    command = mortal(
        sys.executable, "-m", f"distributed.cli.dask_{program}", *words, "--dashboard-address", "127.0.0.1:0"
    )
    environ = {"DASK_CONFIG": str(folder), "PYTHONPATH": str(ROOT), **environ}
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=folder, env=environ, stdout=output, stderr=output) as it,
    ):
        try:
            yield log
        finally:
            it.kill()


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize(
    ("scheme", "given", "told"),
    [
        ("tls", "stranger", "correct the setting or the certificates"),
        ("tls", "nothing", "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"),
        ("tcp", "nothing", "begins with tls://"),
        ("tcp", "required", "encryption required.*begins with tls://"),
    ],
)
def test_a_client_without_a_certificate_of_the_cluster_is_refused_and_told_what_to_correct(
    encrypted: Encrypted, scheme: str, given: str, told: str
) -> None:
    environ = {"nothing": {}, "required": REQUIRED, **encrypted.environ}[given]
    address = encrypted.address.replace("tls", scheme)
    with (
        configured(environ),
        pytest.raises(ClusterError, match=rf"{address}: no Dask scheduler can be reached .*{told}"),
        engine.connected(address),
    ):
        pass
    gc.collect()  # a client that was not closed would warn


@pytest.mark.campaign(short=0)
def test_a_client_with_a_certificate_is_served(encrypted: Encrypted) -> None:
    with (
        configured(encrypted.environ["client"]),
        pytest.raises(ClusterError, match="has no worker"),
        engine.connected(encrypted.address, patience_s=0.1),
    ):
        pass


@pytest.mark.campaign(short=0)
def test_a_build_with_certificates_makes_the_same_files_as_one_without_a_cluster(
    encrypted: Encrypted, postgres: Server, demo_folder: Path, tmp_path: Path
) -> None:
    rows = Postgres(postgres)
    rows.copy(demo_folder / "markets.db")
    rows.connection.close()
    source = {"PUBLIC_MARKETS_SOURCE__URL": rows.url}
    worker = {**encrypted.environ["worker"], **source}
    (tmp_path / "config.yaml").touch()
    with running("worker", encrypted.address, "--nthreads=1", "--no-nanny", environ=worker, folder=tmp_path):
        for name, given in (
            ("cluster", {"PUBLIC_MARKETS_CLUSTER": encrypted.address, **encrypted.environ["client"]}),
            ("alone", {}),
        ):
            # In a process that has not loaded Dask yet, so that this reads its variables.
            built = commands.run(
                "build", "--as-of", NOW, "--set", f"output={name}", "--set", "layout=chunks",
                cwd=tmp_path, **source, **given,
            )  # fmt: skip
            assert built.returncode == 0, built.stderr
    assert_same_files(tmp_path / "cluster", tmp_path / "alone")
