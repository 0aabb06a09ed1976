from datetime import timedelta
from pathlib import Path

import pytest

from generator.cost import prices
from generator.cost.estimate import Terms


@pytest.fixture
def terms(tmp_path: Path) -> Terms:
    """A publish an hour, at the shipped prices."""
    return Terms(60, timedelta(hours=6), prices.load())
