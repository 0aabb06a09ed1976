"""Runs regular expressions as nginx does, with PCRE2, and counts the steps: items of the pattern that are tried."""

import ctypes
import re
from functools import cache
from typing import Any, Final

from tests.support.programs import unavailable

_LIBRARY: Final = "libpcre2-8.so.0"
#: Of pcre2.h: a callout before each item, and none of the short cuts that a pattern may happen to allow.
_AUTO_CALLOUT, _NO_START_OPTIMIZE = 0x00000004, 0x00010000
_CALLOUT: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_NO_MATCH: Final = -1
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


def steps(pattern: str, start: str, rest: str) -> int:
    """How many items of the pattern are tried on the text, from all its places together."""
    library, count = _library(), 0

    def count_step(_block: int, _data: int) -> int:
        nonlocal count
        count += 1
        return 0

    code, callout = _compiled(pattern), _CALLOUT(count_step)
    context = library.pcre2_match_context_create_8(None)
    matched = library.pcre2_match_data_create_from_pattern_8(code, None)
    library.pcre2_set_callout_8(context, callout, None)
    sent = f"{start}{rest}".encode()
    result = library.pcre2_match_8(code, sent, len(sent), 0, 0, matched, context)
    library.pcre2_match_data_free_8(matched)
    library.pcre2_match_context_free_8(context)
    assert result >= _NO_MATCH, f"{pattern}: PCRE2's error {result}"
    return count


@cache
def _compiled(pattern: str) -> Any:
    error, offset, written = ctypes.c_int(), ctypes.c_size_t(), pattern.encode()
    options = _AUTO_CALLOUT | _NO_START_OPTIMIZE
    found = _library().pcre2_compile_8(
        written, ctypes.c_size_t(len(written)), options, ctypes.byref(error), ctypes.byref(offset), None
    )
    assert found, f"{pattern}: PCRE2's error {error.value} at {offset.value}"
    return ctypes.c_void_p(found)


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        unavailable(f"{_LIBRARY} is not installed: the steps of nginx's patterns are not counted")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.pcre2_compile_8.restype = pointer
    library.pcre2_match_context_create_8.restype = pointer
    library.pcre2_match_data_create_from_pattern_8.restype = pointer
    library.pcre2_match_data_create_from_pattern_8.argtypes = [pointer, pointer]
    library.pcre2_set_callout_8.argtypes = [pointer, pointer, pointer]
    library.pcre2_match_8.argtypes = [pointer, ctypes.c_char_p, size, size, ctypes.c_uint32, pointer, pointer]
    library.pcre2_match_data_free_8.argtypes = [pointer]
    library.pcre2_match_context_free_8.argtypes = [pointer]
    return library
