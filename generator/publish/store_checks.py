"""What can be wrong with a store, each with its message; `check` reports all of them, a publish the grave ones."""

import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

from generator.api.contract import API_VERSION
from generator.config import networks
from generator.config.settings import Config
from generator.errors import StoreError
from generator.publish import record
from generator.publish.record import Published
from generator.stores import probes
from generator.stores.requests import probe, with_retries
from generator.stores.store import Store, UnsupportedError
from generator.tree import blocklist

#: How long a store is trusted to honour conditional puts after it has proved it.
_PROBE_LIFETIME: Final = timedelta(days=7)
#: How much earlier a later answer of a store may seem: Dates are whole seconds, and its servers' clocks differ.
_WOBBLE: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Proof:
    """What a probe of a store found: when it was made, empty if none was due, and warnings for the operator."""

    probed_at: str = ""
    warnings: tuple[str, ...] = ()


def proof(store: Store, published: Published | None, config: Config, now: str, *, is_verifying: bool) -> Proof:
    """Probe a store before a publish, once a week and when verifying; raise StoreError if it must not be used."""
    is_proven = published is not None and _is_proven(published, now)
    if is_proven and not is_verifying:
        return Proof()
    if published is None and not is_verifying:
        _refuse(with_retries(partial(foreign_object, store)))
    if not config.publish.single_writer:
        _refuse(ignored_conditions(store))
    warning = with_retries(partial(open_to_everyone, store))
    return Proof("" if is_proven else now, (warning,) if warning else ())


def _is_proven(published: Published, now: str) -> bool:
    if not published.probed_at:
        return False
    age = datetime.fromisoformat(now) - datetime.fromisoformat(published.probed_at)
    return -_WOBBLE <= age < _PROBE_LIFETIME  # not much later than now: the store's clock may have been ahead


def _refuse(problem: str | None) -> None:
    if problem:
        raise StoreError(problem)


def ignored_conditions(store: Store) -> str | None:
    """Whether the store ignores the conditions of puts. Deletes what it writes, and what others left."""
    with_retries(partial(probes.sweep, store))
    try:
        if probe(store):
            return None
        fault = "ignores"
    except UnsupportedError:
        fault = "does not support"
    return unconditional(store, fault)


def unconditional(store: Store, fault: str) -> str:
    """The message for a store that ignores the conditions of puts, or does not support them."""
    return (
        f"{store.name}: {fault} conditional puts (If-Match, If-None-Match), so two publishers could overwrite each "
        "other's work unnoticed; use another store, or declare that there is only one publisher with "
        "publish.single_writer: true"
    )


def foreign_object(store: Store) -> str | None:
    """Whether a store without a record holds objects that this program may not have put there."""
    foreign = next(store.keys(f"{API_VERSION}/"), None)
    if foreign is None:
        return None
    return (
        f"{store.name}: holds {foreign} but no record of this program, so the object may belong to somebody else; "
        "choose another target, or run publish --verify, which deletes every unknown object under "
        f"{API_VERSION}/"
    )


def open_to_everyone(store: Store) -> str | None:
    """Whether anybody can write to the store."""
    return f"{store.name}: anyone can write here without credentials; deny it" if store.is_open_to_everyone() else None


def old_versions(store: Store) -> str | None:
    """Whether withdrawn texts remain as old versions."""
    if not store.is_versioned():
        return None
    return (
        f"{store.name}: keeps old versions, which hold withdrawn texts; withdrawals and takedowns delete them and need "
        "s3:DeleteObjectVersion; let a lifecycle rule expire the others"
    )


def plain_endpoint(config: Config) -> str | None:
    """Whether the store is on another machine and reached without TLS."""
    endpoint = config.publish.endpoint_url
    if endpoint is None or not config.publish.bucket():
        return None
    url = urlsplit(endpoint)
    if url.scheme != "http" or networks.is_here(url.hostname):
        return None
    return (
        f"publish.endpoint_url: {endpoint} is without TLS, so whoever is on the network between can read and change "
        "what is published, the blocked list included; write https://…"
    )


def unused_endpoint(config: Config) -> str | None:
    """Whether an endpoint is set although the target is a directory, so that one of the two is a mistake."""
    publish = config.publish
    if publish.endpoint_url is None or publish.target is None or publish.bucket():
        return None
    return (
        f"publish.endpoint_url: has no effect, because publish.target is the directory {publish.target}; write "
        "s3://bucket/prefix if a bucket is meant, or remove publish.endpoint_url"
    )


_PRIVATE: Final = (record.KEY, blocklist.KEY)
_PATIENCE_S: Final = 10
_AWS: Final = "https://s3.amazonaws.com"


def exposed(store: Store, config: Config) -> Iterator[str]:
    """A warning for each object of publishers that can be read without credentials, with the first such address.

    The record names every object, withdrawn ones included; the blocked list names what was taken down.
    """
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
