"""Credentials, without which boto3 and obstore make no request."""

import pytest

from tests.support.stores.places import use_credentials


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch)
