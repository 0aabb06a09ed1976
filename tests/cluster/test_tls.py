"""A scheduler with TLS, configured as in docs/cluster.md, serves only clients with a certificate of the cluster."""

import gc
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from generator.cluster import engine
from generator.errors import ClusterError
from tests.cluster.sites import ClusterSite, assert_same, everything
from tests.support.cluster import Cluster, running
from tests.test_cluster_docs import ROLES, configured, environment, make_certificates

Environment = Mapping[str, str]
REQUIRED: Environment = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}


class Encrypted(NamedTuple):
    """A scheduler with TLS and without workers, and the variables of each role.

    A `stranger` trusts the cluster, and has a certificate of another authority.
    """

    cluster: Cluster
    environ: Mapping[str, Environment]


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    own, other = (tmp_path_factory.mktemp(name) for name in ("own", "other"))
    for certificates in (own, other):
        make_certificates(certificates)
    strange = environment("client", other) | {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(own / "ca.pem")}
    environ = {**{role: environment(role, own) for role in ROLES}, "stranger": strange}
    with running({}, workers=0, scheduler=environ["scheduler"], scheme="tls") as cluster:
        yield Encrypted(cluster, environ)


@pytest.mark.campaign(short=1)
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
    address = encrypted.cluster.address.replace("tls", scheme)
    with (
        configured(environ),
        pytest.raises(ClusterError, match=rf"{address}: no Dask scheduler can be reached .*{told}"),
        engine.connected(address),
    ):
        pass
    gc.collect()  # a client that was not closed would warn


@pytest.mark.campaign(short=0)
def test_a_build_with_certificates_makes_the_same_files_as_one_without_a_cluster(
    encrypted: Encrypted, demo: ClusterSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = {**encrypted.environ["worker"], "PUBLIC_MARKETS_SOURCE__URL": demo.rows.url}
    encrypted.cluster.joined(encrypted.cluster.begin(worker))
    for name, value in encrypted.environ["client"].items():
        monkeypatch.setenv(name, value)
    # In a process that has not loaded Dask yet, so that this reads its variables.
    ended = demo.begin(encrypted.cluster.address, "encrypted", is_fresh=True).wait()
    assert ended.returncode == 0, ended.stderr
    assert_same(everything(demo.output("encrypted")), everything(demo.output("forked")))
