"""A directory as the store: actors stop at every operation on files that others can see."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from generator.stores.directory import Directory
from tests.publish.explorer.scheduler import CURRENT, Game
from tests.publish.explorer.world import Op, World
from tests.support.faults import MEMORY

_WATCHED: Final = ("open", "write", "close", "replace", "rename", "unlink", "rmdir", "mkdir")
#: A file system in memory, where there is one.
_PLACE: Final = MEMORY if os.access(MEMORY, os.W_OK) else None
#: Names that begin like this are nobody's objects.
_HIDDEN: Final = "."


class GatedDirectory(Directory):
    """The real store, but for its clock."""

    def __init__(self, root: Path, world: World) -> None:
        super().__init__(root)
        self._world = world

    def now(self) -> datetime:
        return self._world.now()


class Disk:
    """The directory of one game. The objects of the world follow it, operation by operation."""

    def __init__(self, world: World) -> None:
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="explorer-", dir=_PLACE)))
        self.open: dict[int, str] = {}
        for key, body in world.objects.items():
            path = self.root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)

    def delete(self) -> None:
        shutil.rmtree(self.root)

    def op(self, name: str, arguments: tuple[Any, ...]) -> Op | None:
        """What a call does that others can see; None for nothing."""
        if name in ("replace", "rename"):
            source, target = self.key(arguments[0]), self.key(arguments[1])
            return Op("put", f"{target} {source}") if target else None
        if name == "write":
            key = self.open.get(arguments[0], "")
            return Op("put", key) if _is_seen(key) else None
        key = self.key(arguments[0])
        if name == "open":
            return Op("put", key) if _is_seen(key) and arguments[1] & (os.O_TRUNC | os.O_CREAT) else None
        kinds = {"unlink": "delete", "mkdir": "folder", "rmdir": "folder"}
        return Op(kinds[name], key) if key and name in kinds else None

    def follow(self, op: Op, world: World) -> None:
        """Bring the world's object to what the directory holds now."""
        path = self.root / op.place
        if path.is_file() and _is_seen(op.place):
            world.store(op.place, path.read_bytes())
        elif op.kind != "folder":
            world.delete(op.place)

    def key(self, path: Any) -> str:
        """The key of a path; empty if it is elsewhere."""
        text = path if isinstance(path, str) else os.fspath(path) if isinstance(path, os.PathLike) else ""
        prefix = f"{self.root}/"
        return text[len(prefix) :] if text.startswith(prefix) else ""


def _is_seen(key: str) -> bool:
    return bool(key) and not key.startswith(_HIDDEN)


@contextmanager
def on_disk(game: Game) -> Iterator[None]:
    """Have the actors of a game publish to a directory."""
    game.disk = Disk(game.world)
    try:
        yield
    finally:
        game.disk.delete()


def watched() -> Iterator[tuple[object, str, object]]:
    """Calls on files that wait at the gate, if their thread is an actor's that publishes to a directory."""
    for name in _WATCHED:
        yield os, name, _watched(name, getattr(os, name))


def _watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def watched(*arguments: Any, **options: Any) -> Any:
        actor = CURRENT.actor
        disk: Disk | None = actor.game.disk if actor else None
        if actor is None or disk is None:
            return call(*arguments, **options)
        if name == "close":
            disk.open.pop(arguments[0], None)
            return call(*arguments, **options)
        op = disk.op(name, arguments)

        def carry_out(world: World) -> Any:
            result = call(*arguments, **options)
            if name == "open":
                disk.open[result] = disk.key(arguments[0])
            if op:
                disk.follow(op, world)
            return result

        return actor.game.request(actor, op, carry_out) if op else carry_out(actor.game.world)

    return watched
