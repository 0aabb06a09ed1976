"""Compares the store with its record, by a listing: streamed, so memory does not grow with what is listed.

A listing tells the ETags of mutable objects and the sizes of immutable ones. Only `--verify` also reads bodies; nothing
here sees altered headers.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from threading import Lock
from typing import Final, NamedTuple, Self, TypeAlias
from zlib import crc32

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.api.forms import instant
from generator.errors import StoreError
from generator.publish.lease import Lease
from generator.publish.plan import Doubts
from generator.publish.record import IN_FLIGHT, Published
from generator.stores.requests import body_of, etags_of, listed, parallel_map
from generator.stores.store import MOST_LISTED, Listed, Store, nothing
from generator.tree import generations
from generator.tree.folder import Output
from generator.tree.generations import object_keys
from generator.tree.manifest import Current, Retired
from generator.wording import counted

#: What is published.
EVERYTHING: Final = (f"{API_VERSION}/",)
_DETAILS: Final = (f"{keys.DETAILS}/", f"{keys.SLUGS}/")
_QUESTIONS: Final = (f"{keys.QUESTION_DETAILS}/", f"{keys.QUESTION_SLUGS}/")
#: The most requests in which a run in doubt lists everything.
MOST_LISTS: Final = 1_000
#: Of a larger site, a run lists one part in so many, by the minute.
_TURNS: Final = 12
_MINUTES: Final = 60
_KEY: Final = attrgetter("key")

_Pair: TypeAlias = tuple[str, str]


class _Wanted(NamedTuple):
    """What may be stored: a mutable object that must have this ETag, an immutable one that must be there, or neither.

    `pair` is its generation, unless several may share it.
    """

    key: str
    etag: str | None = None
    must_be: bool = False
    pair: _Pair | None = None


#: What is wanted, and what was found under the same key.
_Row: TypeAlias = tuple[_Wanted | None, Listed | None]


def parts(published: Published, now: str) -> tuple[str, ...]:
    """The prefixes that a run in doubt lists: everything, unless the site is large and others will come to the rest.

    Then these are the details and the lists that were being written, and some of the others by turns. The first run
    after the doubt lists everything.
    """
    built = published.built
    objects = len(published.etags) + generations.total(built.generations())
    is_over = bool(published.doubted_until) and now > published.doubted_until
    if is_over or objects <= MOST_LISTS * MOST_LISTED:
        return EVERYTHING
    turn = int(now[14:16]) * _TURNS // _MINUTES
    written = {entry.list for entry in built.retired if entry.partial}
    families = {name for name, _ in built.generations()}
    chosen = written | {name for name in families if crc32(name.encode()) % _TURNS == turn}
    details = (*_DETAILS, *_QUESTIONS) if built.questions() else _DETAILS
    return tuple(sorted({*details, *(f"{keys.list_prefix(name)}/" for name in chosen)}))


@dataclass(frozen=True)
class Audit:
    """A comparison of the `prefixes` of a store with its record, and with the generations `built` to be published next.

    If there is a `folder`, immutable objects are compared with its files. `before_each` is called now and then.
    """

    store: Store
    published: Published
    built: Mapping[_Pair, Current]
    prefixes: tuple[str, ...] = EVERYTHING
    folder: Output | None = None
    before_each: Callable[[], object] = nothing

    def doubts(self) -> Doubts:
        """Find what differs from the record: altered, missing and unknown objects, damaged generations."""
        doubted, missing, is_shown = set[str](), set[str](), False
        sizes, whole = Counter[_Pair | str](), self._whole()
        for wanted, found in self._rows(whole):
            if wanted and wanted.must_be:
                if found:
                    sizes[wanted.pair or wanted.key] += found.size
                else:
                    missing.add(wanted.key)
            elif found and (wanted is None or wanted.etag not in (None, found.etag)):
                doubted.add(found.key)
                is_shown = True  # nobody knows what objects show that are not those of the record
            elif wanted and wanted.etag is not None and not found:
                doubted.add(wanted.key)
        broken = _broken_by(missing, self.published)
        for pair, entry in whole.items():
            size = sizes[pair] + sum(sizes[keys.chunk(pair[0], name)] for name in entry.chunks)
            if size != entry.bytes and missing.isdisjoint(object_keys(pair[0], entry)):
                broken.add(pair)
        return Doubts(frozenset(doubted), frozenset(broken), frozenset(missing), show_withdrawn=is_shown)

    def _rows(self, whole: Mapping[_Pair, Current]) -> Iterator[_Row]:
        """What is wanted and found, by key; with a folder, immutable objects that differ from its files are missing."""
        streams: Iterable[_Wanted | Listed] = heapq.merge(*self._wanted(whole), self._listed(), key=_KEY)
        rows = (_row(items) for _, items in groupby(streams, key=_KEY))
        if self.folder is None:
            return rows
        return parallel_map(partial(self._checked, self.folder, Lock()), rows, self.store.parallel)

    def _listed(self) -> Iterator[Listed]:
        last = ""
        for number, found in enumerate(chain.from_iterable(map(partial(listed, self.store), self.prefixes))):
            if number % MOST_LISTED == 0:
                self.before_each()
            if found.key <= last:
                raise StoreError(
                    f"{self.store.name}: lists {found.key} after {last}, and this program needs listings in order of "
                    "keys; use another store"
                )
            last = found.key
            yield found

    def _whole(self) -> dict[_Pair, Current]:
        """The generations that must be whole."""
        return {
            pair: entry for pair, entry in self.published.built.generations().items()
            if not (isinstance(entry, Retired) and entry.partial) and _folder(pair).startswith(self.prefixes)
        }  # fmt: skip

    def _wanted(self, whole: Mapping[_Pair, Current]) -> Iterator[Iterable[_Wanted]]:
        """Streams of what may be stored, each in order of keys."""
        published, chunks = self.published, generations.chunk_keys(whole)
        # What was built but is not recorded will be uploaded in full, so what is stored of it is not unknown.
        # Generations that only the folder retains are unknown: no takedown would find them.
        known = {**published.due_generations(), **published.built.generations(), **self.built}
        # A detail without an ETag was left out because its market was blocked when it was about to be put.
        recorded = {**dict.fromkeys(published.built.objects, ""), **published.etags}
        etags = {**recorded, **dict.fromkeys(published.unfinished())}
        yield self._sorted(_Wanted(key, etag) for key, etag in etags.items())
        yield self._sorted(_Wanted(key, must_be=key in chunks) for key in generations.chunk_keys(known))
        # No generation has its folder in another's, so their own objects come one generation after the other.
        yield chain.from_iterable(
            self._sorted(_Wanted(key, must_be=pair in whole, pair=pair) for key in object_keys(pair[0], entry))
            for pair, entry in ((pair, known[pair].with_chunks(())) for pair in sorted(known, key=_folder))
        )

    def _sorted(self, wanted: Iterable[_Wanted]) -> list[_Wanted]:
        return sorted((one for one in wanted if one.key.startswith(self.prefixes)), key=_KEY)

    def _checked(self, folder: Output, alone: Lock, row: _Row) -> _Row:
        wanted, found = row
        if not (wanted and wanted.must_be and found):
            return row
        with alone if keys.is_download(found.key) else nullcontext():  # large: few fit into memory together
            return row if self._is_as_built(folder, found) else (wanted, None)

    def _is_as_built(self, folder: Output, found: Listed) -> bool:
        body = folder.read(found.key)
        if body is None:
            return True  # retired before this folder was made: the total size of its objects must do
        etag = self.store.etag_of(body)
        if etag is not None and found.etag:
            return etag == found.etag
        return body_of(self.store, found.key) == body


def _folder(pair: _Pair) -> str:
    return f"{keys.generation_prefix(*pair)}/"


def _row(items: Iterable[_Wanted | Listed]) -> _Row:
    found, wanted = None, None
    for item in items:
        if isinstance(item, Listed):
            found = item
        else:
            wanted = item
    return wanted, found


def _broken_by(missing: AbstractSet[str], published: Published) -> set[_Pair]:
    """The generations that are not whole until they are put again; current ones bring back what others share."""
    if not missing:
        return set()

    def having(known: Mapping[_Pair, Current], lost: AbstractSet[str]) -> set[_Pair]:
        return {pair for pair, entry in known.items() if not lost.isdisjoint(object_keys(pair[0], entry))}

    built = published.built
    current = built.current_generations()
    put_again = {key for pair, entry in current.items() for key in object_keys(pair[0], entry)}
    retired = {entry.pair: entry for entry in built.retired if not entry.partial and entry.pair not in current}
    return having(current, missing) | having(retired, missing - put_again)


@dataclass(frozen=True)
class Doubt:
    """The time in which the store may hold what no record says: requests that take effect late, of whichever publisher.

    `is_on`: this run is to list the store, as it is from `looked_at` on. `until` is the end of the doubt as the record
    names it. `planned` is what the plans are to settle; `unsettled` is what no plan could, if there is such.
    """

    is_on: bool
    looked_at: str
    until: str
    planned: frozenset[Doubts] = frozenset()
    unsettled: Doubts | None = None

    @classmethod
    def of(cls, lease: Lease) -> Self:
        """What the record says, which was read with the lease just now."""
        published, latest = lease.published, _in_an_hour(lease.now)
        # No longer than an hour, or the store's clock was ahead. One that is at work was cut short.
        until = min(published.doubted_until, latest) if published else ""
        is_on = published is not None and published.is_doubted
        return cls(is_on, lease.now, latest if published and published.work else until)

    def noting(self, found: Doubts, now: str) -> Self:
        """The doubt of a run that plans to settle what it found; no second plan settles the same."""
        if found not in self.planned:
            return replace(self, planned=self.planned | {found})
        return replace(self, unsettled=found, until=self.until or _in_an_hour(now))

    def left(self, now: str, *, is_unanswered: bool) -> str:
        """What the record is to say; nothing is forgotten before a look after it, nor while something is missing."""
        is_over = self.looked_at > self.until and self.unsettled is None
        return max("" if is_over else self.until, _in_an_hour(now) if is_unanswered else "")

    def faults(self, store: Store) -> Iterator[str]:
        """What is wrong for which no plan could help."""
        if self.unsettled and (found := sorted(self.unsettled.missing | self.unsettled.keys)):
            more = f" (and {counted(len(found) - 1, 'object')} more)" if len(found) > 1 else ""
            yield (
                f"{store.name}: {found[0]}{more}: deleted or altered by a request that took effect late, which this "
                "run cannot repair; run `public-markets rebuild`"
            )


def _in_an_hour(now: str) -> str:
    return instant(datetime.fromisoformat(now) + IN_FLIGHT)


def stray_details(store: Store, published: Published, ids: Collection[str]) -> Doubts:
    """Find details of these markets and questions that the store holds, although the record knows of none."""
    unknown = published.built.all_details(ids) - published.built.objects.keys()
    found = frozenset(key for key, etag in etags_of(store, unknown).items() if etag is not None)
    return Doubts(found, show_withdrawn=bool(found))
