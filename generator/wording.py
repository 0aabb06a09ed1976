"""Numbers and durations in sentences, `1 market`, `6 hours`, and texts of others. Pure."""

import re
from datetime import timedelta


def counted(count: float, noun: str, style: str = "") -> str:
    """The number and its noun, in the plural unless the number reads `1`; `style` formats it, such as `,` or `.0f`."""
    number = format(count, style)
    return f"{number} {noun if number == '1' else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a noun that takes an s, `es` after ch, or `ies` for a y after a consonant."""
    if noun.endswith("ch"):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{noun}s"


def span(length: timedelta) -> str:
    """The duration in the largest unit without a fraction: `6 hours`, `90 seconds`."""
    seconds = int(length.total_seconds())
    units = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))
    name, size = next(unit for unit in units if seconds % unit[1] == 0)
    return counted(seconds // size, name)


def distance(minutes: float) -> str:
    """How far a moment is, if that many minutes have passed since: `119 minutes ago`, `2 hours ago`, `2 days from now`.

    The script of status.html has the same words.
    """
    length = abs(minutes)
    parts = ((length, "minute", 120), (length / 60, "hour", 48), (length / 1440, "day", float("inf")))
    number, unit = next((int(n + 0.5), unit) for n, unit, most in parts if int(n + 0.5) < most)
    return f"{counted(number, unit)} {'from now' if minutes < 0 else 'ago'}"


def are(count: int) -> str:
    """The verb that goes with a number of things."""
    return "is" if count == 1 else "are"


def escaped(text: str) -> str:
    """A text of others for people: what a terminal would not show, or would obey, is escaped."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
