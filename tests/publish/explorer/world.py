"""The world that actors share: a bucket and output folders in memory, and a clock that moves when someone waits."""

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from io import BytesIO
from operator import methodcaller
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.api.forms import instant
from generator.errors import BusyError
from generator.site.families import rank
from generator.stores.store import BeforeEach, Condition, ConditionFailedError, If, Listed, Stored, nothing
from generator.tree import manifest_file
from generator.tree.files import MANIFEST, STATES
from generator.tree.folder import Output
from generator.tree.generation import PageFolder
from generator.tree.generations import Generations, chunk_keys
from generator.tree.manifest import Manifest
from tests.support.sites.builds import AS_OF

_SITE: Final = f"{API_VERSION}/"
#: The clock starts an hour after the first build.
START: Final = AS_OF.astimezone(UTC) + timedelta(hours=1)


class Op(NamedTuple):
    """A request: what it does, to which key or prefix; for a rename, to which two keys, the new one first."""

    kind: str
    key: str

    @property
    def writes(self) -> bool:
        return self.kind in ("put", "delete", "folder")

    @property
    def place(self) -> str:
        """The key that changes."""
        return self.key.partition(" ")[0]

    def conflicts(self, other: "Op") -> bool:
        """Whether the order of the two can matter."""
        if not (self.writes or other.writes):
            return False
        if "list" in (self.kind, other.kind):
            return True
        if "folder" in (self.kind, other.kind):
            return self.key.startswith(other.key) or other.key.startswith(self.key)
        return not set(self.key.split()).isdisjoint(other.key.split())

    def __str__(self) -> str:
        return f"{self.kind} {self.key}".strip()


def label(key: str) -> str:
    """The kind of an object, for what may happen to any of its kind."""
    if not key.startswith(f"{API_VERSION}/"):
        return "probe" if key.startswith("probe-") else "state" if key.startswith(STATES) else key
    if keys.is_immutable(key):
        return "page" if keys.CHUNKS not in key and not key.endswith(keys.INDEX) else "chunk"
    return ("detail", "snapshot", "first page", "first page", "build.json")[rank(key)]


#: Carries out a request on the world when it is the actor's turn.
Gate = Callable[[Op, "Callable[[World], Any]"], Any]


@lru_cache(maxsize=100_000)
def etag_of(body: bytes) -> str:
    """As in a directory, so that a record of either store is right in the other."""
    return hashlib.sha256(body).hexdigest()


@dataclass
class World:
    """`objects` are those of the bucket by key, `folders` the files of every machine by the path of its folder."""

    objects: dict[str, bytes] = field(default_factory=dict)
    folders: dict[Path, dict[str, bytes]] = field(default_factory=dict)
    clock_s: float = 0.0
    locked: set[Path] = field(default_factory=set)
    _site: frozenset[tuple[str, bytes]] | None = None

    def copy(self) -> "World":
        """A world that goes on by itself."""
        folders = {root: dict(files) for root, files in self.folders.items()}
        return World(dict(self.objects), folders, self.clock_s, _site=self._site)

    def later(self, seconds: float) -> "World":
        """The same, some time later."""
        world = self.copy()
        world.clock_s += seconds
        return world

    def now(self) -> datetime:
        return START + timedelta(seconds=self.clock_s)

    def tick(self) -> datetime:
        """The time of the machines, which all agree; decisions are a millisecond apart."""
        self.clock_s += 0.001
        return self.now()

    def site(self) -> frozenset[tuple[str, bytes]]:
        """What readers can read."""
        if self._site is None:
            self._site = frozenset(item for item in self.objects.items() if item[0].startswith(_SITE))
        return self._site

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        found = self.objects.get(key)
        if condition is If.ABSENT and found is not None:
            raise ConditionFailedError(key)
        if isinstance(condition, str) and (found is None or etag_of(found) != condition):
            raise ConditionFailedError(key)
        self.store(key, body)
        return etag_of(body)

    def store(self, key: str, body: bytes) -> None:
        self.delete(key)
        self.objects[key] = body
        if self._site is not None and key.startswith(_SITE):
            self._site |= {(key, body)}

    def delete(self, key: str) -> None:
        body = self.objects.pop(key, None)
        if self._site is not None and body is not None:
            self._site -= {(key, body)}

    @contextmanager
    def lock(self, root: Path) -> Iterator["Folder"]:
        """Stands in for `tree.folder.locked`."""
        if root in self.locked:
            raise BusyError(f"{root}: another run is at work there")
        self.locked.add(root)
        try:
            yield Folder(root, self.folders.setdefault(root, {}), self.now)
        finally:
            self.locked.discard(root)


