"""README speaks of every command and option, so that nobody has to find one by chance."""

from collections.abc import Iterator
from typing import Final

import click
import pytest

from tests.support.builds import ROOT, all_commands

README: Final = (ROOT / "README.md").read_text("utf-8")


COMMANDS: Final = all_commands()


def options() -> Iterator[tuple[str, str]]:
    """Every option that is not hidden, with its command."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield name, parameter.opts[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_readme_lists_every_command(name: str) -> None:
    assert f"| `public-markets {name}" in README


@pytest.mark.parametrize(("name", "option"), list(options()))
def test_readme_tells_of_every_option(name: str, option: str) -> None:
    assert option in README, f"{name} {option}"


def test_every_command_says_what_it_does() -> None:
    assert len(COMMANDS) == 8
    assert all(command.help for command in COMMANDS.values())
