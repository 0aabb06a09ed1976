"""Settings that earlier versions had: where the value says what holds now, it is ignored; another is refused."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from generator.config.scalars import Duration


class Gone(NamedTuple):
    """A setting that is gone: the type it had, the value that changes nothing, and what to know of any other."""

    type: Any
    value: object
    remedy: str


GONE: Final[Mapping[str, Gone]] = {
    "prices": Gone(Path | None, None, "costs are estimated by the built-in prices only"),
    "publish.cache_fill": Gone(
        Duration, timedelta(seconds=60), "a withdrawal always waits 60 s before the second CDN invalidation"
    ),
    "publish.lease": Gone(
        Duration, timedelta(minutes=5), "the lease of a silent publisher always keeps others out for 5 minutes"
    ),
    "texts.description": Gone(
        int, 100_000, "descriptions of up to 100,000 characters are published; leave out longer ones in a view"
    ),
    "texts.question": Gone(
        int, 2_000, "questions of up to 2,000 characters are published; leave out longer ones in a view"
    ),
}


def refusal(key: str, value: object) -> str | None:
    """Why a value of a setting that is gone is refused; None if it only says what holds anyway."""
    kind, holds, remedy = GONE[key]
    try:
        if TypeAdapter(kind).validate_python(value) == holds:
            return None
    except ValidationError:
        pass
    return f"this setting is gone, and {remedy}; remove it"
