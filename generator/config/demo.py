"""The demo: how a database of made-up markets is marked, and the guard against publishing it by accident."""

from pathlib import Path
from typing import Final

from generator.config.settings import DEMO_DATABASE, Config, variable
from generator.errors import GuardError

#: The `application_id` that `public-markets demo` gives its SQLite file: "PMdm" in ASCII.
APPLICATION_ID: Final = 0x504D646D
#: Where it stands in the file.
_MARK: Final = slice(68, 72)


def is_here() -> bool:
    """Whether the current folder has the database that `public-markets demo` makes unless settings name another."""
    try:
        with Path(DEMO_DATABASE.removeprefix("sqlite:///")).open("rb") as file:
            return file.read(_MARK.stop)[_MARK] == APPLICATION_ID.to_bytes(4)
    except OSError:
        return False


def refuse(config: Config, *, is_marked: bool) -> None:
    """Raise GuardError if the database is marked as a demo, or if `source.url` is not set."""
    if config.source.is_default:
        reason = "source.url is not set, and its default is the demo database"
    elif is_marked:
        reason = "source.url names a demo database"
    else:
        return
    raise GuardError(
        f"{reason}: its markets are made up; set {variable('source.url')} to your database and build again, or pass "
        "--accept demo"
    )
