"""The commands that meet in the explorer, as the command line runs them, without parsing options and settings."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import click

from generator.cli.hold import hold_command
from generator.cli.publish import publish_command
from generator.cli.rebuild import rebuild_command
from generator.cli.takedown import takedown_command
from tests.publish.explorer.contents import QUESTION_ID, QUESTIONS, built, config
from tests.publish.explorer.scheduler import Actor
from tests.support.sites.rows import market_id

_COMMON: Final = {"config_path", "env_files", "overrides", "verbose", "log_format", "metrics_path"}


@dataclass(frozen=True)
class Role:
    """What an actor does: a command with options, on a machine whose layout is `moved` or the scenario's.

    `content` is what its build holds, `shown` and `hides` the market that a takedown is about, or one of those that go
    with a question.
    """

    name: str
    command: str
    content: str = "new"
    moved: bool = False
    market: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    question: str = ""

    def actor(self, layout: str, machine: str) -> Actor:
        """This role in a game."""
        if self.moved:
            layout = "chunks" if layout == "pages" else "pages"
        run = partial(_RUNS[self.command], self, layout, machine)
        return Actor(f"{self.name} on {machine}", run, self.content)

    @property
    def builds(self) -> bool:
        """Whether it publishes a build."""
        return self.command in ("publish", "rebuild")

    @property
    def hides(self) -> int:
        """The market that it reports gone when it succeeds; 0 for none."""
        return self.market if self.command == "takedown" else 0

    @property
    def may_hide(self) -> frozenset[int]:
        """All that it may hide."""
        members = (number for _, numbers in QUESTIONS.values() for number in numbers)
        return frozenset(members if self.question else {self.hides}) - {0}


def _publish(role: Role, layout: str, machine: str, actor: Actor) -> None:
    settings = config(layout, machine)
    actor.game.world.folders.setdefault(settings.output, dict(built(layout, role.content).files))
    _call(publish_command, settings, role)


def _rebuild(role: Role, layout: str, machine: str, _: Actor) -> None:
    _call(rebuild_command, config(layout, machine), role)


def _takedown(role: Role, layout: str, machine: str, _: Actor, *, undo: bool = False) -> None:
    markets = () if role.question else (market_id(role.market),)
    names = {"markets": markets, "questions": (role.question,) if role.question else ()}
    _call(takedown_command, config(layout, machine), role, **names, undo=undo, is_sure=True)


def _hold(role: Role, layout: str, machine: str, _: Actor) -> None:
    _call(hold_command, config(layout, machine), role)


_RUNS: Final[dict[str, Callable[..., None]]] = {
    "publish": _publish,
    "rebuild": _rebuild,
    "takedown": _takedown,
    "undo": partial(_takedown, undo=True),
    "hold": _hold,
    "release": _hold,
}


def _call(command: click.Command, settings: Any, role: Role, **arguments: Any) -> None:
    """Run the command's own function with the defaults of its options, all guards lifted unless the role says so."""
    context = click.Context(command)
    defaults = {param.name: param.get_default(context) for param in command.params if param.name not in _COMMON}
    lifted = {name: True for name in ("allow_shrink", "allow_older", "allow_cost") if name in defaults}
    given: dict[Any, Any] = {**defaults, **lifted, **dict(role.options), **arguments}
    with context:
        assert command.callback
        command.callback(settings, **given)


PUBLISH: Final = Role("publish", "publish")
REBUILD: Final = Role("rebuild", "rebuild")
OTHER: Final = Role("other", "publish", content="other")
GUARDED: Final = Role("guarded", "publish", content="old", options=(("allow_older", False),))
VERIFY: Final = Role("verify", "publish", options=(("verify", True),))
MOVE: Final = Role("move", "publish", moved=True)
#: Market 1 is edited in the new content, 2 is the same in both, 3 is new.
TAKEDOWNS: Final = {number: Role(f"takedown{number}", "takedown", market=number) for number in (1, 2, 3)}
TAKEDOWN_OF_QUESTION: Final = Role("takedown1 with its question", "takedown", market=1, question=QUESTION_ID)
UNDO: Final = Role("undo", "undo", market=1)
UNDO_2: Final = Role("undo2", "undo", market=2)
HOLD: Final = Role("hold", "hold", options=(("reason", "Wrong prices"),))
ANOTHER_HOLD: Final = Role("hold too", "hold", options=(("reason", "Wrong names"),))
RELEASE: Final = Role("release", "release", options=(("reason", None), ("release", True)))
