"""The progress bar, shown only when stderr is a terminal and logs are text."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from generator.cli import logs

_Told = TypeVar("_Told")


class Bar:
    """A progress bar. Until the number of steps is known, it shows only its label."""

    def __init__(self, label: str, *, is_visible: bool) -> None:
        self._label = label
        self._is_visible = is_visible
        self._bar: Any = None
        if is_visible:
            click.echo(f"{label} …", nl=False, err=True)

    def start(self, steps: int) -> None:
        """Show an empty bar of this many steps."""
        if self._is_visible:
            self._bar = click.progressbar(length=steps, label=self._label, file=sys.stderr)
            self._bar.render_progress()

    def expect(self, steps: int) -> None:
        """Make the bar longer."""
        if self._bar:
            self._bar.length += steps

    def describe(self, doing: str) -> None:
        """Show what is being done, after the label."""
        if self._bar:
            self._bar.label = f"{self._label}: {doing}"

    def advance(self) -> None:
        """Move on by one step."""
        if self._bar:
            self._bar.update(1)

    def finish(self) -> None:
        """End the line, or clear it if there was only a label."""
        if self._bar:
            self._bar.render_finish()
        elif self._is_visible:
            click.echo("\r\033[K", nl=False, err=True)
        self._bar, self._is_visible = None, False

    def before(self, tell: Callable[[_Told], object]) -> Callable[[_Told], None]:
        """Tell what is told of a thing after the bar has ended, which it does then."""

        def told(thing: _Told) -> None:
            self.finish()
            tell(thing)

        return told


@contextmanager
def progress_bar(label: str) -> Iterator[Bar]:
    """Show a bar while the block runs."""
    bar = Bar(label, is_visible=sys.stderr.isatty() and not logs.are_json())
    try:
        yield bar
    finally:
        bar.finish()
