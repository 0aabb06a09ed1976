"""One market as a line of a dump: compact JSON, whose numbers and texts stay exactly as they are written. Pure."""

import re
from collections.abc import Iterable
from typing import Final

#: The name of the property that every line begins with.
ID: Final = b'"id"'
_START: Final = b"{" + ID + b':"'
_ID_LENGTH: Final = 36
_ID: Final = slice(len(_START), len(_START) + _ID_LENGTH)
#: Where what lists show ends: JSON escapes quotation marks within texts, so no text has this in it.
_REST: Final = b',"description":'
_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_WORD: Final = rb'[^",:{}\[\]]++'
#: An array or an object that contains no others: the contract knows no deeper ones in a market.
_NESTED: Final = rb"[\[{](?:" + _TEXT + rb'|[^"{}\[\]]++)*+[\]}]'
_PROPERTY: Final = re.compile(rb"(" + _TEXT + rb"):(" + _WORD + rb"|" + _TEXT + rb"|" + _NESTED + rb")")


def id_of(line: bytes) -> str:
    """The id of a market, which is its first property; raise ValueError if the line is no market."""
    if not line.startswith(_START):
        raise ValueError("a line does not begin with the id of a market")
    return line[_ID].decode()


def item_of(line: bytes) -> bytes:
    """What lists show of a market, as they show it: its line begins with that. Not if the line is no market's."""
    return line.partition(_REST)[0] + b"}"


def properties(line: bytes) -> dict[bytes, bytes]:
    """The JSON texts of names and values, in order; raise ValueError unless the line is a compact object."""
    found = dict(_PROPERTY.findall(line))
    if line != of(found.items()):
        raise ValueError("not a compact JSON object")
    return found


def of(properties: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The line with these properties."""
    return b"{" + b",".join(map(b":".join, properties)) + b"}"
