"""Which settings shape what is published: they are recorded with it, so that a takedown makes it again with them."""

from collections.abc import Mapping
from datetime import timedelta
from functools import reduce
from typing import Any, Final

from generator.config.settings import KEYS, Config
from generator.models import replaced

#: Settings, and sections of them, that do not affect what is published.
_NOT_PUBLISHED: Final = frozenset(
    {
        *("cluster", "cursor", "guards", "metrics", "output", "publish", "rate_limit.trusted_proxies"),
        *("schedule", "source"),
    }
)
#: The setting that a build decides by the database, unless it is given.
QUESTIONS: Final = "questions.enabled"
#: What stands for the database among settings by key.
SOURCE: Final = "source"


def shaping(config: Config) -> dict[str, Any]:
    """The settings that shape what is published, as JSON values by dotted key; `shaped` reads them.

    Whether there are questions is not among them where the database says so.
    """
    shaping = {key: _as_json(_value(config, key)) for key in KEYS if not _NOT_PUBLISHED & {key, key.partition(".")[0]}}
    if config.questions.enabled is None:
        del shaping[QUESTIONS]
    return shaping


def following(config: Config, settings: Mapping[str, Any]) -> Config:
    """The settings for what was built with such: whether that has questions, a build decided."""
    if config.questions.enabled is not None:
        return config
    return replaced(config, questions=replaced(config.questions, enabled=bool(settings.get(QUESTIONS))))


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
