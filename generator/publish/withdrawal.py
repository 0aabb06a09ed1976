"""Withdraws markets: derives the published state without them from that state alone, without the database.

Lists are read as readers walk them, from their first pages on, so they are right even if an interrupted run replaced
only some of these.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from generator.api import contract, keys
from generator.api.feeds import FEED_NAMES, Feed, FeedName
from generator.api.openapi.schemas import BuildRecord
from generator.errors import OutputError
from generator.feeds import atom, json_feed
from generator.publish import endings, reindex
from generator.publish.record import Published
from generator.publish.withdrawn_downloads import WithdrawnDownloads
from generator.search.generation import LISTS
from generator.stores.requests import body_of, etags_of, parallel_map
from generator.stores.store import Store
from generator.tree import files, list_reader, staging
from generator.tree.artifact import Artifact
from generator.tree.folder import Output
from generator.tree.generation import ItemList
from generator.tree.list_reader import Read
from generator.tree.manifest import Current, Manifest
from generator.tree.staging import Rendered, Staged, StagedList

Parsed = TypeVar("Parsed")

_JSON: Final[TypeAdapter[Any]] = TypeAdapter(Any)
#: The lists that the search index leads into.
_INDEXED: Final = frozenset(LISTS.values())


def from_folder(folder: Output, ids: Collection[str], lifetime: timedelta) -> tuple[str, ...]:
    """Remove the markets from a folder, as the next build would; return what this ended, as warnings."""
    before = folder.manifest()
    if before is None:
        return ()
    if not before.markets.keys() & ids:
        if ids and before.complete:
            # A run that was killed at its end had forgotten the markets, but not deleted all that showed them.
            staging.clear(folder, before)
        return ()
    # It quotes the markets; the next build makes it again.
    folder.discard_key(files.INSPECTION)
    # A killed build leaves objects that the manifest does not describe.
    doubted = set() if before.complete else {*before.objects, *folder.strangers(before)}
    withdrawal = _Withdrawal(before, folder.read, frozenset(ids), frozenset(doubted))
    rendered = withdrawal.rendered(folder)
    for problem in withdrawal.problems:
        raise OutputError(problem)
    staging.place(folder, before, rendered, lifetime)
    return (*endings.found(before, rendered.manifest),)


@dataclass(frozen=True)
class StoredState:
    """What a store holds by its record, except for `doubted` objects, which are not those of the record."""

    store: Store
    published: Published
    doubted: frozenset[str] = frozenset()

    def read(self, key: str) -> bytes | None:
        """An object's bytes."""
        return body_of(self.store, key)

    def unknown(self) -> frozenset[str]:
        """The objects of unknown content that may belong to the state."""
        return self.published.unfinished() | (self.doubted & self.published.built.objects.keys())

    def half_withdrawn(self) -> frozenset[str]:
        """The markets whose details an interrupted run deleted already, or did not put yet: no list may show them."""
        built, unknown = self.published.built, self.unknown()
        details = {keys.detail(market_id): market_id for market_id in built.markets}
        etags = etags_of(self.store, details.keys() & unknown)
        return frozenset(details[key] for key, etag in etags.items() if etag is None)


def from_store(state: StoredState, ids: Collection[str], folder: Output, lifetime: timedelta) -> tuple[str, ...]:
    """Put into `folder` whatever the store lacks of its own state without the markets.

    Returns what could not be read, as messages. It stays as it is, and the markets stay in the manifest.
    """
    gone = state.half_withdrawn() | frozenset(ids)
    withdrawal = _Withdrawal(state.published.built, state.read, gone, state.unknown(), state.store.parallel)
    staging.place(folder, folder.manifest(), withdrawal.rendered(folder), lifetime)
    return tuple(withdrawal.problems)


