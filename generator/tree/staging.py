"""What a build has staged, list by list and object by object, and the move into place in publication order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from generator.api import keys
from generator.models import replaced
from generator.tree import files, fingerprints, generations, layouts, manifest, manifest_file, state
from generator.tree.fingerprints import Fingerprints
from generator.tree.folder import Output
from generator.tree.generation import Artifact, ItemList, Stageable, StagedGeneration, Weight, Workplace
from generator.tree.generations import Generations
from generator.tree.manifest import Current, Manifest
from generator.tree.membership import Memberships


@dataclass
class Staged:
    """Mutable objects: the digests of all, and the keys of the changed ones, which were staged, in publication order.

    `bytes` counts the changed objects, `size` all of them.
    """

    objects: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    bytes: int = 0
    size: int = 0

    def put(self, folder: Workplace, artifact: Artifact, digest: str | None = None) -> bool:
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

    `families` are those that were staged, by name. `fingerprints` is None if no detail was made. `beside` has
    those of `files.BESIDE` that are to be there. `damaged` are generations in place, by family and name, that end.
    """

    families: Mapping[str, StagedFamily]
    staged: Staged
    manifest: Manifest
    memberships: Memberships
    fingerprints: Fingerprints | None = None
    beside: Mapping[str, bytes | None] = field(default_factory=dict)
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


class Saving:
    """Replaces the manifest of a locked folder, which was read as `before`, by the one that a build leaves.

    It is saved whole if it is small, else as a header and the state that it names. States are named by their content,
    and a header never names one that is not in place: so whenever a build is killed, the manifest in the folder is
    whole. What no header names is swept.
    """

    def __init__(self, folder: Output, before: Manifest | None) -> None:
        self._folder = folder
        self._before = before
        self.content = folder.read(files.MANIFEST)
        self._stored = manifest_file.decoded(folder.path(""), self.content) if before and self.content else None
        self._staged = set[str]()
        self._final: Manifest | None = None

    def final(self, built: Manifest) -> bytes:
        """Stage the state of the final manifest; returns the bytes of its file."""
        self._final = self._header(built) if state.is_large(built) else built
        return self._final.encoded()

    def dated(self, planned: str, now: str) -> bytes:
        """The bytes of the final manifest's file with `now` as the time of retirements `planned` for another."""
        return manifest.retired_at(self._final, planned, now).encoded() if self._final else b""

    def intent(self, built: Manifest, memberships: Memberships) -> bytes:
        """The bytes of the manifest to save before files are replaced; it says what `manifest.intend` says."""
        before, stored = self._before or built.emptied(), self._stored or built.emptied()
        is_split = bool(self._final and self._final.state)
        if not stored.state and not is_split:
            return manifest.intend(before, built.current, memberships, built.as_of, built).encoded()
        if stored.intended:
            # What a killed build intended counts, too.
            stored = self._header(before)
        intended = self._final if self._final and is_split else self._header(replaced(built, markets=memberships))
        return replaced(stored, complete=False, intended=intended.state, begun_at=built.as_of).encoded()

    def _header(self, built: Manifest) -> Manifest:
        """The header of a manifest, whose state is staged unless it is in place."""
        if self._before and self._stored and self._stored.state and state.is_same(self._before, built):
            return state.header(built, self._stored.state, self._stored.retirements)
        body = state.encoded(built)
        name = state.digest(body)
        if self._folder.put(_key(name), body):
            self._staged.add(name)
        return state.header(built, name, state.retirements(built))

    def move(self) -> None:
        """Move the staged states into place, before a manifest names them."""
        for name in sorted(self._staged):
            self._folder.move(_key(name))
        if self._staged:
            self._folder.sync_names(files.STATES)

    def sweep(self) -> None:
        """Delete the states that the final manifest does not name: those of earlier ones, and of killed builds."""
        for name in self._folder.names(files.STATES):
            if state.is_name(name) and not (self._final and name == self._final.state):
                self._folder.discard_key(_key(name))
        for name in self._folder.names(files.FORMER_STATES):
            if state.is_name(name):
                self._folder.discard_key(f"{files.FORMER_STATES}{name}")