class BucketStore:
    """One actor's view of the bucket: every request waits at the gate."""

    name: Final = "memory"
    parallel: Final = 1
    at_once: Final = 1
    requests: Final = 0

    def __init__(self, world: World, gate: Gate) -> None:
        self._world = world
        self._gate = gate

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def now(self) -> datetime:
        return self._world.now()

    def get(self, key: str) -> Stored | None:
        body: bytes | None = self._gate(Op("get", key), lambda world: world.objects.get(key))
        return None if body is None else Stored(body, etag_of(body))

    def head(self, key: str) -> str | None:
        body: bytes | None = self._gate(Op("head", key), lambda world: world.objects.get(key))
        return None if body is None else etag_of(body)

    def put(self, key: str, body: bytes, condition: Condition) -> str:
        etag: str = self._gate(Op("put", key), lambda world: world.put(key, body, condition))
        return etag

    def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:
        # A service may delete the objects of one request one after the other, so each is a step of its own.
        for key in keys:
            before_each()
            self._gate(Op("delete", key), methodcaller("delete", key))

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        objects: dict[str, bytes] = self._gate(Op("list", prefix), lambda world: dict(world.objects))
        found = sorted(item for item in objects.items() if item[0].startswith(prefix) and item[0] > after)
        return (Listed(key, len(body), etag_of(body)) for key, body in found)

    def keys(self, prefix: str) -> Iterator[str]:
        return (listed.key for listed in self.list(prefix))

    def purge_versions(self, prefix: str, before_each: BeforeEach = nothing) -> int:  # noqa: ARG002 - the protocol's
        return 0

    def etag_of(self, body: bytes) -> str:
        return etag_of(body)

    def flush(self) -> None:
        """Everything is durable."""

    def is_open_to_everyone(self) -> bool:
        return False

    def is_versioned(self) -> bool:
        return False


class _Durable:
    """A disk that needs no flush."""

    def begin(self) -> None:
        """Nothing is lost."""


class Folder(Output):
    """An output folder in memory; nobody but its machine sees it, so its operations are no steps."""

    def __init__(self, root: Path, files: dict[str, bytes], clock: Callable[[], datetime]) -> None:
        super().__init__(root, root / ".staging")
        self.files = files
        self._clock = clock
        self._staged: dict[str, bytes] = {}

    def manifest(self, *, is_light: bool = False) -> Manifest | None:  # noqa: ARG002 - always whole
        content = self.files.get(MANIFEST)
        if content and content not in _MANIFESTS:
            _MANIFESTS[content] = manifest_file.read(self.path(""), self.read)
        return None if content is None else _MANIFESTS[content]

    def names(self, folder: str) -> list[str]:
        return sorted(key.removeprefix(folder) for key in self.files if key.startswith(folder))

    def sync_names(self, folder: str) -> None:
        """Nothing is lost."""

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def _size(self, key: str) -> int | None:
        body = self.files.get(key)
        return None if body is None else len(body)

    def now(self) -> str:
        return instant(self._clock())

    def _is_placed(self, key: str) -> bool:
        return self.has(key)

    def has(self, name: str) -> bool:
        return name in self.files or any(key.startswith(f"{name}/") for key in self.files)

    def put(self, key: str, body: bytes) -> bool:
        if self.files.get(key) == body:
            return False
        self._staged[key] = body
        return True

    def newest(self, key: str) -> bytes | None:
        return self._staged.get(key, self.files.get(key))

    def open_newest(self, key: str) -> BinaryIO:
        return BytesIO(self.newest_body(key))

    def written_ahead(self) -> Any:
        return nullcontext(_Durable())

    def scratch(self, name: str = "scratch") -> Path:
        return workplace() / name

    def stage_file(self, path: Path, key: str) -> bool:
        body = path.read_bytes()
        if len(self.files.get(key, b"")) == len(body):
            return False
        self._staged[key] = body
        return True

    def put_pages(self, prefix: str, folders: Iterable[PageFolder]) -> int:
        size = 0
        for pages in folders:
            for position, body in pages.pages:
                self._staged[f"{prefix}/{pages.name}/{position}.json"] = body
                size += len(body)
        return size

    def sync(self) -> None:
        """Nothing is lost."""

    def move(self, key: str) -> None:
        for name in [name for name in self._staged if name == key or name.startswith(f"{key}/")]:
            self.files[name] = self._staged.pop(name)

    def save(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def strangers(self, known: Manifest) -> set[str]:
        return {self._key(path) for path in self.unknown(known.objects, known.generations())}

    def unknown(self, objects: Container[str], known: Generations) -> Iterator[Path]:
        prefixes = tuple(f"{keys.generation_prefix(*pair)}/" for pair in known)
        chunks = chunk_keys(known)
        below = [key for key in self.files if key.startswith(f"{API_VERSION}/")]
        return (self.path(key) for key in below if not (key in objects or key in chunks or key.startswith(prefixes)))

    def discard(self, path: Path) -> None:
        place = self._key(path)
        for key in [key for key in self.files if key == place or key.startswith(f"{place}/")]:
            del self.files[key]

    def _key(self, path: Path) -> str:
        return path.relative_to(self.path("")).as_posix()


@cache
def workplace() -> Path:
    """For what are real files: drafts of downloads, and configuration."""
    folder = Path(tempfile.mkdtemp(prefix="explorer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


#: Manifests read before, by their bytes, which name their state by its content.
_MANIFESTS: Final = dict[bytes, Manifest | None]()
