"""The regular expressions in nginx's configuration, and how many steps they may take."""

import re
from typing import Final

#: How nginx writes a string.
_STRING: Final = r'"((?:[^"\\]|\\.)*)"'
_LOCATION: Final = re.compile(rf"^\s*location ~\*? {_STRING} \{{$", re.MULTILINE)
_MAP: Final = re.compile(r"^\s*map (.*?) \$\w+ \{$(.*?)^\s*\}$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r'^\s*"~\*?((?:[^"\\]|\\.)*)" ', re.MULTILINE)
#: `*`, `+` and `{n,}` behind anything but a backslash, outside sets of characters.
_UNBOUNDED: Final = re.compile(r"[*+]|\{\d+,\}")
_SET_OR_ESCAPE: Final = re.compile(r"\\.|\[(?:[^\]\\]|\\.)+\]")


def of_configuration(text: str) -> list[str]:
    """The patterns that nginx tries on what readers send: those of locations, and of maps of the request's target."""
    maps = [entries for source, entries in _MAP.findall(text) if "$request_uri" in source]
    found = _LOCATION.findall(text) + [entry for entries in maps for entry in _ENTRY.findall(entries)]
    return [re.sub(r'\\(["\\])', r"\1", one) for one in found]


def unbounded_parts(pattern: str) -> int:
    """How many parts of the pattern match any number of characters."""
    return len(_UNBOUNDED.findall(_SET_OR_ESCAPE.sub("x", pattern)))
