"""What is put aside, list by list and object by object, and its move into place in publication order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from generator import keys, manifest, output, render
from generator.manifest import Current, Manifest, States
from generator.output import Output
from generator.pages import Generation, ItemList
from generator.render import Artifact


@dataclass
class Staged:
    """What was put aside: digests of all mutable objects, and the keys of the new ones in publication order.

    `bytes` are those of the new ones, `size` is the bytes of all.
    """

    objects: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    bytes: int = 0
    size: int = 0

    def put(self, folder: Output, artifact: Artifact) -> None:
        """Put an object aside unless it is in place already."""
        self.objects[artifact.key] = manifest.digest(artifact.key, artifact.body)
        self.size += len(artifact.body)
        if folder.put(artifact.key, artifact.body):
            self.changed.append(artifact.key)
            self.bytes += len(artifact.body)

    def add(self, other: "Staged") -> None:
        """Put what `other` holds behind what is here."""
        self.objects |= other.objects
        self.changed += other.changed
        self.bytes += other.bytes
        self.size += other.size


@dataclass(frozen=True)
class StagedList:
    """What a worker put aside for one list; `is_new` tells whether its generation is among it."""

    name: str
    current: Current
    is_new: bool
    first_pages: Staged


@dataclass(frozen=True)
class Rendered:
    """Everything that was put aside, and the record that will describe it."""

    lists: list[StagedList]
    staged: Staged
    record: Manifest
    states: States

    def new_lists(self) -> list[StagedList]:
        """The lists whose generation was put aside."""
        return [one for one in self.lists if one.is_new]


@dataclass(frozen=True)
class Placed:
    """What a move did: the new record, the ids of markets that are not public any more, the files deleted."""

    record: Manifest
    withdrawn: list[str]
    deleted: int


def stage_list(folder: Output, known: Mapping[tuple[str, str], Current], items: ItemList) -> StagedList:
    """Put one list aside, its first pages included. Runs in a worker."""
    generation = Generation(items)
    current = known.get((generation.list_name, generation.name))
    # Somebody may have deleted what the manifest knows.
    is_new = current is None or not folder.has_generation(generation)
    if current is None or is_new:
        written = folder.put_generation(generation)
        current = Current(generation=generation.name, count=generation.count, bytes=written)
    staged = Staged()
    for artifact in render.first_pages(generation):
        staged.put(folder, artifact)
    as_current = Current(generation=current.generation, count=current.count, bytes=current.bytes)
    return StagedList(generation.list_name, as_current, is_new, staged)


def place(folder: Output, before: Manifest | None, rendered: Rendered, lifetime: timedelta) -> Placed:
    """Move what was put aside into place; from here on a kill leaves work that the next build finishes."""
    previous = before or rendered.record.emptied()
    withdrawn = sorted(previous.markets.keys() - rendered.states.keys())
    final = manifest.settle(previous, rendered.record, rendered.states, lifetime, rendered.record.as_of)
    if final != previous or rendered.staged.changed or rendered.new_lists():
        folder.sync()
        if before is None:
            # From now on what lies under v1/ is known to be ours, even if this very first build is killed.
            folder.save(output.MANIFEST, previous.encoded())
        for market_id in withdrawn:
            folder.discard_key(keys.detail(market_id))
        _move(folder, previous, rendered)
        folder.save(output.MANIFEST, final.encoded())
    leftovers = list(folder.unknown(final))
    for path in leftovers:
        folder.discard(path)
    return Placed(final, withdrawn, len(leftovers))


def purge_retired(folder: Output, before: Manifest) -> Manifest:
    """Delete every generation that is not current; walks in them end."""
    after = before.model_copy(update={"retired": ()})
    if after != before:
        folder.save(output.MANIFEST, after.encoded())
        for path in list(folder.unknown(after)):
            folder.discard(path)
    return after


def _move(folder: Output, previous: Manifest, rendered: Rendered) -> None:
    new = {one.name: one.current for one in rendered.new_lists()}
    for name, current in new.items():
        folder.move(keys.generation_prefix(name, current.generation))
    intent = manifest.intend(previous, new, rendered.states, rendered.record.as_of)
    folder.save(output.MANIFEST, intent.encoded())
    for key in rendered.staged.changed:
        folder.move(key)
