"""What a large manifest says of markets, objects and generations: one compressed file of columns. Pure.

A store has it as an object beside the record's root, with the ETags of the objects, an output folder as a file beside
its manifest. Small manifests have none: they say everything themselves.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final

from pydantic_core import from_json, to_json

from generator.api import keys
from generator.models import replaced
from generator.tree.manifest import Current, Manifest, Retired

#: Manifests of fewer markets, and of fewer retired generations, say everything themselves.
LEAST: Final = 1_000
#: Hexadecimal digits of a digest in a name.
_DIGEST_LENGTH: Final = 24
#: The name of a state in a folder is its digest; in a store, a number that no other has comes before it.
_NAME: Final = re.compile(rf"([0-9]{{1,15}}-)?[0-9a-f]{{{_DIGEST_LENGTH}}}", re.ASCII)
#: The quickest: a higher level saves a tenth of the bytes and takes three times as long.
_LEVEL: Final = 1
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
#: The objects that are no part of a state.
OUTSIDE: Final = frozenset({keys.BUILD})
#: What the columns of generations say of those that walks may be in.
_FLAGS: Final = ("withdrawn", "partial", "may_be_current")

#: What reading another version's state may raise.
UNREADABLE: Final = (ValueError, TypeError, LookupError, zlib.error)


def is_large(built: Manifest) -> bool:
    """Whether a manifest has a state."""
    return max(len(built.markets), len(built.retired)) >= LEAST


def digest(body: bytes) -> str:
    """The digest of a state's bytes, as its name has it."""
    return hashlib.sha256(body).hexdigest()[:_DIGEST_LENGTH]


def is_name(text: str) -> bool:
    """Whether a state could have this name."""
    return _NAME.fullmatch(text) is not None


def is_intact(name: str, body: bytes | None) -> bool:
    """Whether these bytes are those of the name."""
    return body is not None and digest(body) == name.rpartition("-")[2]


def header(built: Manifest, name: str, retirements: tuple[str, ...]) -> Manifest:
    """The manifest without what the state of that name says; `retirements` are the times that the state left out.

    `build.json`, which every build replaces, is no part of the state, and neither are times: most builds change no
    state, and those that do know only in the end when they retired what they replaced.
    """
    return replaced(
        built, objects={key: built.objects[key] for key in OUTSIDE & built.objects.keys()}, markets={}, slugs={},
        site_keys={}, members={}, retired=(), state=name, retirements=retirements,
        market_count=len(built.ids()),
        current={family: current.with_chunks(()) for family, current in built.current.items()},
    )  # fmt: skip


def is_same(one: Manifest, other: Manifest) -> bool:
    """Whether both have the same state."""
    fields = ("current", "retired", "markets", "slugs", "site_keys", "members")
    return all(getattr(one, field) == getattr(other, field) for field in fields) and (
        without_build(one.objects) == without_build(other.objects)
    )


def without_build(of_objects: Mapping[str, str]) -> dict[str, str]:
    """What is said of all objects but `build.json`."""
    return {key: value for key, value in of_objects.items() if key not in OUTSIDE}


def retirements(built: Manifest) -> tuple[str, ...]:
    """When generations were retired, in the order in which the state of this manifest counts."""
    return tuple(dict.fromkeys(entry.retired_at for entry in built.retired))


def encoded(built: Manifest, etags: Mapping[str, str] | None = None) -> bytes:
    """The state of a manifest and, in a store, the ETags of the objects: equal ones give equal bytes."""
    ids, questions = _by_kind(built.markets.keys() | built.slugs.keys())
    digits = _Digits()
    columns: dict[str, Any] = {"ids": _of_ids(ids, digits)}
    if questions:
        columns["questions"] = _of_ids([one.removeprefix(keys.OF_QUESTIONS) for one in questions], digits)
        ids += questions
    columns |= {
        **_markets(built, ids),
        "objects": _of_objects(built.objects, ids, digits),
        "generations": dict(_generations(built, digits)),
    }
    if built.members:
        places = {market_id: place for place, market_id in enumerate(ids)}
        columns["members"] = {key: [places[one] for one in found] for key, found in built.members.items()}
    if etags is not None:
        columns["etags"] = _of_objects(etags, ids, digits)
    return zlib.compress(to_json(columns), _LEVEL) + b"".join(digits.columns)


