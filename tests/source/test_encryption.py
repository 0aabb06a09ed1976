"""Options in `source.url` reach PostgreSQL's driver: a server is trusted only with the certificate that they name."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from generator.errors import SourceError
from generator.markets.quarantine import Quarantine
from generator.source.reader import open_reader
from tests.support import programs
from tests.support.postgres import Server
from tests.support.sites.builds import make_config
from tests.support.waiting import wait_until


def certificate(folder: Path, name: str) -> Path:
    """A self-signed certificate for 127.0.0.1, and its key beside it."""
    openssl = programs.require("openssl", reason="install openssl to test encrypted connections")
    path = folder / f"{name}.crt"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"),
            *("-out", path, "-keyout", path.with_suffix(".key")),
        ],
        check=True,
        capture_output=True,
    )
    return path


@pytest.fixture(scope="module")
def certificates(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The certificate with which the server encrypts, and one that it does not have."""
    folder = tmp_path_factory.mktemp("certificates")
    ours, foreign = certificate(folder, "ours"), certificate(folder, "foreign")
    with postgres.connect() as connection:
        data = Path(connection.execute("SHOW data_directory").fetchone()[0])
        for source, name in ((ours, "server.crt"), (ours.with_suffix(".key"), "server.key")):
            shutil.copy(source, data / name)
            shutil.chown(data / name, data.owner(), data.group())
            (data / name).chmod(0o600)
        connection.execute("ALTER SYSTEM SET ssl = on")
        connection.execute("SELECT pg_reload_conf()")
        _wait_for(postgres)
        yield ours, foreign
        connection.execute("ALTER SYSTEM RESET ssl")
        connection.execute("SELECT pg_reload_conf()")


def _wait_for(server: Server) -> None:
    def encrypts() -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(f"{server.url('postgres')}?sslmode=require"):
            return True
        return False

    wait_until(encrypts)


def read(folder: Path, url: str) -> None:
    with open_reader(make_config(folder, source__url=url), Quarantine()):
        pass


def test_the_certificate_that_the_url_names_is_the_one_that_is_trusted(
    postgres: Server, certificates: tuple[Path, Path], tmp_path: Path
) -> None:
    ours, foreign = certificates
    url = f"{postgres.url('postgres')}?sslmode=verify-full&sslrootcert="
    read(tmp_path, url + quote(str(ours)))
    with pytest.raises(SourceError, match=r"certificate verify failed.*; name the file of its authority"):
        read(tmp_path, url + quote(str(foreign)))
    with pytest.raises(SourceError, match=r'root certificate file ".*/absent\.crt" does not exist'):
        read(tmp_path, url + quote(str(tmp_path / "absent.crt")))


def test_a_server_with_another_name_than_in_its_certificate_is_refused(
    postgres: Server, certificates: tuple[Path, Path], tmp_path: Path
) -> None:
    url = postgres.url("postgres").replace("127.0.0.1", "localhost")
    with pytest.raises(SourceError, match='does not match host name "localhost"'):
        read(tmp_path, f"{url}?sslmode=verify-full&sslrootcert={quote(str(certificates[0]))}")
