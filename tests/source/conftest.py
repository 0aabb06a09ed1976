"""Databases shared by the tests of the reader."""

from collections.abc import Callable, Iterator

import pytest

from tests.source.native import Postgres
from tests.support.postgres import Server


@pytest.fixture
def make_postgres(postgres: Server) -> Iterator[Callable[..., Postgres]]:
    made: list[Postgres] = []

    def make(**types: str) -> Postgres:
        made.append(Postgres(postgres, **types))
        return made[-1]

    yield make
    for database in made:
        database.connection.close()
