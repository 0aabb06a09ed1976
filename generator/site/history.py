"""Makes `v1/history.json` of a dump's closes and the outcomes of the catalog: in builds, takedowns, and `verify`.

It is a function of what is published, so a takedown makes it of what remains, and anybody can make it again.
"""

from collections.abc import Iterator

from generator.api import columns, contract, downloads, history, keys
from generator.api.downloads import DumpHead
from generator.api.history import History, Settled
from generator.downloads import periods
from generator.site.catalog import Catalog
from generator.site.family import Ingredients, ReadRows
from generator.tree.generation import Artifact

_COLUMNS = (columns.OWNER, *history.DAYS_BEFORE.values())


def figures(head: DumpHead, catalog: Catalog, read: ReadRows) -> History:
    """The figures of the listed markets of a catalog, whose closes the files of the dump have."""
    outcomes = {
        market.id: Settled(market.resolution == "YES", periods.closed_at(market.close_time, market.resolved_at))
        for market in catalog.listed()
        if market.resolution in {"YES", "NO"}
    }
    return history.make(outcomes, read(head.table(downloads.CLOSES), _COLUMNS), catalog.as_of)


def made(site: Ingredients) -> Iterator[Artifact]:
    """The document; none if the tables cannot be read, or there are none, as after a takedown without the extra."""
    if site.dump is not None and site.dump.closes is not None and site.rows is not None:
        yield Artifact(keys.HISTORY, contract.encode(figures(site.dump, site.catalog, site.rows)))
