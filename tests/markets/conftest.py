import pytest

from generator.markets.quarantine import Quarantine


@pytest.fixture
def quarantine() -> Quarantine:
    return Quarantine()
