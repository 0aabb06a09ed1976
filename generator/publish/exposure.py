"""Whether anybody can read the two objects that only publishers need: the record and the list of blocked markets.

The record names every object, withdrawn ones included; the list names the markets that were taken down.
"""

import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Final

from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.publish import record
from generator.stores.store import Store
from generator.tree import blocklist

_PRIVATE: Final = (record.KEY, blocklist.KEY)
_PATIENCE_S: Final = 10
_AWS: Final = "https://s3.amazonaws.com"


def warnings(store: Store, config: Config) -> Iterator[str]:
    """A sentence for each of the objects that can be read without credentials, with the first such address."""
    for key in _PRIVATE:
        stored = store.get(key)
        shown = (address for address in _addresses(config, key) if stored and _is_shown(address, stored.body))
        if (address := next(shown, None)) is not None:
            yield (
                f"{store.name}: anyone can read {key} at {address}, and so learns what was withdrawn; let readers have "
                f"nothing but {API_VERSION}/"
            )


def _addresses(config: Config, key: str) -> Iterator[str]:
    """Where readers may find an object of the store."""
    if (found := config.publish.bucket()) is not None:
        bucket, prefix = found
        yield f"{(config.publish.endpoint_url or _AWS).rstrip('/')}/{bucket}/{prefix}{key}"
        if config.publish.endpoint_url is None:
            yield f"https://{bucket}.s3.amazonaws.com/{prefix}{key}"
    for base in dict.fromkeys((config.base_url, config.dumps.base_url)):
        if base:
            yield f"{base}/{key}"


def _is_shown(address: str, body: bytes) -> bool:
    """Whether a request without credentials is answered with exactly this body."""
    request = urllib.request.Request(address, headers={"User-Agent": "public-markets"})  # noqa: S310 - of the settings
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:  # noqa: S310
            return bool(answer.read(len(body) + 1) == body)
    except (OSError, HTTPException, ValueError):
        return False
