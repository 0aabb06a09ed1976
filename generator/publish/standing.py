"""Reads what `status` tells of the target, with few requests; it writes nothing. Start with `at_target`."""

from collections.abc import Iterator

from generator.api.forms import instant
from generator.config.settings import Config
from generator.errors import PublicMarketsError, StoreError
from generator.publish import blocklist, copies, lease, record
from generator.publish.record import Published
from generator.site.standing import place, still_shown
from generator.stores.factory import open_store
from generator.stores.requests import what_to_check
from generator.stores.store import Store, UnavailableError
from generator.tree.blocklist import BlockedList
from generator.tree.status import PlaceStatus, Standing
from generator.wording import escaped


def at_target(config: Config) -> Standing:
    """The target, by its record's root and its blocked list; it says why if it cannot be read."""
    name = str(config.publish.target)
    try:
        store = open_store(config)
        name = store.name
        return _asked(store, config)
    except UnavailableError as error:
        why = f"does not answer ({error})"
        return Standing(PlaceStatus(name, unread=f"{name}: {why}; {what_to_check(store)}"))
    except PublicMarketsError as error:
        return Standing(PlaceStatus(name, unread=str(error)))


def _asked(store: Store, config: Config) -> Standing:
    stored, now = store.get(record.KEY), instant(store.now())
    if stored is None:
        return Standing(PlaceStatus(store.name), now=now)
    blocked, faults = BlockedList(), []
    try:
        blocked = blocklist.read(store)
    except StoreError as error:
        faults.append(str(error))
    try:
        published = record.decoded(stored.body)
    except ValueError as error:
        faults.append(f"{store.name}: {record.KEY}: {record.fault(error, stored.body)}")
        return Standing(PlaceStatus(store.name, faults=tuple(faults)), blocked.hold, now)
    is_running = published.work is not None and lease.is_running(published.work, now)
    publisher = ""
    if published.work and is_running:
        publisher = f"{escaped(published.work.who)}, since {published.work.since}"
    else:
        faults += _faults_there(store, config, published, blocked)
    return Standing(place(store.name, published.built, faults, publisher), blocked.hold or published.hold, now)


def _faults_there(store: Store, config: Config, published: Published, blocked: BlockedList) -> Iterator[str]:
    """What a run left that is not at work any more."""
    name, built = store.name, published.built
    if built.is_first:
        yield f"{name}: the first publish did not end; run `public-markets rebuild`"
    elif published.work or not built.complete:
        yield f"{name}: a run was cut short there; `public-markets rebuild` finishes its work"
    if published.holds_copies(has_cdn=copies.is_configured(config)):
        yield f"{name}: copies of what was withdrawn may remain in caches or old versions; run `public-markets publish`"
    yield from still_shown(name, built, blocked)
