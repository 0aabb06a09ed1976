"""What a build has staged, list by list and object by object, and the move into place in publication order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from generator.api import keys
from generator.models import replaced
from generator.tree import files, fingerprints, generations, layouts, manifest
from generator.tree.fingerprints import Fingerprints
from generator.tree.folder import Output
from generator.tree.generation import Artifact, ItemList, Stage, Stageable, StagedGeneration, Weight
from generator.tree.generations import Known
from generator.tree.manifest import Current, Manifest
from generator.tree.manifest_saving import Saving
from generator.tree.membership import Memberships
from generator.tree.workplace import Workplace


@dataclass
class Staged:
    """Mutable objects: the digests of all, and the keys of the changed ones, which were staged, in publication order.

    `bytes` counts the changed objects, `size` all of them.
    """

    objects: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    bytes: int = 0
    size: int = 0

    def put(self, folder: Stage, artifact: Artifact, digest: str | None = None) -> bool:
        """Stage an object unless it is in place already; return whether it is new. `digest` is its own, if known."""
        self.objects[artifact.key] = digest or manifest.digest(artifact.key, artifact.body)
        self.size += len(artifact.body)
        is_new = folder.put(artifact.key, artifact.body)
        if is_new:
            self.changed.append(artifact.key)
            self.bytes += len(artifact.body)
        return is_new

    def add(self, other: "Staged") -> None:
        """Append what `other` holds."""
        self.objects |= other.objects
        self.changed += other.changed
        self.bytes += other.bytes
        self.size += other.size


@dataclass(frozen=True)
class StagedFamily:
    """The current generation of one family, as it was staged; `new` is None when the generation is in place already."""

    name: str
    current: Current
    new: StagedGeneration | None
    first_pages: Staged

    def weight(self) -> Weight:
        """All its objects, and their bytes."""
        objects, pages = generations.object_count(self.name, self.current), self.first_pages
        return Weight(objects, self.current.bytes, len(pages.objects), pages.size)

    def written(self) -> Weight:
        """The objects that were staged, and their bytes."""
        objects, size = (self.new.objects, self.new.bytes) if self.new else (0, 0)
        return Weight(objects, size, len(self.first_pages.changed), self.first_pages.bytes)


@dataclass(frozen=True)
class Rendered:
    """A rendered state: everything that was staged, and the manifest that will describe it.

    `families` are those that were staged, by name. `fingerprints` is None if no detail was made. `dump_parts` is the
    file to save beside the dump, if there is one. `damaged` are generations in place, by family and name, that end.
    """

    families: Mapping[str, StagedFamily]
    staged: Staged
    manifest: Manifest
    memberships: Memberships
    fingerprints: Fingerprints | None = None
    dump_parts: bytes | None = None
    damaged: frozenset[tuple[str, str]] = frozenset()

    def lists(self) -> list[StagedFamily]:
        """The lists alone."""
        return [staged for name, staged in self.families.items() if name not in keys.INDEXED]

    def new_generations(self) -> list[StagedGeneration]:
        """The generations that were staged."""
        return [staged.new for staged in self.families.values() if staged.new]

    def written(self) -> tuple[int, int]:
        """The objects that were staged, and their bytes."""
        new = self.new_generations()
        objects = len(self.staged.changed) + sum(generation.objects for generation in new)
        return objects, self.staged.bytes + sum(generation.bytes for generation in new)


@dataclass(frozen=True)
class Placed:
    """The result of moving a build into place: the new manifest, and how many files were deleted."""

    manifest: Manifest
    deleted: int


def stage_list(folder: Workplace, layout: str, known: Known, items: ItemList) -> StagedFamily:
    """Stage one list: its generation unless it is in place, and its first pages. Runs in a worker."""
    return stage_generation(folder, known, layouts.make(layout, items))


def stage_generation(folder: Workplace, known: Known, generation: Stageable) -> StagedFamily:
    """Stage one generation, of whatever has generations, unless it is in place, and what leads into it."""
    current = known.get((generation.list_name, generation.name))
    new = None
    # Somebody may have deleted files that the manifest names.
    if current is None or not folder.are_placed(generation.places()):
        new = generation.stage(folder)
        current = Current(generation=generation.name, count=generation.count, bytes=new.size, chunks=generation.chunks)
        if not new.places:  # all of it was in place
            new = None
    staged = Staged()
    for key, body in generation.first_pages():
        staged.put(folder, Artifact(key, body))
    return StagedFamily(generation.list_name, current.as_current(), new, staged)


def place(folder: Output, before: Manifest | None, rendered: Rendered, lifetime: timedelta) -> Placed:
    """Move everything staged into place; a build killed from here on leaves work that the next one finishes."""
    previous = before or rendered.manifest.emptied()
    # What another version built is not known until all of it is replaced: then a killed build leaves it as unknown.
    is_anew = before is None and folder.has(files.MANIFEST)
    now = partial(_now, folder, previous, rendered.manifest)
    withdrawn = sorted(previous.markets.keys() - rendered.memberships.keys())
    begun = now()
    final = manifest.settle(previous, rendered.manifest, rendered.memberships, lifetime, begun)
    final = replaced(final, retired=tuple(entry for entry in final.retired if entry.pair not in rendered.damaged))
    saving = Saving(folder, before)
    content = saving.final(final)
    is_new = bool(content != saving.content or rendered.staged.changed or rendered.new_generations())
    if is_new:
        intent = saving.intent(rendered.manifest, rendered.memberships)
        folder.sync()
        if before is None and not is_anew:
            # Mark what lies under v1/ as ours, in case this first build is killed.
            folder.save(files.MANIFEST, previous.encoded())
        for key in previous.all_details(withdrawn):
            folder.discard_key(key)
        _move(folder, rendered, saving, None if is_anew else intent)
        # First pages of another layout would lead readers into generations whose age counts from here on.
        is_known = previous.complete or (before is None and not is_anew)
        stale = previous.objects.keys() - final.objects.keys() if is_known else folder.strangers(final)
        for key in filter(keys.is_first_page, stale):
            folder.discard_key(key)
    else:
        _save_parts(folder, rendered)  # what is in place may be damaged, or another program's
    if rendered.fingerprints:
        fingerprints.save(folder, rendered.fingerprints)
    else:
        fingerprints.keep_only(folder, rendered.memberships)
    deleted = clear(folder, final) if is_anew else 0
    if is_new:
        # Until now, walks have begun in what this build replaced.
        ended = now()
        final = manifest.retired_at(final, begun, ended)
        folder.save(files.MANIFEST, saving.dated(begun, ended))
    saving.sweep()
    # Before the first build there was no `v1/`, so all that is in it was moved there just now.
    return Placed(final, clear(folder, final) if before else deleted)


def _now(folder: Output, previous: Manifest, built: Manifest) -> str:
    """The clock for ages: the operator's, or that of the folder, as the build's as-of is as old as the build took."""
    return built.as_of if manifest.is_clock_set(previous, built) else folder.now()


def clear(folder: Output, known: Manifest) -> int:
    """Delete what the manifest does not name, as killed runs leave it; return how many files and generations."""
    leftovers = list(folder.unknown(known))
    for path in leftovers:
        folder.discard(path)
    return len(leftovers)


def _move(folder: Output, rendered: Rendered, saving: Saving, intent: bytes | None) -> None:
    for generation in rendered.new_generations():
        for key in generation.places:
            folder.move(key)
    saving.move()
    _save_parts(folder, rendered)
    if intent is not None:
        folder.save(files.MANIFEST, intent)
    for key in rendered.staged.changed:
        folder.move(key)


def _save_parts(folder: Output, rendered: Rendered) -> None:
    if rendered.dump_parts is None:
        folder.discard_key(files.DUMP_PARTS)
    elif rendered.dump_parts != folder.read(files.DUMP_PARTS):
        folder.save(files.DUMP_PARTS, rendered.dump_parts)


def purge_retired(folder: Output, before: Manifest) -> Manifest:
    """Delete every generation that is not current; this ends the walks in them."""
    after = replaced(before, retired=())
    if after != before:
        saving = Saving(folder, before)
        content = saving.final(after)
        folder.sync()
        saving.move()
        folder.save(files.MANIFEST, content)
        saving.sweep()
        clear(folder, after)
    return after
