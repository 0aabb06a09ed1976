"""Builds read through PgBouncer, with as many connections as its pool lets them have."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

import pytest

from generator.demo.database import seed
from generator.site import worker_pool
from tests.source.native import Postgres
from tests.support.pgbouncer import pooler
from tests.support.postgres import Server
from tests.support.sites.builds import AS_OF, CHUNKED, build_now, files, make_config

SETTINGS: Final = {**CHUNKED, "search": "off"}


@pytest.fixture(scope="module")
def served(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A database that is worth several workers."""
    folder = tmp_path_factory.mktemp("served")
    seed(folder / "markets.db", as_of=AS_OF, markets=130)
    database = Postgres(postgres)
    database.copy(folder / "markets.db")
    with closing(database.connection):
        yield database


def built(folder: Path, url: str) -> tuple[dict[str, bytes], list[str]]:
    """The files of a build from this address, and its remarks about workers."""
    report = build_now(make_config(folder, **SETTINGS, source__url=url, output=folder / "output"))
    return files(folder / "output", "v1"), [str(one) for one in report.remarks if one.subject == "worker"]


@pytest.fixture(scope="module")
def direct(served: Postgres, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a build without a pooler."""
    return built(tmp_path_factory.mktemp("direct"), served.url)[0]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("size", [1, 2, 10])
def test_a_build_goes_on_with_the_connections_that_the_pool_has(
    size: int, mode: Literal["transaction", "session"], *, served: Postgres, postgres: Server,
    direct: dict[str, bytes], tmp_path: Path,
) -> None:  # fmt: skip
    workers = worker_pool.available()
    with pooler(postgres, size=size, mode=mode) as pool:
        made, remarks = built(tmp_path, pool.url(served.name))
        assert made == direct
        assert pool.logins() <= 1 + workers
    if size == 1 and workers > 1:
        (remark,) = remarks
        told = (
            r"warning: worker pool: not every worker got a connection to the database \((\d+) of \1: no answer within "
        )
        assert re.match(told, remark), remark
