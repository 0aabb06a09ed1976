"""JSON as it is written: what objects and arrays hold, as text, so that answers are compared byte by byte."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic_core import to_json

_DECODER: Final = json.JSONDecoder()
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def write(value: Any) -> str:
    """A text, number, boolean or null, written as all objects are: compact, UTF-8, floats the shortest way."""
    return to_json(value).decode()


def read(text: str) -> Any:
    return json.loads(text)


def join(properties: Iterable[tuple[str, str]]) -> str:
    """An object of properties whose values are written already."""
    return "{" + ",".join(f"{write(name)}:{value}" for name, value in properties) + "}"


def array(elements: Iterable[str]) -> str:
    return "[" + ",".join(elements) + "]"


def properties(text: str) -> dict[str, str]:
    """The values of a compact object, each as it is written."""
    found, at = dict[str, str](), _expect(text, 0, "{")
    if text[at:] == "}":
        return found
    while True:
        name, end = _DECODER.raw_decode(text, at)
        start = _expect(text, end, ":")
        _, end = _DECODER.raw_decode(text, start)
        if name in found:
            raise ValueError(f"{name} stands twice in {text[:80]}")
        found[name] = text[start:end]
        if text[end:] == "}":
            return found
        at = _expect(text, end, ",")


def elements(text: str) -> list[str]:
    """The elements of a compact array, each as it is written."""
    found, at = list[str](), _expect(text, 0, "[")
    if text[at:] == "]":
        return found
    while True:
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        if text[end:] == "]":
            return found
        at = _expect(text, end, ",")


def _expect(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise ValueError(f"no {mark} at {at} of {text[:80]}")
    return at + 1
