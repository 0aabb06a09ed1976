"""Types of arguments and options that several commands take."""

import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import click

from generator.config.market_url import LONGEST_ADDRESS
from generator.errors import PUBLISH_GUARDS

#: The guards that also have an option of their own, `--allow-…`.
_ALIASES: Final = ("growth", "invalid", "jumps", "questions", *PUBLISH_GUARDS)

_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


class Time(click.ParamType[datetime]):
    """A time, RFC 3339; UTC unless it has an offset."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Parse the time. The first and last years of the calendar leave no room for time windows around it."""
        try:
            moment = datetime.fromisoformat(str(value).upper())
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time; write it like 2026-01-31T12:00:00Z", param, ctx)
        if not 1000 <= moment.year <= 9998:  # noqa: PLR2004 - as in the message below
            self.fail(f"{value!r} is not between the years 1000 and 9998", param, ctx)
        return moment


class Reference(click.ParamType[str]):
    """What names a market: its id or the beginning of it, its slug, its key, an address, or words of its question."""

    name = "market"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it is: a key may have blanks around it, and what was pasted, line feeds."""
        text = str(value)
        # Keys and questions may have characters that show nothing, but no control characters.
        if not text.strip() or len(text) > LONGEST_ADDRESS or any(map(_is_refused, text)):
            self.fail(f"{value!r} names no market; write its id, slug, key or address", param, ctx)
        return text


def _is_refused(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cs"} and not character.isspace()


class Amount(click.ParamType[int]):
    """A whole number, which may end in k, M or G."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number."""
        digits = str(value).rstrip("kKmMgG")
        unit = str(value)[len(digits) :].upper()
        if not digits.isascii() or not digits.isdigit() or unit not in _UNITS:
            self.fail(f"{value!r} is not an amount; write it like 250000, 250k or 10M", param, ctx)
        return int(digits) * _UNITS[unit]


as_of_option = click.option(
    "--as-of", type=Time(), default=None, metavar="TIME", help="Build as of this time instead of now."
)


def accepting(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option `--accept`, which takes these names of guards, and its aliases; `accepted` returns what they name."""
    listed = ", ".join(sorted(names))
    options = [
        click.option(
            "--accept", type=click.Choice(sorted(names)), multiple=True, default=(), metavar="NAME",
            help=f"Let the guard that the refusal names pass once; repeatable: {listed}.",
        ),
        *(
            click.option(f"--allow-{name}", is_flag=True, help=f"The same as --accept {name}.")
            for name in sorted(names) if name in _ALIASES
        ),
    ]  # fmt: skip

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def accepted(given: Mapping[str, Any]) -> frozenset[str]:
    """The guards that options let pass."""
    return frozenset(given["accept"]) | {name for name in _ALIASES if given.get(f"allow_{name.replace('-', '_')}")}


purge_retired_option = click.option(
    "--purge-retired", is_flag=True, help="Delete what is left of earlier states now: a text had to change."
)
host_option = click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 picks a free port."
)
full_option = click.option(
    "--full", is_flag=True, help="Read everything, whatever versions say, and compare every file."
)
