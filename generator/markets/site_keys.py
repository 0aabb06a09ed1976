"""Decides which keys of markets on the operator's site can be used: these make links, and name markets. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from generator.api.links import LONGEST_KEY, is_site_key
from generator.findings import Finding
from generator.markets.quarantine import printable

_NO_KEY: Final = f"not 1 to {LONGEST_KEY} characters, or blank, or with a control character"
_SHARED: Final = "another market has the same"


@dataclass(frozen=True)
class SiteKeys:
    """The usable keys, and what refuses others; both by id in lower case."""

    usable: Mapping[str, str]
    refused: Mapping[str, Finding]

    @classmethod
    def of(cls, rows: Iterable[tuple[Any, Any]]) -> "SiteKeys":
        """Check the keys of all public markets, given as pairs of id and key: a text, a whole number, or NULL.

        Two markets with one key have none: a link would lead to the other one, and so would a takedown.
        """
        given = {str(market_id).lower(): _text(key) for market_id, key in rows if key is not None and key != ""}
        owners = Counter(given.values())
        usable, refused = dict[str, str](), dict[str, Finding]()
        for market_id, key in given.items():
            if key is None or not is_site_key(key):
                refused[market_id] = Finding(column="key", text=_NO_KEY, value=printable(key or ""))
            elif owners[key] > 1:
                refused[market_id] = Finding(column="key", text=_SHARED, value=printable(key))
            else:
                usable[market_id] = key
        return cls(usable, refused)


#: Those of a database that has no such column.
NO_KEYS: Final = SiteKeys({}, {})


def _text(key: Any) -> str | None:
    """The key as text; None for what is neither a text nor a whole number. SQLite may hold any value in a column."""
    if isinstance(key, str):
        return key
    return str(key) if isinstance(key, int) else None
