"""The retired generations of a large record, in shards: those that were retired together share one. Pure.

A shard says what its generations are, the record's root when they were retired. So it stays the same until they are
due, and a publish puts one shard for what it retires, however many generations others have retired.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from generator.api import keys
from generator.models import replaced
from generator.tree import shards
from generator.tree.manifest import Retired

#: With fewer, they stay in the root of a record that has no other shards.
LEAST: Final = 1_000

#: Of generations whose time is not known yet.
_LATER: Final = "1970-01-01T00:00:00.000Z"

#: A list and a generation's name.
Pair: TypeAlias = tuple[str, str]
#: The generations of one shard, in order.
Together: TypeAlias = tuple[Retired, ...]


@dataclass(frozen=True)
class Group:
    """The generations of a shard, retired `at` this time."""

    at: str
    pairs: frozenset[Pair]


#: By the name of their shard.
Groups: TypeAlias = Mapping[str, Group]


def are_split(retired: int, *, are_already: bool, is_sharded: bool) -> bool:
    """Whether so many retired generations belong in shards; `is_sharded`: markets are in shards."""
    return is_sharded or retired >= (LEAST // 2 if are_already else LEAST)


def split(retired: Iterable[Retired], groups: Groups) -> tuple[dict[str, Group], list[Together]]:
    """The groups that remain as they are, perhaps with another time, and those that need a new shard.

    Generations that need more than the fields of such a shard are in neither.
    """
    names = {pair: name for name, group in groups.items() for pair in group.pairs}
    found: dict[tuple[str, str], list[Retired]] = {}
    for entry in retired:
        if not (entry.partial or entry.may_be_current or entry.withdrawn):
            found.setdefault((names.get(entry.pair, ""), entry.retired_at), []).append(entry)
    kept, new = dict[str, Group](), list[Together]()
    for (name, at), entries in found.items():
        if name and len(entries) == len(groups[name].pairs):
            kept[name] = Group(at, groups[name].pairs)
        else:
            new.append(_sorted(entries))
    return kept, new


def outside(retired: Iterable[Retired], groups: Groups) -> tuple[Retired, ...]:
    """The generations that are in no group."""
    inside = frozenset[Pair]().union(*(group.pairs for group in groups.values()))
    return tuple(entry for entry in retired if entry.pair not in inside)


def by_digest(retired: Iterable[Retired]) -> dict[str, Together]:
    """The generations that a folder retired together, by the digest that a shard of them has."""
    _, found = split(retired, {})
    return {shards.digest(encoded(together)): together for together in found}


def group(together: Together) -> Group:
    """The group of generations that were retired together."""
    return Group(together[0].retired_at, frozenset(entry.pair for entry in together))


def retired_at(together: Iterable[Retired], at: str) -> Together:
    """The generations with the time of their retirement."""
    return tuple(entry if entry.retired_at == at else replaced(entry, retired_at=at) for entry in together)


def encoded(together: Sequence[Retired]) -> bytes:
    """A line of JSON: equal generations give equal bytes, whenever they were retired and whatever their chunks."""
    rows = [[entry.list, entry.generation, entry.count, entry.bytes] for entry in together]
    return json.dumps(rows, separators=(",", ":")).encode()


def parsed(body: bytes, name: str) -> Together:
    """The generations of the shard of that name, without times and chunks; raise ValueError if it is another.

    Those of the former archive are left out.
    """
    line = body.rstrip(b"\n")
    if shards.digest(line) != name[: shards.DIGEST_LENGTH]:
        raise ValueError("other generations")
    return tuple(
        Retired(list=list_name, generation=generation, count=count, bytes=size, retired_at=_LATER)
        for list_name, generation, count, size in json.loads(line)
        if list_name != keys.ARCHIVE
    )


def _sorted(entries: Iterable[Retired]) -> Together:
    return tuple(sorted(entries, key=lambda entry: entry.pair))
