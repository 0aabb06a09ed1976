"""What readers were last led to by a publish from an output folder, as the folder itself knows it.

It is kept beside `v1/` where builds have a target: the states of builds that were never published are not public.
"""

from collections.abc import Callable

from pydantic import ValidationError

from generator.api import keys
from generator.tree import files
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.stored import StoredModel


class LastPublish(StoredModel):
    """The last publish; empty before the first, and while nobody knows what readers find.

    `as_of` is that of the build, `changes` the generation of its change feed, `target` the address it went to.
    """

    as_of: str = ""
    changes: str = ""
    target: str = ""

    @classmethod
    def of(cls, built: Manifest, target: str | None) -> "LastPublish":
        """A publish of this state."""
        changes = built.current.get(keys.CHANGES)
        return cls(as_of=built.as_of, changes=changes.generation if changes else "", target=target or "")

    def save(self, folder: Output) -> None:
        """Save it in the folder, unless it says so already."""
        content = self.model_dump_json(by_alias=True).encode() + b"\n"
        if folder.read(files.LAST_PUBLISH) != content:
            folder.save(files.LAST_PUBLISH, content)


def found(read: Callable[[str], bytes | None]) -> LastPublish | None:
    """What the folder says; None if its last build had no target."""
    content = read(files.LAST_PUBLISH)
    if content is None:
        return None
    try:
        return LastPublish.model_validate_json(content)
    except ValidationError:
        return LastPublish()


def begin(folder: Output, built: Manifest, target: str | None) -> None:
    """Note that readers of the target may find this state from now on, though the publish may be cut short."""
    last, published = found(folder.read), LastPublish.of(built, target)
    if last is None or (last.changes, last.target) != (published.changes, published.target):
        LastPublish().save(folder)
