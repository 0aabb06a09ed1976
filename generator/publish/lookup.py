"""Which published market is meant: searches what readers see, in the target or else in the output folder.

The database is not asked: what it hides already may be published still.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from generator import __version__
from generator.api import keys
from generator.api.contract import PublicMarketListItem
from generator.config.settings import Config
from generator.errors import PublicMarketsError
from generator.models import replaced
from generator.publish import references, withdrawal
from generator.publish.known import require_empty
from generator.publish.protocol import Target
from generator.publish.record import Published
from generator.site.catalog import matching
from generator.site.published import PublishedState
from generator.stores.requests import explaining_outage, with_retries
from generator.stores.store import Store
from generator.tree.folder import locked, read_only
from generator.tree.manifest import Manifest


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
            yield str(config.output), PublishedState(manifest, folder, partial(map, folder.read))
        return
    store = target.store
    with explaining_outage(store), tempfile.TemporaryDirectory() as scratch, locked(Path(scratch)) as folder:
        published = target.lease.read(is_doubted=True)
        place = store.name
        if published is None or target.lease.is_damaged:
            place = f"{store.name}, whose record is missing, damaged or of another version"
            published = Published(sequence=0, built=_shown(store, config, target.lease.now), etags={})
        elif published.built.is_first:
            place = f"{store.name}, whose first publish did not end"
        yield place, withdrawal.StoredState(store, published).as_folder(folder)


def _shown(store: Store, config: Config, now: str) -> Manifest:
    """A manifest of the markets that details show, for a store without a record; raises PublicMarketsError if none."""
    found = with_retries(lambda: [*map(keys.market_id, store.keys(f"{keys.DETAILS}/"))])
    if not found:
        require_empty(store)
        raise PublicMarketsError(f"{store.name}: nothing is published there yet")
    return Manifest(
        complete=True, as_of=now, version=__version__, variant=config.variant, layout=config.layout, current={},
        retired=(), objects={}, markets=dict.fromkeys(filter(None, found), ()),
    )  # fmt: skip
