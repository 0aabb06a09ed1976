"""Which markets are meant: by the record, the folder, the blocked list, and the objects that readers see.

The database is not asked: what it hides already may be published still. Nor is the record alone: readers see what the
objects say, whether a record is there or not.
"""

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from generator import __version__
from generator.api import keys
from generator.api.contract import API_VERSION, PublicMarketListItem
from generator.api.forms import is_uuid
from generator.config.settings import Config
from generator.errors import OutputError, PublicMarketsError, StoreError
from generator.models import replaced
from generator.publish import blocklist as store_blocklist
from generator.publish import record, references, store_checks
from generator.publish.decisions import Known, Named, Shown
from generator.publish.lease import Target
from generator.publish.record import Published
from generator.publish.withdrawal import StoredState
from generator.site.catalog import matching
from generator.site.published import PublishedState
from generator.stores.requests import body_of, explaining_outage, with_retries
from generator.stores.store import Store, UnavailableError
from generator.tree import blocklist
from generator.tree.blocklist import BlockedList
from generator.tree.files import MANIFEST
from generator.tree.folder import locked, read_only
from generator.tree.manifest import Manifest


def known(
    config: Config, target: Target | None, ids: Collection[str], names: Collection[str], taken_down: BlockedList
) -> Known:
    """The markets, as far as store, folder and blocked list can tell; without any to look up, no store is asked.

    Whatever is wrong with store or folder, it keeps no id from being blocked. What reading them raised is raised here
    only if the rest does not know what each of the `names`, which are no ids, means.
    """
    manifests, unrecorded = list[Named](), dict[str, Shown]()
    failure: Exception | None = None
    try:
        with read_only(config.output) as folder:
            if built := folder.manifest():
                manifests.append(Named(str(config.output), str(folder.path(MANIFEST)), built))
    except OutputError as error:
        failure = error
    if target and (ids or names):
        store = target.store
        try:
            with explaining_outage(store):
                for name in names:
                    unrecorded.update(_shown(store, config, name))
                if published := target.lease.read():
                    manifests.insert(0, Named(store.name, f"the record of {store.name}", published.built))
                elif names:
                    _require_empty(store)
        except Exception as error:  # noqa: BLE001 - raised below unless nobody need know
            failure = error
    found = Known(tuple(manifests), taken_down, unrecorded)
    if failure and not all(found.meant(name, config) for name in names):
        raise failure
    return found


def _shown(store: Store, config: Config, name: str) -> Iterator[tuple[str, Shown]]:
    """The markets that the store's objects show by this name: by a slug, or by the beginning of an id."""
    for slug in references.slugs_in(name, config):
        found = stored_market(store, keys.detail_by_slug(slug))
        if found and (found.slug or "").lower() == slug.lower() and is_uuid(found.id):
            yield found.id.lower(), Shown(store.name, found.slug)
    if start := references.id_begun(name):
        prefix = f"{keys.DETAILS}/{start[:2]}/{start}"
        listed = map(keys.market_id, with_retries(lambda: [*store.keys(prefix)]))
        yield from ((market_id, Shown(store.name, None)) for market_id in listed if market_id and is_uuid(market_id))


def _require_empty(store: Store) -> None:
    """Raise StoreError if a store without a record holds what one should describe."""
    if with_retries(partial(store_checks.foreign_object, store)):
        raise StoreError(
            f"{store.name}: holds {API_VERSION}/ but no {record.KEY}, so nobody knows all names of its markets; name "
            "the market by its id, its slug or an address of the API, or run `public-markets rebuild --verify`, which "
            "writes the record anew"
        )


def detailed(config: Config, target: Target | None, market_id: str) -> tuple[str, references.Detailed] | None:
    """Where a detail of the market is, and what it says: in the store, or else in the folder; None without either."""
    key = keys.detail(market_id)
    with suppress(PublicMarketsError, UnavailableError):
        if target and (stored := stored_market(target.store, key)):
            return target.store.name, stored
    with suppress(OutputError), read_only(config.output) as folder:
        if built := references.market_in(folder.read(key)):
            return str(config.output), built
    return None


def stored_market(store: Store, key: str) -> references.Detailed | None:
    """The market of a detail in the store; None if there is none that can be read."""
    return references.market_in(body_of(store, key))


def blocked(config: Config, target: Target | None) -> BlockedList:
    """The markets that the store or the folder has blocked."""
    found = BlockedList()
    with suppress(OutputError), read_only(config.output) as folder:
        found = blocklist.left(folder)
    if target:
        with explaining_outage(target.store):
            found = found.merged(store_blocklist.read(target.store, keeps_damaged=True))
    return found


# The search of `find`


class Lookup(NamedTuple):
    """The markets that a text may mean, the likeliest first, as they are published in a place since a build (as-of)."""

    place: str
    as_of: str
    markets: list[PublicMarketListItem]


def look_up(config: Config, target: Target | None, text: str) -> Lookup:
    """Look for an id or the beginning of one, a slug, a key, an address, or words of a question.

    Raises PublicMarketsError if nothing is published, or if what is published cannot be read.
    """
    with _published(config, target) as (place, state):
        catalog, built = state.catalog(), state.manifest
        if not built.slugs:  # as details have them, where no record has
            slugs = {market.id: (market.slug,) for market in catalog.markets if market.slug is not None}
            built = replaced(built, slugs=slugs)
        named = references.ids_meant(text, config, built)
        is_name = references.is_address(text) or references.id_in(text, config) is not None
        markets = matching(catalog, "" if is_name else text, named)
        return Lookup(place, built.as_of, [*markets])


@contextmanager
def _published(config: Config, target: Target | None) -> Iterator[tuple[str, PublishedState]]:
    if target is None:
        with read_only(config.output) as folder:
            manifest = folder.manifest()
            if manifest is None:
                raise PublicMarketsError(f"{config.output}: holds no build; run `public-markets build` first")
            yield str(config.output), PublishedState(manifest, folder)
        return
    store = target.store
    with explaining_outage(store), tempfile.TemporaryDirectory() as scratch, locked(Path(scratch)) as folder:
        published = target.lease.read(is_doubted=True)
        place = store.name
        if published is None or target.lease.is_damaged:
            place = f"{store.name}, whose record is missing, damaged or of another version"
            published = Published(sequence=0, built=_detailed(store, config, target.lease.now), etags={})
        elif published.built.is_first:
            place = f"{store.name}, whose first publish did not end"
        yield place, StoredState(store, published).as_folder(folder)


def _detailed(store: Store, config: Config, now: str) -> Manifest:
    """A manifest of the markets that details show, for a store without a record; raises PublicMarketsError if none."""
    found = with_retries(lambda: [*map(keys.market_id, store.keys(f"{keys.DETAILS}/"))])
    if not found:
        _require_empty(store)
        raise PublicMarketsError(f"{store.name}: nothing is published there yet")
    return Manifest(
        complete=True, as_of=now, version=__version__, variant=config.variant, layout=config.layout, current={},
        retired=(), objects={}, markets=dict.fromkeys(filter(None, found), ()),
    )  # fmt: skip
