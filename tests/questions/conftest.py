"""The troubled site, built once in a run."""

from pathlib import Path

import pytest

from tests.conftest import Shared
from tests.questions import sites
from tests.questions.asking import Get
from tests.questions.oracle import Oracle
from tests.questions.served import EXTENDED, TROUBLED, asked, oracle_for, served


@pytest.fixture(scope="session")
def troubled(shared: Shared) -> Path:
    """A site with a case for each rule, in the extended variant and in `chunks`. Read only."""

    def fill(folder: Path) -> None:
        served(folder, sites.troubled, **TROUBLED)

    return shared("troubled-questions", fill)


@pytest.fixture
def get(troubled: Path) -> Get:
    return asked(troubled, **TROUBLED)


@pytest.fixture
def oracle(get: Get, troubled: Path) -> Oracle:
    return oracle_for(get, troubled, EXTENDED)