class _Withdrawal:
    """A state, how to read its objects, the markets to remove, and the keys of objects of unknown content.

    `parallel` objects are read at once.
    """

    def __init__(
        self, before: Manifest, read: Read, ids: frozenset[str], doubted: frozenset[str], parallel: int = 1
    ) -> None:
        self._before = before
        self._read = read
        self._parallel = parallel
        self._ids = ids
        self._doubted = doubted
        #: What could not be read, as messages.
        self.problems: list[str] = []

    def rendered(self, folder: Output) -> Rendered:
        """Stage what changes."""
        before = self._before
        staged = Staged(objects=self._kept_objects())
        lists = []
        indexed = dict[str, list[bytes]]()
        for name, items in zip(before.lists, parallel_map(self._items, before.lists, self._parallel), strict=True):
            lists.append(self._staged_list(folder, name, items))
            staged.add(lists[-1].first_pages)
            if items is not None and name in _INDEXED:
                indexed[name] = items
        index = self._staged_index(folder, lists, indexed)
        if index is None:
            staged.objects.pop(keys.head(keys.SEARCH), None)
        else:
            staged.add(index.first_pages)
        is_doubted = any(keys.head(name) in self._doubted for name in keys.DOWNLOADS)
        downloads = WithdrawnDownloads(folder, before, self._read, self._ids, is_doubted=is_doubted).staged()
        for name in before.downloads.keys() - {download.name for download in downloads.lists}:
            staged.objects.pop(keys.head(name), None)
        for download in downloads.lists:
            staged.add(download.first_pages)
        for artifact in self._documents({staged_list.name: staged_list.current.count for staged_list in lists}):
            staged.put(folder, artifact)
        # Whatever could not be read may show any of them.
        named = frozenset() if self.problems else self._ids
        markets = {market_id: states for market_id, states in before.markets.items() if market_id not in named}
        update = {
            "complete": True,
            "lists": {staged_list.name: staged_list.current for staged_list in lists},
            "search": index.current if index else None,
            "downloads": {download.name: download.current for download in downloads.lists},
            "retired": (),
            "objects": dict(sorted(staged.objects.items())),
            "markets": {},
            "slugs": {market_id: slugs for market_id, slugs in before.slugs.items() if market_id not in named},
        }
        return Rendered(
            lists, index, staged, before.model_copy(update=update), markets, downloads=downloads.lists,
            dump_parts=downloads.side_file,
        )  # fmt: skip

    def _kept_objects(self) -> dict[str, str]:
        """The digests of the objects that stay as they are."""
        changed = self._gone() | self._doubted
        return {key: digest for key, digest in self._before.objects.items() if key not in changed}

    def _gone(self) -> frozenset[str]:
        """The keys of the details of the markets to remove."""
        return frozenset(self._before.all_details(self._ids))

    def _items(self, list_name: str) -> list[bytes] | None:
        """The items of a list; None if they cannot be read."""
        try:
            return list_reader.items(self._read, list_name)
        except OutputError as error:
            self.problems.append(str(error))
            return None

    def _staged_list(self, folder: Output, name: str, items: list[bytes] | None) -> StagedList:
        if items is None:
            return StagedList(name, self._before.lists[name], new=None, first_pages=Staged())
        kept = [item for item in items if _JSON.validate_json(item)["id"] not in self._ids]
        if len(kept) == len(items) and not self._is_doubted(name):
            return StagedList(name, self._before.lists[name], new=None, first_pages=Staged())
        return staging.stage_list(folder, self._before.layout, self._before.generations(), ItemList(name, kept))

    def _staged_index(
        self, folder: Output, lists: Sequence[StagedList], items: Mapping[str, Sequence[bytes]]
    ) -> StagedList | None:
        """Stage the search index; None without one, or if it cannot be read: then search ends until the next build."""
        before, current = self._before, {staged_list.name: staged_list.current for staged_list in lists}
        if before.search is None or items.keys() != _INDEXED:
            return None
        is_as_before = all(current[name] == before.lists[name] for name in _INDEXED)
        if is_as_before and not self._is_doubted(keys.SEARCH):
            return StagedList(keys.SEARCH, before.search, new=None, first_pages=Staged())
        after = {name: current[name].generation for name in _INDEXED}
        state = reindex.Published(before.layout, self._roots(before.search), items, after)
        index = reindex.without(self._ids, state, self._read_all)
        return staging.stage_generation(folder, before.generations(), index) if index else None

    def _roots(self, recorded: Current) -> list[str]:
        """The generations that may be published, the one that readers find first: a killed run may have moved on."""
        found = ""
        with suppress(ValueError, TypeError, KeyError):
            found = _JSON.validate_json(self._read(keys.head(keys.SEARCH)) or b"")["generation"]
        begun = [entry.generation for entry in self._before.retired if entry.partial and entry.list == keys.SEARCH]
        is_known = (keys.SEARCH, found) in self._before.generations()
        return list(dict.fromkeys([*([found] if is_known else []), recorded.generation, *begun]))

    def _read_all(self, wanted: Iterable[str]) -> Iterable[bytes | None]:
        return parallel_map(self._read, wanted, self._parallel)

    def _is_doubted(self, list_name: str) -> bool:
        prefix = f"{keys.list_prefix(list_name)}/"
        return any(key.startswith(prefix) for key in self._doubted)

    def _documents(self, counts: dict[str, int]) -> Iterator[Artifact]:
        if (groups := self._parsed(keys.SNAPSHOT, _JSON.validate_json)) is not None:
            yield Artifact(keys.SNAPSHOT, self._snapshot(groups))
        if (record := self._parsed(keys.BUILD, _JSON.validate_json)) is not None:
            remaining = sum(1 for market_id in self._before.markets if market_id not in self._ids)
            changed = BuildRecord.model_validate({**record, "markets": remaining, "lists": counts})
            yield Artifact(keys.BUILD, contract.encode(changed))
        for name in FEED_NAMES:
            yield from self._feed(name)
        feeds = {keys.feed(name, extension) for name in FEED_NAMES for extension in ("json", "atom")}
        for key in sorted(self._doubted - self._gone() - feeds - {keys.SNAPSHOT, keys.BUILD}):
            body = None if keys.is_first_page(key) else self._read(key)
            if body is not None:
                yield Artifact(key, body)

    def _snapshot(self, groups: dict[str, Any]) -> bytes:
        kept = {name: [item for item in group if item["id"] not in self._ids] for name, group in groups.items()}
        return contract.encode(contract.PublicMarketSnapshot.model_validate(kept))

    def _feed(self, name: FeedName) -> Iterator[Artifact]:
        """Both forms of a feed, if the state has it."""
        key = keys.feed(name, "json")
        is_recorded = key in self._before.objects
        if not is_recorded and (key not in self._doubted or self._read(key) is None):
            return
        if (published := self._parsed(key, Feed.model_validate_json)) is not None:
            feed = json_feed.without(published, self._ids)
            yield Artifact(key, contract.encode(feed))
            yield Artifact(keys.feed(name, "atom"), atom.encode(feed))

    def _parsed(self, key: str, parse: Callable[[bytes], Parsed]) -> Parsed | None:
        """The document, or None if it cannot be read."""
        try:
            return parse(self._read(key) or b"")
        except ValueError:
            self.problems.append(f"{key}: missing or damaged; `public-markets rebuild --verify` repairs it")
            return None
