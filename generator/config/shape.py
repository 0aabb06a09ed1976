"""Which settings shape what is published: they are recorded with it, so that a takedown makes it again with them."""

from collections.abc import Mapping
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any, Final

from generator.config.settings import DEMO_DATABASE, KEYS, Config, variable
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


#: Settings, and sections of them, that do not affect what is published.
_NOT_PUBLISHED: Final = frozenset(
    {
        *("cluster", "cursor", "guards", "metrics", "output", "prices", "publish", "rate_limit.trusted_proxies"),
        *("schedule", "source"),
    }
)
#: What stands for the database among settings by key.
SOURCE: Final = "source"


def shaping(config: Config) -> dict[str, Any]:
    """The settings that shape what is published, as JSON values by dotted key; `shaped` reads them."""
    return {key: _as_json(_value(config, key)) for key in KEYS if not _NOT_PUBLISHED & {key, key.partition(".")[0]}}


def shaped(settings: Mapping[str, Any]) -> Config:
    """The settings that `shaping` gave, all others at their defaults; raise ValueError if they are not of this form.

    Another version gave those that it knew; what this one does not know is left out.
    """
    given: dict[str, Any] = {}
    for key in KEYS.keys() & settings.keys():
        *sections, name = key.split(".")
        reduce(lambda within, section: within.setdefault(section, {}), sections, given)[name] = settings[key]
    return Config.model_validate(given)


def _value(config: Config, key: str) -> object:
    return reduce(getattr, key.split("."), config)


def _as_json(value: object) -> object:
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    return list(value) if isinstance(value, tuple) else value
