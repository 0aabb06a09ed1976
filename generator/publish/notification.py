"""Tells followers that readers see something new, by `publish.notify_command`: a webhook without a server.

The lease is released before, so nobody waits for the command. It is told at least once of whatever a commit changed,
unless its run is killed between releasing the lease and ending: a follower that must miss nothing polls, too.
"""

from typing import Final

from generator.api import keys
from generator.config.settings import Config
from generator.publish.commands import CommandError, Runner
from generator.tree.manifest import Manifest

_PATIENCE_S: Final = 30


def send(config: Config, published: Manifest) -> list[str]:
    """Run the command, if there is one; returns warnings, as its failure is no reason to fail.

    Appended are the name of the newest change step, empty if there is none (as after a takedown), and the address of
    the change feed's head, empty without a change feed.
    """
    command = config.publish.notify_command
    if command is None:
        return []
    feed = published.downloads.get(keys.CHANGES)
    step = feed.chunks[-1] if feed and feed.chunks else ""
    address = f"{config.base_url}/{keys.head(keys.CHANGES)}" if feed else ""
    try:
        Runner("NOTIFY_", _PATIENCE_S).run([*command, step, address])
    except CommandError as error:
        return [f"publish.notify_command: {error}; the publish is complete, but followers may not know yet"]
    return []
