"""How `publish.target` is opened for the commands that use it."""

from collections.abc import Iterator
from contextlib import contextmanager

from generator.cli.logs import LOG
from generator.config.settings import Config
from generator.publish import store_checks
from generator.stores.factory import open_store
from generator.stores.overlay import Overlay
from generator.stores.store import Store
from generator.tree import dry_folder
from generator.tree.folder import Output, locked


def open_target(settings: Config) -> Store:
    """Open the target; say, where all is said, of a setting that it has no effect there: `check` warns of that."""
    if problem := store_checks.unused_endpoint(settings):
        LOG.info("%s", problem)
    return open_store(settings)


@contextmanager
def both_ends(settings: Config, *, is_dry: bool) -> Iterator[tuple[Output, Store]]:
    """The locked output folder and the target; in a dry run, what is written to either is kept aside and deleted."""
    target = open_target(settings)
    if not is_dry:
        with locked(settings.output) as folder:
            yield folder, target
        return
    with dry_folder.whole(settings.output) as folder:
        yield folder, Overlay(target, folder.read)