def _key(name: str) -> str:
    return f"{files.STATES}{name}"


def stage_list(folder: Workplace, layout: str, known: Generations, items: ItemList) -> StagedFamily:
    """Stage one list: its generation unless it is in place, and its first pages. Runs in a worker."""
    return stage_generation(folder, known, layouts.make(layout, items))


def stage_generation(folder: Workplace, known: Generations, generation: Stageable) -> StagedFamily:
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
    withdrawn = previous.markets.keys() - rendered.memberships.keys()
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
        # Of what stays, a build that was killed may have put some in place already.
        for key in previous.showing(withdrawn) - (rendered.staged.objects.keys() - {*rendered.staged.changed}):
            folder.discard_key(key)
        _move(folder, rendered, saving, None if is_anew else intent)
        # First pages of another layout would lead readers into generations whose age counts from here on.
        is_known = previous.complete or (before is None and not is_anew)
        stale = previous.objects.keys() - final.objects.keys() if is_known else folder.strangers(final)
        for key in filter(keys.is_first_page, stale):
            folder.discard_key(key)
    else:
        _save_beside(folder, rendered)  # what is in place may be damaged, or another program's
    if rendered.fingerprints:
        fingerprints.save(folder, rendered.fingerprints)
    else:
        fingerprints.keep_only(folder, rendered.memberships)
    deleted = clear(folder, final) if is_anew else 0
    if is_new:
        # Until now, walks have begun in what this build replaced.
        ended = now()
        final = manifest.retired_at(final, begun, ended)
        # Later builds take details as they are: none that a power cut brought back may have the digest of a new one.
        folder.sync()
        folder.save(files.MANIFEST, saving.dated(begun, ended))
    saving.sweep()
    # Before the first build there was no `v1/`, so all that is in it was moved there just now.
    return Placed(final, clear(folder, final, previous) if before else deleted)


def redate(folder: Output, before: Manifest, as_of: str, build: bytes) -> None:
    """Have a folder say that it is as of a later time: its `build.json`, and its manifest, or the header of that.

    In the same steps as `place`, so that a build that is killed meanwhile leaves what it would leave there.
    """
    folder.put(keys.BUILD, build)
    begun = {"intended": before.state, "begun_at": as_of} if before.state else {}
    folder.sync()
    folder.save(files.MANIFEST, replaced(before, complete=False, **begun).encoded())
    folder.move(keys.BUILD)
    fingerprints.redate(folder, as_of)
    folder.sync()
    objects = {**before.objects, keys.BUILD: manifest.digest(keys.BUILD, build)}
    folder.save(files.MANIFEST, replaced(before, as_of=as_of, objects=objects).encoded())


def _now(folder: Output, previous: Manifest, built: Manifest) -> str:
    """The clock for ages: the operator's, or that of the folder, as the build's as-of is as old as the build took."""
    return built.as_of if manifest.is_clock_set(previous, built) else folder.now()


def clear(folder: Output, known: Manifest, before: Manifest | None = None) -> int:
    """Delete what the manifest does not name, as killed runs leave it; return how many files and generations.

    Where all was as the last build left it, only what the manifest `before` named need be looked for.
    """
    if before and folder.is_as_left:
        gone, stay = (files.expected(one.objects, one.generations()) for one in (before, known))
        leftovers = [folder.path(name) for name in sorted({*gone} - {*stay}) if folder.has(name)]
    else:
        leftovers = list(folder.unknown(known.objects, known.generations()))
    for path in leftovers:
        folder.discard(path)
    return len(leftovers)


def _move(folder: Output, rendered: Rendered, saving: Saving, intent: bytes | None) -> None:
    for generation in rendered.new_generations():
        for key in generation.places:
            folder.move(key)
    saving.move()
    _save_beside(folder, rendered)
    if intent is not None:
        folder.save(files.MANIFEST, intent)
    for key in rendered.staged.changed:
        folder.move(key)


def _save_beside(folder: Output, rendered: Rendered) -> None:
    for name in files.BESIDE:
        content = rendered.beside.get(name)
        if content is None:
            if folder.has(name):
                folder.discard_key(name)
        elif content != folder.read(name):
            folder.save(name, content)


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
