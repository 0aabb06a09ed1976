"""What can be wrong with a store, each with its message; `check` reports all of them, a publish the grave ones."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from generator.api.contract import API_VERSION
from generator.config import networks
from generator.config.settings import Config
from generator.errors import StoreError
from generator.publish import invalidation
from generator.publish.record import Published
from generator.stores import probes
from generator.stores.requests import probe, with_retries
from generator.stores.store import Store, UnsupportedError

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


def unnamed_cdn(config: Config, published: Published | None) -> str | None:
    """Whether no CDN is configured, so that its copies outlive a withdrawal."""
    if invalidation.is_configured(config):
        return None
    sentence = (
        "publish: no CDN is configured, so cached copies of withdrawn markets may remain; set "
        "publish.cloudfront_distribution or publish.purge_command"
    )
    if config.publish.is_unpurged and published and published.are_copies_long:
        sentence += (
            "; shared caches may keep pages that were published while one was configured for a year, until "
            "`public-markets publish --verify` puts them again"
        )
    elif config.publish.is_unpurged:
        sentence += "; until then, shared caches are told to keep pages for 5 minutes only, instead of a year"
    return sentence


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
