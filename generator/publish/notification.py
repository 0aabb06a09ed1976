"""Notifies followers that readers see something new, by `publish.notify_command`.

The lease is released before, so no publisher waits for the command. It runs at least once for every commit that changed
something, unless the publisher is killed after releasing the lease: followers that must miss nothing also poll.
"""

from typing import Final

from generator.api import keys
from generator.config.settings import Config
from generator.publish.commands import CommandError, Runner
from generator.tree.manifest import Manifest

_PATIENCE_S: Final = 30


def send(config: Config, published: Manifest, *, patience_s: float = _PATIENCE_S) -> list[str]:
    """Run the command, if there is one; return warnings, as its failure does not fail the publish.

    Appended are the name of the newest step, empty if there is none (as after a takedown), and the address of the
    change feed's head, empty without a change feed.
    """
    command = config.publish.notify_command
    if command is None:
        return []
    feed = published.current.get(keys.CHANGES)
    step = feed.chunks[-1] if feed and feed.chunks else ""
    address = f"{config.base_url}/{keys.head(keys.CHANGES)}" if feed else ""
    try:
        Runner("NOTIFY_", patience_s).run([*command, step, address])
    except CommandError as error:
        told = "the publish is complete, but followers may not have been notified; fix the command"
        return [f"publish.notify_command: {error}; {told}"]
    return []
