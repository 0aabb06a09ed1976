"""What a published state becomes without some markets, made from that state alone: no database is asked.

Lists are read as readers walk them, so whatever first pages lead to is what the lists are, also when a run that ended
early has replaced only some of them.
"""

from collections.abc import Collection, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

from pydantic import TypeAdapter

from generator.api import contract, keys
from generator.api.openapi.schemas import BuildRecord
from generator.errors import OutputError
from generator.publish.record import Published
from generator.publish.stores.requests import parallel_map, with_retries
from generator.publish.stores.store import Store
from generator.tree import files, list_reader, staging
from generator.tree.artifact import Artifact
from generator.tree.folder import Output
from generator.tree.generation import ItemList
from generator.tree.list_reader import Read
from generator.tree.manifest import Manifest
from generator.tree.staging import Rendered, Staged, StagedList

_JSON: Final[TypeAdapter[Any]] = TypeAdapter(Any)


def from_folder(folder: Output, ids: Collection[str], lifetime: timedelta) -> None:
    """Take the markets out of what a folder holds, as the next build would."""
    before = folder.manifest()
    if before is None or not before.markets.keys() & ids:
        return
    # It shows what the markets said, and the next build makes it again.
    folder.discard_key(files.INSPECTION)
    # A build that was killed leaves objects that the manifest does not describe.
    doubted = set() if before.complete else {*before.objects, *folder.strangers(before)}
    rendered = _Withdrawal(before, folder.read, frozenset(ids), frozenset(doubted)).rendered(folder, 1)
    staging.place(folder, before, rendered, lifetime)


def from_store(store: Store, published: Published, ids: Collection[str], folder: Output, lifetime: timedelta) -> None:
    """Put into `folder` what a store's state becomes without the markets: whatever of it is not in the store yet."""

    def read(key: str) -> bytes | None:
        stored = with_retries(partial(store.get, key))
        return stored.body if stored else None

    withdrawal = _Withdrawal(published.built, read, frozenset(ids), published.unfinished())
    staging.place(folder, folder.manifest(), withdrawal.rendered(folder, store.parallel), lifetime)


class _Withdrawal:
    """A state, how its objects are read, the markets to take out, and the objects of unknown content."""

    def __init__(self, before: Manifest, read: Read, ids: frozenset[str], doubted: frozenset[str]) -> None:
        self._before = before
        self._read = read
        self._ids = ids
        self._doubted = doubted

    def rendered(self, folder: Output, parallel: int) -> Rendered:
        """Put aside what changes; `parallel` objects are read at once."""
        before = self._before
        staged = Staged(objects=self._kept_objects())
        lists = []
        for name, items in zip(
            before.lists, parallel_map(partial(list_reader.items, self._read), before.lists, parallel), strict=True
        ):
            lists.append(self._staged_list(folder, name, items))
            staged.add(lists[-1].first_pages)
        for artifact in self._documents({one.name: one.current.count for one in lists}):
            staged.put(folder, artifact)
        states = {market_id: held for market_id, held in before.markets.items() if market_id not in self._ids}
        update = {
            "complete": True,
            "lists": {one.name: one.current for one in lists},
            "retired": (),
            "objects": dict(sorted(staged.objects.items())),
            "markets": {},
            "slugs": {one: slugs for one, slugs in before.slugs.items() if one not in self._ids},
        }
        return Rendered(lists, staged, before.model_copy(update=update), states)

    def _kept_objects(self) -> dict[str, str]:
        """What stays as it is, with its digest."""
        changed = self._gone() | self._doubted
        return {key: digest for key, digest in self._before.objects.items() if key not in changed}

    def _gone(self) -> frozenset[str]:
        """The details of the markets that are taken out."""
        return frozenset(key for market_id in self._ids for key in self._before.details(market_id))

    def _staged_list(self, folder: Output, name: str, items: list[bytes]) -> StagedList:
        kept = [item for item in items if _JSON.validate_json(item)["id"] not in self._ids]
        if len(kept) == len(items) and not self._is_doubted(name):
            return StagedList(name, self._before.lists[name], new=None, first_pages=Staged())
        return staging.stage_list(folder, self._before.layout, self._before.generations(), ItemList(name, kept))

    def _is_doubted(self, list_name: str) -> bool:
        prefix = f"{keys.list_prefix(list_name)}/"
        return any(key.startswith(prefix) for key in self._doubted)

    def _documents(self, counts: dict[str, int]) -> Iterator[Artifact]:
        yield Artifact(keys.SNAPSHOT, self._snapshot())
        record = self._parsed(keys.BUILD)
        remaining = sum(1 for market_id in self._before.markets if market_id not in self._ids)
        changed = BuildRecord.model_validate({**record, "markets": remaining, "lists": counts})
        yield Artifact(keys.BUILD, contract.encode(changed))
        for key in sorted(self._doubted - self._gone() - {keys.SNAPSHOT, keys.BUILD}):
            body = None if keys.is_first_page(key) else self._read(key)
            if body is not None:
                yield Artifact(key, body)

    def _snapshot(self) -> bytes:
        groups = self._parsed(keys.SNAPSHOT)
        kept = {name: [one for one in group if one["id"] not in self._ids] for name, group in groups.items()}
        return contract.encode(contract.PublicMarketSnapshot.model_validate(kept))

    def _parsed(self, key: str) -> dict[str, Any]:
        body = self._read(key)
        try:
            parsed: dict[str, Any] = _JSON.validate_json(body or b"")
        except ValueError as error:
            raise OutputError(f"{key}: missing or damaged; `public-markets rebuild --verify` repairs it") from error
        return parsed
