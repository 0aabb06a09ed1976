"""docs/cluster.md and its details: the commands and configuration that it shows work as written."""

import re
import shlex
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import dask.config
import pytest
from distributed import Security
from distributed.cli import dask_scheduler, dask_worker

from tests.support.programs import require
from tests.support.readers.pages import PAGES, scripts

PAGE: Final = PAGES["docs/cluster.md"] + PAGES["docs/details/cluster.md"]
#: Has no types.
_SECURITY: Final[Any] = Security
ROLES: Final = ("scheduler", "worker", "client")
(CERTIFICATES,) = re.findall(r"^```sh\n(umask.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def environment(role: str, folder: Path) -> dict[str, str]:
    """The variables that the page sets for one role, whose files are in the folder."""
    (block,) = [
        block
        for block in re.findall(r"^```sh\n(export DASK.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
        if f"__{role.upper()}__" in block
    ]
    return dict(re.findall(r"^export (\w+)=(\S+)$", block.replace("/etc/dask", str(folder)), re.MULTILINE))


def make_certificates(folder: Path) -> None:
    """Run the page's commands in the folder."""
    require("openssl", reason="the certificates of docs/cluster.md are not made")
    subprocess.run(["sh", "-ec", CERTIFICATES], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the page's commands make."""
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@contextmanager
def configured(environ: Mapping[str, str]) -> Iterator[None]:
    """Have Dask, which reads its variables when it is imported, read these during the block."""
    given = dask.config.collect_env({**environ})
    with dask.config.set(dask.config.update(deepcopy(dask.config.global_config), given)):
        yield


def security(folder: Path, role: str) -> Any:
    """What Dask makes of the variables that the page sets for one role."""
    with configured(environment(role, folder)):
        return _SECURITY()


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Connect both in memory. Raises SSLError if one of them refuses the other."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [server.wrap_bio(to_server, to_client, server_side=True), client.wrap_bio(to_client, to_server)]
    for _ in range(5):
        for end in ends:
            try:
                end.do_handshake()
                end.read(1)
            except ssl.SSLWantReadError:
                continue
    assert all(end.version() for end in ends)


def test_nobody_but_its_owner_can_read_a_key(certificates: Path) -> None:
    assert {path.name: path.stat().st_mode & 0o777 for path in certificates.iterdir()} == {
        f"{name}.{suffix}": 0o600 for name in ("ca", *ROLES) for suffix in ("key", "pem")
    }


@pytest.mark.parametrize(
    ("listening", "connecting"), [("scheduler", "worker"), ("scheduler", "client"), ("worker", "scheduler")]
)
def test_scheduler_worker_and_client_accept_each_other(certificates: Path, listening: str, connecting: str) -> None:
    here, there = (security(certificates, role) for role in (listening, connecting))
    assert here.require_encryption is there.require_encryption is True
    shake_hands(here.get_listen_args(listening)["ssl_context"], there.get_connection_args(connecting)["ssl_context"])


def test_a_client_without_a_certificate_of_this_authority_is_refused(certificates: Path, tmp_path: Path) -> None:
    listening = security(certificates, "scheduler").get_listen_args("scheduler")["ssl_context"]
    nobody = ssl.create_default_context(cafile=certificates / "ca.pem")
    nobody.check_hostname = False
    make_certificates(tmp_path)
    nobody.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shake_hands(listening, nobody)
    nobody.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(listening, nobody)


def test_every_command_of_dask_shown_is_understood() -> None:
    commands: dict[str, Any] = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    shown = [shlex.split(line) for line in scripts(PAGE) if line.strip().startswith("dask ")]
    assert len(shown) == 4
    for _, name, *words in shown:
        assert commands[name].make_context(name, words).params["dashboard"] is False
