"""Stand-ins for what actors would otherwise share with the real world: clock, processes, threads, disk and database."""

import hashlib
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self

import click
import pytest

from generator import process_identity
from generator.cli import build as cli_build
from generator.cli import command, logs
from generator.cli import publish as cli_publish
from generator.cli import rebuild as cli_rebuild
from generator.cli import takedown as cli_takedown
from generator.publish import apply, audit, copies, record, withdrawal
from generator.stores import factory, requests
from generator.stores.store import Store
from generator.tree import blocklist, folder, pages
from generator.tree.files import MANIFEST, STATES
from tests.publish.explorer import directory
from tests.publish.explorer.contents import LIMITS, built, layout_of
from tests.publish.explorer.scheduler import CURRENT, current
from tests.publish.explorer.world import BucketStore, Folder

#: Modules whose names are replaced, wherever they were imported from.
_PACKAGES: Final = ("generator.publish", "generator.stores", "generator.cli", "generator.tree")
#: Imported so that they are found there.
_MODULES: Final = (apply, audit, withdrawal, cli_build, cli_publish, cli_rebuild, cli_takedown)


class InlineExecutor:
    """Does in one thread, in order, what a pool does in several."""

    def __init__(self, threads: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done = Future[Any]()
        try:
            done.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            done.set_exception(error)
        return done


@contextmanager
def in_place() -> Iterator[pytest.MonkeyPatch]:
    """Replace everything for the length of the block; yields a patch for more."""
    with pytest.MonkeyPatch.context() as patch:
        for place, name, stand_in in [*_replaced(), *directory.watched()]:
            patch.setattr(place, name, stand_in)
        yield patch


def _replaced() -> Iterator[tuple[object, str, object]]:
    """What is replaced: a module or class, the name in it, and what stands in for it."""
    yield pages, "LIMITS", LIMITS
    yield logs.LOG, "disabled", True
    yield click, "echo", lambda *_, **__: None
    yield requests, "ThreadPoolExecutor", InlineExecutor
    yield copies.Cdn, "invalidate", lambda _: None
    yield copies, "FILL_S", 0
    yield process_identity, "identity", lambda: current().name
    yield process_identity, "has_ended", _has_ended
    decoded = lru_cache(maxsize=10_000)(record.decoded)
    yield record, "decoded", decoded
    yield cli_rebuild, "build_into", _build_into
    for original, stand_in in (
        (folder.locked, _locked),
        (factory.open_store, _open_store),
        (command.now, _now),
        (cli_build.log_report, lambda *_: None),
        (cli_build.tell_built, lambda *_, **__: None),
        (record.decoded, decoded),
    ):
        yield from _wherever_imported(original, stand_in)
    for module, name, acting in (
        (time, "sleep", lambda seconds: current().game.sleep(current(), seconds)),
        (time, "monotonic", lambda: current().game.world.clock_s),
        (time, "clock_gettime", lambda _: current().game.world.clock_s),
        (secrets, "token_hex", _token),
        (tempfile, "TemporaryDirectory", lambda: nullcontext(f"/scratch-{_token()}")),
    ):
        yield module, name, _for_actors(acting, getattr(module, name))


def _wherever_imported(original: object, stand_in: object) -> Iterator[tuple[object, str, object]]:
    """A function in every module that imported it."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_PACKAGES):
            for attribute in [attribute for attribute, value in vars(module).items() if value is original]:
                yield module, attribute, stand_in


def _for_actors(stand_in: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """The stand-in in the threads of actors, the original in all others."""

    def chosen(*arguments: Any) -> Any:
        return (stand_in if CURRENT.actor else original)(*arguments)

    return chosen


def _has_ended(name: str) -> bool:
    return current().game.has_ended(name)


def _now() -> datetime:
    return current().game.world.tick()


def _token(length: int | None = None) -> str:
    actor = current()
    actor.tokens += 1
    return hashlib.sha256(f"{actor.name} {actor.tokens}".encode()).hexdigest()[: 2 * (length or 32)]


def _locked(root: Path) -> Any:
    return current().game.world.lock(root)


def _open_store(_: object) -> Store:
    actor = current()
    if actor.game.disk:
        return directory.GatedDirectory(actor.game.disk.root, actor.game.world)
    return BucketStore(actor.game.world, lambda op, carry_out: actor.game.request(actor, op, carry_out))


def _build_into(output: Folder, settings: Any, *_: object, **__: object) -> Any:
    """What the build of the actor's content leaves; it is another actor's machine, so nobody sees its steps."""
    made = built(layout_of(settings), current().content, blocklist.load(output).ids())
    for name in [name for name in output.files if name.startswith(("v1/", STATES)) or name == MANIFEST]:
        del output.files[name]
    output.files.update(made.files)
    return SimpleNamespace(summary=lambda: "built")
