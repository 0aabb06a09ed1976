"""The table of requests that the contract, or habit, has an answer to, which any deployment is sent.

It is data, in requests/: core.json, and extended.json with what the extended variant makes of other requests. Rows come
in blocks, each of a kind. What is asked in one of the kind `contract` the contract answers; in one of the kind `habit`
it is silent, and other servers may answer otherwise. Tests run all of them on every edge, and many more of their own.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from generator.api.contract import Variant

_Member = TypeVar("_Member")

_FOLDER: Final = Path(__file__).with_name("requests")
#: Who must answer the rows of a block so: any deployment, this program's sites, or its router alone.
BlockKind = Literal["contract", "habit", "router"]
#: A request, the status of its answer, and what else is known of that.
RequestRow = Mapping[str, Any]


class RequestBlock(NamedTuple):
    """Rows about one thing."""

    about: str
    kind: BlockKind
    rows: list[RequestRow]


def blocks(variant: Variant, folder: Path = _FOLDER) -> list[RequestBlock]:
    """The table of this name. That of the extended variant has only what differs from the core's, or is added."""
    found = list[RequestBlock]()
    for row in json.loads((folder / f"{variant}.json").read_text("utf-8")):
        if "about" in row:
            found.append(RequestBlock(row["about"], row.get("kind", "router"), []))
        else:
            found[-1].rows.append(row)
    return found


def for_any_deployment(variant: Variant | None) -> list[RequestBlock]:
    """The blocks that any deployment is asked. Where nobody knows the variant, what either must answer so."""
    return [*blocks("core"), *(blocks("extended") if variant == "extended" else ())]


def spread(rows: list[_Member], most: int) -> list[_Member]:
    """At most so many, the first and the last among them, equally far from each other."""
    if len(rows) <= most:
        return rows
    return [rows[round(number * (len(rows) - 1) / (most - 1))] for number in range(most)]


def fill(text: str, meanings: Mapping[str, Callable[..., str]]) -> str:
    """The text with every placeholder, such as `<<repeat 3 a>>`, replaced by what its name means for its words.

    Raises KeyError for a name that has no meaning.
    """
    before, opening, rest = text.partition("<<")
    if not opening:
        return text
    placeholder, _, after = rest.partition(">>")
    name, *words = placeholder.split(" ")
    return before + meanings[name](*words) + fill(after, meanings)


def repeat(count: str, text: str) -> str:
    """What the placeholder `repeat` means."""
    return int(count) * text


def market_meanings(market_id: str) -> Mapping[str, Callable[..., str]]:
    """What placeholders mean that stand for a market's id, in three spellings; and `repeat`."""
    return {
        "market": lambda: market_id,
        "MARKET": market_id.upper,
        "Market": market_id.title,
        "repeat": repeat,
    }
