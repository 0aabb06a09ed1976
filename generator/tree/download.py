"""A download: files to take away, named by their content, and the head that leads to them."""

from collections.abc import Collection, Iterator, Mapping

from generator.api import keys
from generator.tree import files, layouts
from generator.tree.folder import Output
from generator.tree.generation import Stage, StagedGeneration


class Download:
    """One content of a download: the bytes of its head, and the sizes of its files, by name.

    The `staged` files are those that are not in place yet.
    """

    def __init__(
        self, list_name: str, head: bytes, count: int, files: Mapping[str, int], staged: Collection[str]
    ) -> None:
        self.list_name = list_name
        self.count = count
        self.chunks = tuple(files)
        self.name = layouts.name_of_index(head, keys.DOWNLOAD_LETTER)
        self._head = head
        self._sizes = files
        self._staged = [name for name in files if name in staged]

    def first_pages(self) -> Iterator[tuple[str, bytes]]:
        """The key and bytes of the head."""
        yield keys.head(self.list_name), self._head

    def places(self) -> Iterator[str]:
        """The keys of its files, and of its index, which says what the head said."""
        yield from (keys.chunk(self.list_name, name) for name in self.chunks)
        yield keys.index(self.list_name, self.name)

    def stage(self, stage: Stage) -> StagedGeneration:
        """Stage the index; the files are staged already."""
        index = keys.index(self.list_name, self.name)
        indexes = (index,) if stage.put(index, self._head) else ()
        places = (*(keys.chunk(self.list_name, name) for name in self._staged), *indexes)
        written = sum(self._sizes[name] for name in self._staged) + len(indexes) * len(self._head)
        return StagedGeneration(places, len(places), written, sum(self._sizes.values()) + len(self._head))


def begin_with(source: Output, target: Output) -> None:
    """Copy the downloads of a folder into a new one, so that a build there goes on from them."""
    built = source.manifest()
    if built is None or not built.downloads:
        return
    generations = (key for name, current in built.downloads.items() for key in layouts.object_keys(name, current))
    heads = [keys.head(name) for name in built.downloads]
    for key in (*generations, *heads):
        if (body := source.read(key)) is not None and target.put(key, body):
            target.move(key)
    if parts := source.read(files.DUMP_PARTS):
        target.save(files.DUMP_PARTS, parts)
    # Nothing else is there, so nothing else counts as built.
    objects = {key: built.objects[key] for key in heads if key in built.objects}
    only = built.emptied().model_copy(update={"downloads": built.downloads, "objects": objects})
    target.save(files.MANIFEST, only.encoded())
