"""What settings are made of: sections, lists of texts, and values such as addresses, files, durations and commands."""

import re
import shlex
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from generator.config import networks

_QUOTES: Final = "\"'"


def _listed(value: object) -> object:
    """Split text at commas: a list in an environment variable. As in YAML, it may have brackets and quotes."""
    if not isinstance(value, str):
        return value
    text = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return [_unquoted(item.strip()) for item in text.split(",")] if text.strip() else []


def _unquoted(item: str) -> str:
    is_quoted = len(item) > 1 and item[0] == item[-1] and item[0] in _QUOTES
    return item[1:-1] if is_quoted else item


def _categories(names: list[str]) -> list[str]:
    if not all(name and name.isprintable() for name in names) or len({*names}) < len(names):
        raise ValueError("name each category once, in printable text, as a list or separated by commas")
    if len({name.casefold() for name in names}) < len(names):
        raise ValueError("name each category once: names that differ only in case are the same category")
    return names


Categories = Annotated[
    list[str],
    BeforeValidator(_listed),
    AfterValidator(_categories),
    WithJsonSchema({"type": ["array", "string"], "items": {"type": "string", "minLength": 1}, "uniqueItems": True}),
]
Networks = Annotated[
    list[str],
    BeforeValidator(_listed),
    AfterValidator(networks.checked),
    WithJsonSchema({"type": ["array", "string"], "items": {"type": "string", "minLength": 1}}),
]


class Section(BaseModel):
    """Base of all settings: no unknown keys, no coercion, immutable, and no values in errors."""

    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


_ISO_DURATION: Final = r"P(?=[0-9T])([0-9]{1,9}D)?(T(?=[0-9])([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}S)?)?"
_DURATION: Final = re.compile(rf"^([0-9]{{1,9}} *(s|min|m|h|d)|{_ISO_DURATION})$")
#: A name or an address, and a path without the characters that no URL may hold (RFC 3986); letters of any script.
_HOST: Final = re.compile(r"[\w.:-]+")
_URL_PATH: Final = re.compile(r'[^"<>^`{|}]*')
#: The hosts that are this machine.
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def one_line(text: str) -> str:
    """The text; raise ValueError if it is empty, or not one line of printable text."""
    if not text or not text.isprintable():
        raise ValueError("write one line of printable text")
    return text


def web_url(text: str) -> str:
    """The address without a slash at its end; raise ValueError if it is none of the web, or holds more than a path."""
    with suppress(ValueError):  # urlsplit: bad brackets or port
        url = urlsplit(one_line(text))
        is_bare = url.username is None and url.port != 0 and not set(text) & set("?# \\")
        is_clean = _HOST.fullmatch(url.hostname or "") and _URL_PATH.fullmatch(url.path)
        if is_bare and is_clean and url.scheme in ("http", "https"):
            return text.rstrip("/")
    raise ValueError("write an http:// or https:// address without user, query and fragment")


def _duration(value: object) -> timedelta:
    """Parse whole seconds, `6 h`, `90 min` or ISO 8601 such as `PT6H`."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str) and _DURATION.fullmatch(value):
        parts = re.findall(r"([0-9]+) *(min|[smhd])", value.lower())
        value = sum(int(count) * _SECONDS[unit] for count, unit in parts)
    if type(value) is int and abs(value) < 10**9:  # excludes True; larger values overflow timedelta
        return timedelta(seconds=value)
    raise ValueError("write a duration: a number of seconds, or like 45 s, 90 min, 6 h, 2 d, PT6H")


def _command(value: object) -> object:
    """Parse a list of arguments, or a command line as a shell would split it."""
    with suppress(ValueError):  # shlex: unclosed quotation mark
        words = shlex.split(value) if isinstance(value, str) else value
        if isinstance(words, list | tuple) and words and all(isinstance(word, str) for word in words):
            return tuple(one_line(word) for word in words)
    raise ValueError("write the program and its arguments as a list of texts")


def _path(value: object) -> object:
    return Path(one_line(value)) if isinstance(value, str) else value


Line = Annotated[str, AfterValidator(one_line)]
File = Annotated[Path, BeforeValidator(_path)]
WebUrl = Annotated[str, AfterValidator(web_url), WithJsonSchema({"type": "string", "pattern": "^https?://"})]
_DURATION_SCHEMA = WithJsonSchema({"type": ["integer", "string"], "pattern": _DURATION.pattern})
Duration = Annotated[timedelta, BeforeValidator(_duration), _DURATION_SCHEMA]
_COMMAND_SCHEMA = WithJsonSchema(
    {"type": ["array", "string"], "items": {"type": "string"}, "minItems": 1, "minLength": 1}
)
Command = Annotated[tuple[str, ...], BeforeValidator(_command), _COMMAND_SCHEMA]
Share = Annotated[float, Field(ge=0, le=1)]
