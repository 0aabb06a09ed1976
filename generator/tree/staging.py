"""What is put aside, list by list and object by object, and its move into place in publication order."""

from dataclasses import dataclass, field
from datetime import timedelta

from generator.api import keys
from generator.tree import chunks, files, layouts, manifest, pages
from generator.tree.artifact import Artifact
from generator.tree.folder import Output
from generator.tree.layouts import Generation, Known
from generator.tree.manifest import Current, Manifest, Memberships
from generator.tree.pages import ItemList


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
class StagedGeneration:
    """A generation that was put aside: `places` are to be moved, `objects` and `bytes` are what was written."""

    places: tuple[str, ...]
    objects: int
    bytes: int


@dataclass(frozen=True)
class StagedList:
    """What a worker put aside for one list; `new` is None when the generation is in place already."""

    name: str
    current: Current
    new: StagedGeneration | None
    first_pages: Staged


@dataclass(frozen=True)
class Rendered:
    """Everything that was put aside, and the manifest that will describe it."""

    lists: list[StagedList]
    staged: Staged
    manifest: Manifest
    memberships: Memberships

    def new_lists(self) -> list[StagedList]:
        """The lists whose generation was put aside."""
        return [one for one in self.lists if one.new]

    def new_generations(self) -> list[StagedGeneration]:
        """The generations that were put aside."""
        return [one.new for one in self.lists if one.new]


@dataclass(frozen=True)
class Placed:
    """The result of moving a build into place: the new manifest, and how many files were deleted."""

    manifest: Manifest
    deleted: int


def stage_list(folder: Output, layout: str, known: Known, items: ItemList) -> StagedList:
    """Put one list aside, what its walks begin with included. Runs in a worker."""
    generation = layouts.make(layout, items)
    current = known.get((generation.list_name, generation.name))
    new = None
    # Somebody may have deleted what the manifest knows.
    if current is None or not _is_in_place(folder, generation):
        current, new = _put(folder, generation)
    staged = Staged()
    for key, body in generation.first_pages():
        staged.put(folder, Artifact(key, body))
    return StagedList(generation.list_name, current.as_current(), new, staged)


def _is_in_place(folder: Output, generation: Generation) -> bool:
    if isinstance(generation, chunks.Generation):
        return folder.has_all(chunks.object_keys(generation.list_name, generation.name, generation.chunks))
    return folder.has(keys.generation_prefix(generation.list_name, generation.name))


def _put(folder: Output, generation: Generation) -> tuple[Current, StagedGeneration]:
    if isinstance(generation, chunks.Generation):
        return _put_chunks(folder, generation)
    return _put_pages(folder, generation)


def _put_pages(folder: Output, generation: pages.Generation) -> tuple[Current, StagedGeneration]:
    size = folder.put_pages(generation)
    place = keys.generation_prefix(generation.list_name, generation.name)
    current = Current(generation=generation.name, count=generation.count, bytes=size)
    return current, StagedGeneration((place,), pages.page_count(generation.count), size)


def _put_chunks(folder: Output, generation: chunks.Generation) -> tuple[Current, StagedGeneration]:
    """Put aside the chunks that are not in place, and the index."""
    places, size, written = [], 0, 0
    for key, body in generation.objects():
        size += len(body)
        if folder.put(key, body):
            places.append(key)
            written += len(body)
    current = Current(generation=generation.name, count=generation.count, bytes=size, chunks=generation.chunks)
    return current, StagedGeneration(tuple(places), len(places), written)


def place(folder: Output, before: Manifest | None, rendered: Rendered, lifetime: timedelta) -> Placed:
    """Move what was put aside into place; from here on a kill leaves work that the next build finishes."""
    previous = before or rendered.manifest.emptied()
    withdrawn = sorted(previous.markets.keys() - rendered.memberships.keys())
    final = manifest.settle(previous, rendered.manifest, rendered.memberships, lifetime, rendered.manifest.as_of)
    if final != previous or rendered.staged.changed or rendered.new_lists():
        folder.sync()
        if before is None:
            # From now on what lies under v1/ is known to be ours, even if this very first build is killed.
            folder.save(files.MANIFEST, previous.encoded())
        for key in (key for market_id in withdrawn for key in previous.details(market_id)):
            folder.discard_key(key)
        _move(folder, previous, rendered)
        folder.save(files.MANIFEST, final.encoded())
    leftovers = list(folder.unknown(final))
    for path in leftovers:
        folder.discard(path)
    return Placed(final, len(leftovers))


def purge_retired(folder: Output, before: Manifest) -> Manifest:
    """Delete every generation that is not current; walks in them end."""
    after = before.model_copy(update={"retired": ()})
    if after != before:
        folder.save(files.MANIFEST, after.encoded())
        for path in list(folder.unknown(after)):
            folder.discard(path)
    return after


def _move(folder: Output, previous: Manifest, rendered: Rendered) -> None:
    new = {one.name: one.current for one in rendered.new_lists()}
    for generation in rendered.new_generations():
        for key in generation.places:
            folder.move(key)
    built = rendered.manifest
    intent = manifest.intend(previous, new, rendered.memberships, built.as_of, built.slugs)
    folder.save(files.MANIFEST, intent.encoded())
    for key in rendered.staged.changed:
        folder.move(key)
