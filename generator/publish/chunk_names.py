"""Chunk names in a large record: it leaves out what the indexes of its generations say, which nothing else can.

Generations whose index may be missing keep theirs, as differences from the current one of their list: those that were
begun, are to be deleted, or belong to publishers that were cut short.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from generator.api import keys
from generator.models import replaced
from generator.publish.record import DamagedShardError, Published
from generator.stores.requests import body_of
from generator.stores.store import Store
from generator.tree import generations
from generator.tree.manifest import Current, Manifest, Retired

Pair = tuple[str, str]
#: The chunk names of generations, by list and name.
Names = Mapping[Pair, tuple[str, ...]]
#: Reads the chunk names of the first generations, in order; None for one whose index is missing, if it is among the
#: second ones, whose index may be.
Read = Callable[[Sequence[Pair], Collection[Pair]], Iterable[tuple[str, ...] | None]]

#: The first and the last position of chunks that the current generation has, too. No name is like this: each has a
#: digest of 32 hexadecimal digits in it.
_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def packed(record: Published) -> Published:
    """The record with as few chunk names as it can have."""
    bases = {name: current.chunks for name, current in record.built.current.items()}

    def pack(list_name: str, entry: Current) -> tuple[str, ...]:
        return _pack(entry.chunks, bases.get(list_name, ()))

    built = record.built.with_chunks(lambda name, entry: pack(name, entry) if _is_partial(entry) else ())
    return replaced(_of_work(record, pack), built=built)


def unpacked(record: Published, read: Read, known: Names) -> Published:
    """The record with all chunk names: the `known` ones, and others that are `read` from indexes."""
    names = _left_out(record, read, known)
    current = record.built.current.items()
    bases = {name: names.get((name, entry.generation), ()) for name, entry in current}

    def unpack(list_name: str, entry: Current) -> tuple[str, ...]:
        return _unpack(entry.chunks, bases.get(list_name, ()))

    def completed(list_name: str, entry: Current) -> tuple[str, ...]:
        return unpack(list_name, entry) if _is_partial(entry) else names.get((list_name, entry.generation), ())

    return replaced(_of_work(record, unpack), built=record.built.with_chunks(completed))


def _is_partial(entry: Current) -> bool:
    return isinstance(entry, Retired) and entry.partial


def _left_out(record: Published, read: Read, known: Names) -> Names:
    """The names that the record leaves out: the `known` ones, and others that are `read` from indexes."""
    built = record.built
    current = {pair for pair, entry in built.current_generations().items() if generations.has_index(*pair)}
    retired = {entry.pair for entry in built.retired if not entry.partial and generations.has_index(*entry.pair)}
    # A late request of a publisher that was cut short may have deleted an index. It meant to delete these chunks, too.
    due = {entry.pair: entry for abandoned in record.abandoned for entry in abandoned.due}
    deleted = {pair: entry for pair, entry in due.items() if pair not in current}
    missing = sorted((current | retired) - known.keys())
    found = dict(zip(missing, read(missing, deleted.keys()), strict=True))
    names = {**known, **{pair: names for pair, names in found.items() if names is not None}}
    for pair in found.keys() - names.keys():
        base = built.current.get(pair[0])
        names[pair] = _unpack(deleted[pair].chunks, names.get((pair[0], base.generation), ()) if base else ())
    return names


def of_manifest(built: Manifest) -> Names:
    """The chunk names of every generation that a folder has."""
    return {pair: entry.chunks for pair, entry in built.generations().items()}


def of_index(store: Store, pair: Pair, *, may_be_gone: bool = False) -> tuple[str, ...] | None:
    """The chunk names in the index of a stored generation; None if that is missing and `may_be_gone`.

    Raise DamagedShardError if it is missing or altered: nothing else could find its chunks, to delete them with the
    withdrawn markets that they show.
    """
    key = keys.index(*pair)
    body = body_of(store, key)
    if body is None and may_be_gone:
        return None
    try:
        return generations.chunks_in(*pair, body or b"")
    except ValueError:
        raise DamagedShardError(store.name, key, is_missing=body is None) from None


def _of_work(record: Published, names: Callable[[str, Current], tuple[str, ...]]) -> Published:
    """The record with other chunk names in the generations that publishers put or delete."""

    def changed(entries: Iterable[Retired]) -> tuple[Retired, ...]:
        return tuple(entry.with_chunks(names(entry.list, entry)) for entry in entries)

    abandoned = tuple(
        replaced(entry, generations=changed(entry.generations), due=changed(entry.due)) for entry in record.abandoned
    )
    return replaced(record, due=changed(record.due), abandoned=abandoned)


def _pack(names: Sequence[str], base: Sequence[str]) -> tuple[str, ...]:
    """The names, with `first-last` for those that stand at these positions of the base."""
    places = {name: place for place, name in enumerate(base)}
    found: list[str | tuple[int, int]] = []
    for name in names:
        place = places.get(name)
        last = found[-1] if found else ""
        if place is None:
            found.append(name)
        elif isinstance(last, tuple) and last[1] + 1 == place:
            found[-1] = last[0], place
        else:
            found.append((place, place))
    return tuple(part if isinstance(part, str) else f"{part[0]}-{part[1]}" for part in found)


def _unpack(parts: Iterable[str], base: Sequence[str]) -> tuple[str, ...]:
    def names(part: str) -> Sequence[str]:
        found = _RANGE.fullmatch(part)
        return base[int(found[1]) : int(found[2]) + 1] if found else (part,)

    return tuple(name for part in parts for name in names(part))
