"""Encodes the items of lists column by column: the same bytes as one by one, in a tenth of the time. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

from generator.api import contract
from generator.api.contract import PublicMarketListItem

#: The names of all fields on the wire. The last ones are left out where they are None.
_NAMES: Final = {name: field.alias or name for name, field in PublicMarketListItem.model_fields.items()}
_IF_PRESENT: Final = ("slug", "category", "categories")
_ALWAYS: Final = tuple(name for name in _NAMES if name not in _IF_PRESENT)
#: Of the other fields, those whose values may contain a comma.
_TEXTS: Final = ("question",)
_ITEM: Final = (
    "{" + ",".join(f'"{_NAMES[name]}":' + ('"%b"' if name in _TEXTS else "%b") for name in _ALWAYS) + "%b}"
).encode()


def encoded(values: Mapping[str, Sequence[Any]]) -> list[bytes]:
    """The items of one or more valid markets, whose values are given by field."""
    columns = [_between_quotes(values[name]) if name in _TEXTS else _plain(values[name]) for name in _ALWAYS]
    return [_ITEM % row for row in zip(*columns, _ends(values), strict=False)]


def _plain(values: Sequence[Any]) -> list[bytes]:
    return contract.encode(values)[1:-1].split(b",")


def _between_quotes(texts: Sequence[str]) -> list[bytes]:
    # JSON escapes quotation marks within texts, so these three characters occur only between texts.
    return contract.encode(texts)[2:-2].split(b'","')


def _ends(values: Mapping[str, Sequence[Any]]) -> Iterable[bytes]:
    """The fields that are not in every item."""
    if all(value is None for name in _IF_PRESENT for value in values[name]):
        return repeat(b"")
    return [
        b"".join(
            b',"%b":%b' % (_NAMES[name].encode(), contract.encode(value))
            for name, value in zip(_IF_PRESENT, row, strict=True)
            if value is not None
        )
        for row in zip(*(values[name] for name in _IF_PRESENT), strict=True)
    ]
