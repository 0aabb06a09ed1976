"""Runs the operator's commands: limits their time, kills their children with them, and hides unrelated secrets."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from generator.api import keys
from generator.config.settings import Config
from generator.tree.manifest import Current
from generator.wording import counted

#: What commands inherit: where things are, locale, proxies, and variables of their own. Never secrets of the database
#: and the store, which a program that talks to a CDN or to followers has no use for.
_INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
_INHERITED_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_LOCALE: Final = "LC_"
_MINUTE_S: Final = 60


class CommandError(Exception):
    """A command that failed; the message says which program, and how."""


@dataclass(frozen=True)
class Runner:
    """How a command runs: for `patience` seconds at most, with the environment variables that begin with `prefix`.

    `meanwhile` is called every `step` seconds; what it raises ends the command.
    """

    prefix: str
    patience: float
    step: float = 1.0
    meanwhile: Callable[[], object] = lambda: None

    def run(self, command: Sequence[str]) -> None:
        """Run the program with its arguments; raise CommandError unless it ends with 0 in time."""
        try:
            with subprocess.Popen(  # noqa: S603 - the operator's own
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                errors="replace", env=self._environment(), start_new_session=True,
            ) as process:  # fmt: skip
                output = self._awaited(process, command)
        except OSError as error:
            raise CommandError(f"{command[0]}: {(error.strerror or str(error)).lower()}") from error
        if process.returncode:
            last = output.strip().splitlines()[-1:] or ["no output"]
            raise CommandError(f"{command[0]} ended with {process.returncode} ({last[0]})")

    def _awaited(self, process: subprocess.Popen[str], command: Sequence[str]) -> str:
        """The errors that the process wrote, or else its output; killed if it takes too long or `meanwhile` raises."""
        try:
            return self._output(process, command)
        except BaseException:
            _kill(process)
            raise

    def _output(self, process: subprocess.Popen[str], command: Sequence[str]) -> str:
        until = time.monotonic() + self.patience
        while (left := until - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                output, errors = process.communicate(timeout=min(self.step, left))
                return errors or output
            self.meanwhile()
        raise CommandError(f"{command[0]} did not end within {_shown(self.patience)}")

    def _environment(self) -> dict[str, str]:
        return {
            name: value
            for name, value in os.environ.items()
            if name in _INHERITED or name.upper() in _INHERITED_PROXIES or name.startswith((_LOCALE, self.prefix))
        }


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the process and its children: all have the session that it began."""
    with suppress(ProcessLookupError, PermissionError):  # the latter on macOS, if all have ended
        os.killpg(process.pid, signal.SIGKILL)


def _shown(seconds: float) -> str:
    if seconds % _MINUTE_S:
        return counted(seconds, "second", "g")
    return counted(seconds / _MINUTE_S, "minute", "g")


_PATIENCE_S: Final = 30


def notify(config: Config, feed: Current | None, *, patience_s: float = _PATIENCE_S) -> list[str]:
    """Tell followers that readers see something new, by `publish.notify_command`, if there is one.

    `feed` is the change feed as published. Returns warnings, as the command's failure does not fail the publish. The
    lease is released before, so no publisher waits for it. It runs at least once for every commit that changed
    something, unless the publisher is killed after releasing the lease: a note in the record that it is due would cost
    a PUT per publish. So followers that must miss nothing also poll.

    Appended are the name of the newest step, empty if there is none (as after a takedown), and the address of the
    change feed's head, empty without a change feed.
    """
    command = config.publish.notify_command
    if command is None:
        return []
    step = feed.chunks[-1] if feed and feed.chunks else ""
    address = f"{config.base_url}/{keys.head(keys.CHANGES)}" if feed else ""
    try:
        Runner("NOTIFY_", patience_s).run([*command, step, address])
    except CommandError as error:
        told = "the publish is complete, but followers may not have been notified; fix the command"
        return [f"publish.notify_command: {error}; {told}"]
    return []