def decoded(
    root: Manifest, body: bytes, *, is_light: bool = False, is_intended: bool = False
) -> tuple[Manifest, dict[str, str]]:
    """The manifest with this header and state, and the ETags; raise one of `UNREADABLE` if it is of another version.

    `is_light` leaves out the digests of details by id, and `is_intended` the retired generations, whose times are not
    among those of the header.
    """
    stream = zlib.decompressobj()
    columns, digits = from_json(stream.decompress(body), cache_strings="all"), _Digits([stream.unused_data])
    ids = _read_ids(columns["ids"], digits)
    if "questions" in columns:
        ids += map(keys.question_reference, _read_ids(columns["questions"], digits))
    memberships = map(
        [None if kind is None else tuple(kind) for kind in columns["kinds"]].__getitem__, columns["memberships"]
    )
    objects = _read_objects(columns["objects"], ids, digits)
    current, retired = _read_generations(columns["generations"], digits, None if is_intended else root.retirements)
    etags = _read_objects(columns["etags"], ids, digits) if "etags" in columns else {}
    if is_light:
        objects = {key: digest for key, digest in objects.items() if not key.startswith(keys.DETAILS)}
    built = replaced(
        root,
        objects=dict(sorted({**objects, **root.objects}.items())),
        markets={market_id: kind for market_id, kind in zip(ids, memberships, strict=True) if kind is not None},
        slugs={market_id: tuple(found) for market_id, found in columns["slugs"].items()},
        site_keys=columns["siteKeys"],
        members={key: tuple(map(ids.__getitem__, found)) for key, found in columns.get("members", {}).items()},
        current=current,
        retired=retired,
        state="",
        retirements=(),
        market_count=0,
    )
    return built, etags


