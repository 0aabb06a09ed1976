"""Opens `publish.target` for the commands that write there."""

from generator.cli.logs import LOG
from generator.config.settings import Config
from generator.publish import store_checks
from generator.stores.factory import open_store
from generator.stores.store import Store


def open_target(settings: Config) -> Store:
    """Open the target; warn of a setting that has no effect there."""
    if problem := store_checks.unused_endpoint(settings):
        LOG.warning("%s", problem)
    return open_store(settings)
