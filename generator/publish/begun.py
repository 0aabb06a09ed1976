"""The generations that runs which were cut short had begun: which of them readers find, and which can be deleted.

Only a commit retires what it replaces, so without this, runs that are always cut short would fill the store.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from generator.api import keys
from generator.models import replaced
from generator.publish.record import Published
from generator.stores.requests import body_of, etags_of, parallel_map
from generator.stores.store import Store
from generator.tree import generations
from generator.tree.manifest import Retired

#: A generation is looked for once in as long, so it may have been reached until then; and so long may a run take.
LONGEST_LOOK: Final = timedelta(hours=1)


class Begun(NamedTuple):
    """Generations that runs cut short had begun: those that readers find, and those that can be deleted."""

    reached: frozenset[tuple[str, str]] = frozenset()
    unreached: frozenset[tuple[str, str]] = frozenset()

    def dated(self, entries: Iterable[Retired], now: str) -> tuple[Retired, ...]:
        """The entries; the age of those that readers find counts from now."""
        return tuple(replaced(entry, retired_at=now) if entry.pair in self.reached else entry for entry in entries)


def find(store: Store, published: Published, now: str, lifetime: timedelta) -> Begun:
    """Find what first pages lead into of what runs cut short had begun, and what no walk can be in any more.

    Either no first page ever led there, or none has for the `lifetime` of cursors.
    """
    entries = published.incomplete(now)
    prefixes = {entry.list: f"{keys.list_prefix(entry.list)}/" for entry in entries}
    touched = {
        name: {key for key in published.unfinished() if keys.is_first_page(key) and key.startswith(prefix)}
        for name, prefix in prefixes.items()
    }
    etags = etags_of(store, set().union(*touched.values()))
    unmoved = {
        name for name, pages in touched.items()
        if pages and all(etags[key] == published.etags.get(key) for key in pages)
    }  # fmt: skip
    moved = {name: sorted(pages) for name, pages in touched.items() if pages and name not in unmoved}
    reached = frozenset(
        entry.pair for name, pages in moved.items()
        for entry in _led_to(store, pages, [entry for entry in entries if entry.list == name])
    )  # fmt: skip
    left = frozenset(
        entry.pair for entry in entries
        if entry.list in moved and entry.pair not in reached and entry.is_due(now, lifetime + LONGEST_LOOK)
    )  # fmt: skip
    return Begun(reached, left | frozenset(entry.pair for entry in entries if entry.list in unmoved))


def _led_to(store: Store, pages: Sequence[str], entries: Sequence[Retired]) -> Iterator[Retired]:
    """Those of a list's generations that some first page leads into."""
    bodies = [*filter(None, parallel_map(partial(body_of, store), pages, store.parallel))]
    for entry in entries:
        # A head has the name in it, a page has it in its cursor, and the head of a download is its index.
        if any(entry.generation.encode() in body or generations.is_index(*entry.pair, body) for body in bodies):
            yield entry