class _Digits:
    """Columns of hexadecimal digits, as bytes beside the JSON, which no compression could make fewer."""

    def __init__(self, columns: Iterable[bytes] = ()) -> None:
        self.columns = [*columns]
        self._at = 0

    def added(self, texts: Sequence[str | None]) -> Mapping[str, int] | Sequence[str | None]:
        """The shape of the column; the texts themselves if they are of another kind. None is all zeros."""
        size = next((len(text) for text in texts if text is not None), 0)
        nothing = "0" * size
        if size and nothing not in texts:
            joined = "".join(nothing if text is None else text for text in texts)
            with suppress(ValueError):
                column = bytes.fromhex(joined)
                if column.hex() == joined and all(text is None or len(text) == size for text in texts):
                    self.columns.append(column)
                    return {"count": len(texts), "size": size}
        return texts

    def taken(self, column: Mapping[str, int] | Sequence[str | None]) -> Sequence[Any]:
        """The texts of the next column."""
        if not isinstance(column, Mapping):
            return column
        size, length = column["size"], column["size"] * column["count"]
        digits = self.columns[0][self._at : self._at + length // 2].hex()
        if len(digits) != length:
            raise ValueError("a column is missing")
        self._at += length // 2
        nothing = "0" * size
        found = (digits[place : place + size] for place in range(0, length, size))
        return [None if text == nothing else text for text in found]


def _by_kind(references: Iterable[str]) -> tuple[list[str], list[str]]:
    """The ids of markets, and the references of questions, both sorted."""
    ordered = sorted(references)
    questions = [*filter(keys.is_question_reference, ordered)]
    return ([one for one in ordered if not keys.is_question_reference(one)] if questions else ordered), questions


def _of_ids(ids: Sequence[str], digits: _Digits) -> Mapping[str, int] | Sequence[str | None]:
    return digits.added([one.replace("-", "") for one in ids]) if all(map(_ID.fullmatch, ids)) else ids


def _read_ids(column: Mapping[str, int] | Sequence[str], digits: _Digits) -> list[str]:
    if not isinstance(column, Mapping):
        return [*column]
    texts = digits.taken(column)
    return ["-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])) for text in texts]


def _markets(built: Manifest, ids: Sequence[str]) -> dict[str, Any]:
    memberships = [*map(built.markets.get, ids)]
    kinds = {kind: place for place, kind in enumerate(dict.fromkeys(memberships))}
    places = [kinds[kind] for kind in memberships]
    return {"kinds": [*kinds], "memberships": places, "slugs": built.slugs, "siteKeys": built.site_keys}


def _of_objects(of_objects: Mapping[str, str], ids: Iterable[str], digits: _Digits) -> dict[str, Any]:
    """What is said of objects by key: a column for the details by id, and two for the others."""
    details = [*map(keys.detail, ids)]
    others = sorted(of_objects.keys() - set(details) - OUTSIDE)
    return {
        "details": digits.added([*map(of_objects.get, details)]),
        "keys": others,
        "others": digits.added([of_objects[key] for key in others]),
    }


def _read_objects(columns: Mapping[str, Any], ids: Iterable[str], digits: _Digits) -> dict[str, str]:
    details = zip(map(keys.detail, ids), digits.taken(columns["details"]), strict=True)
    found = {key: value for key, value in details if value is not None}
    found.update(zip(columns["keys"], digits.taken(columns["others"]), strict=True))
    return found


# Generations. Those of a list share most of their chunks, so each is told by ranges of all chunk names of the list.


def _generations(built: Manifest, digits: _Digits) -> Iterator[tuple[str, list[Any]]]:
    """By family: the names of all chunks, the current generation, and the retired ones."""
    times = {time: place for place, time in enumerate(retirements(built))}
    retired: dict[str, list[Retired]] = {}
    for entry in built.retired:
        retired.setdefault(entry.list, []).append(entry)
    for name in sorted(built.current.keys() | retired.keys()):
        current, entries = built.current.get(name), retired.get(name, [])
        of_each = [entry.chunks for entry in (*filter(None, [current]), *entries)]
        places = {chunk: place for place, chunk in enumerate(dict.fromkeys(chain.from_iterable(of_each)))}
        rows = [
            [*_row(entry, places), times[entry.retired_at], [flag for flag in _FLAGS if getattr(entry, flag)]]
            for entry in entries
        ]
        yield name, [digits.added([*places]), _row(current, places) if current else None, rows]


def _row(entry: Current, places: Mapping[str, int]) -> list[Any]:
    """A generation; of its chunks, the first place and the number of names of each range, one after the other."""
    ranges: list[int] = []
    for place in map(places.__getitem__, entry.chunks):
        if ranges and ranges[-2] + ranges[-1] == place:
            ranges[-1] += 1
        else:
            ranges += (place, 1)
    return [entry.generation, entry.count, entry.bytes, ranges]


def _read_generations(
    families: Mapping[str, Sequence[Any]], digits: _Digits, times: Sequence[str] | None
) -> tuple[dict[str, Current], tuple[Retired, ...]]:
    current, retired = dict[str, Current](), list[Retired]()
    for name, (column, of_current, rows) in families.items():
        names = digits.taken(column)
        if of_current:
            current[name] = Current.model_construct(**_entry(of_current, names))
        if times is None:
            continue
        for *row, time, flags in rows:
            said = dict.fromkeys(_FLAGS, False) | dict.fromkeys(flags, True)
            retired.append(Retired.model_construct(list=name, retired_at=times[time], **_entry(row, names), **said))
    return current, tuple(retired)


def _entry(row: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    generation, count, size, ranges = row
    pairs = zip(ranges[::2], ranges[1::2], strict=True)
    chunks = tuple(name for first, number in pairs for name in names[first : first + number])
    return {"generation": generation, "count": count, "bytes": size, "chunks": chunks}
