"""Credentials, without which boto3 and obstore make no request; and retries that nobody waits for."""

import pytest

from tests.support.stores.places import use_credentials


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds waited between attempts, recorded instead of slept."""
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited
