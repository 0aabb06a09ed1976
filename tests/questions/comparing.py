"""How what was found differs from what was expected, as sentences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.questions import raw_json


@dataclass
class Checked:
    """What was found, and how much was looked at, so that a check cannot pass without checking."""

    differences: list[str] = field(default_factory=list)
    lists: int = 0
    rows: int = 0
    details: int = 0
    missing: int = 0
    refused: int = 0
    definitions: int = 0


def unequal_rows(found: Sequence[str], expected: Sequence[str]) -> Iterator[str]:
    ids = [[str(json.loads(row)["id"]) for row in rows] for rows in (found, expected)]
    if sorted(ids[0]) != sorted(ids[1]):
        many, few = (sorted({*one} - {*other}) for one, other in ((ids[0], ids[1]), (ids[1], ids[0])))
        twice = sorted({name for name in ids[0] if ids[0].count(name) > 1})
        yield f"has rows that do not belong there {many}, lacks {few}, has twice {twice}"
    elif ids[0] != ids[1]:
        at = next(at for at, pair in enumerate(zip(*ids, strict=True)) if pair[0] != pair[1])
        yield f"row {at} is {ids[0][at]}, not {ids[1][at]}"
    by_id = dict(zip(ids[1], expected, strict=True))
    for name, row in zip(ids[0], found, strict=True):
        if name in by_id:
            yield from (f"row {name}: {one}" for one in unequal(row, by_id[name]))


def unequal(found: str, expected: str) -> Iterator[str]:
    """How an object differs from another, by its properties."""
    if found == expected:
        return
    one, other = raw_json.properties(found), raw_json.properties(expected)
    if [*one] != [*other]:
        yield f"has the properties {[*one]}, not {[*other]}"
    for name in one.keys() & other.keys():
        if one[name] == other[name]:
            continue
        if one[name].startswith("{") and other[name].startswith("{"):
            yield from (f"{name}: {sentence}" for sentence in unequal(one[name], other[name]))
        else:
            yield f"{name} is {one[name][:500]}, not {other[name][:500]}"


def unequal_details(found: str, expected: str) -> Iterator[str]:
    if found == expected:
        return
    one, other = raw_json.properties(found), raw_json.properties(expected)
    if [*one] != [*other]:
        yield f"has the properties {[*one]}, not {[*other]}"
        return
    yield from (f"question: {sentence}" for sentence in unequal(one["question"], other["question"]))
    members, wanted = raw_json.elements(one["markets"]), raw_json.elements(other["markets"])
    if len(members) != len(wanted):
        yield f"has {len(members)} members, not {len(wanted)}"
    for at, pair in enumerate(zip(members, wanted, strict=False)):
        yield from (f"member {at}: {sentence}" for sentence in unequal(*pair))


def unequal_headers(
    about: str, found: Mapping[str, str], expected: Mapping[str, str], *, has_more: bool
) -> Iterator[str]:
    own = {"content-length", "etag", "last-modified", "date", "link", "age", "x-cache", "cf-cache-status"}
    for name in sorted((found.keys() | expected.keys()) - own):
        if found.get(name) != expected.get(name):
            yield f"{about} has {name}: {found.get(name)}, a market's answer {expected.get(name)}"
    if ("etag" in found) != ("etag" in expected):
        yield f"{about} has etag: {found.get('etag')}, a market's answer {expected.get('etag')}"
    if "link" in found and not has_more:
        yield f"{about} has a link to a next page, but there is none"
