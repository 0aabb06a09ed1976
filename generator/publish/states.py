"""What a large record says beside its root: an immutable state for each commit, and the intent of a publisher at work.

The root is a few kilobytes, replaced by conditional puts. What it names is put before it, compressed, under a name that
is never used again: the sequence number of the root that names it first, and a digest. So a request that takes effect
late harms no newer record. A folder keeps the state that it published last, so that the next publish need not read it.
"""

import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from generator.api.forms import instant
from generator.models import replaced
from generator.publish.record import FORMER_STATE, IN_FLIGHT, KEY, DamagedStateError, Intent, Published
from generator.stores.requests import body_of, put_until_answered, with_retries
from generator.stores.store import BeforeEach, If, Store
from generator.tree import state
from generator.tree.files import FORMER_STATES, LAST_STATE, STATES
from generator.tree.folder import Output

#: Bytes of an intent that the root itself has: that of a publish which changes nothing for readers.
_SMALL: Final = 2_000


class _State(NamedTuple):
    """A state that is stored: its name, the times that it left out, and the record it is part of, without intent."""

    name: str
    retirements: tuple[str, ...]
    record: Published


class StoredStates:
    """The state and intent of a store's record, as it was last read or written by this run.

    `folder` is the one that is published from, if there is one; it may have a copy of the state.
    """

    def __init__(self, store: Store, require: Callable[[], None], folder: Output | None = None) -> None:
        self._store = store
        self._require = require
        self._folder = folder
        self._has_copy = False
        self._stored: _State | None = None
        self._intent: tuple[str, bytes] = ("", b"")
        #: What was decoded last, and of what: a takedown looks names up, and reads the record again when it has it.
        self._decoded: tuple[Any, Any] = (None, None)
        #: Of the record that was read: what it names besides, and what it no longer names, with the instants of that.
        self._previous = ""
        self._stale: dict[str, str] = {}

    @property
    def _named(self) -> frozenset[str]:
        return frozenset((self._stored.name if self._stored else "", self._previous, self._intent[0])) - {""}

    def read(self, root: Published, *, is_doubted: bool = False) -> Published:
        """The whole record; raise DamagedStateError if a part of it is damaged.

        If it `is_doubted`, the copy is not believed: it may be all that is left.
        """
        self._has_copy = self._folder is not None and not is_doubted
        self._stored, self._intent = None, ("", b"")
        self._previous, self._stale = root.previous, dict(root.stale)
        if not root.is_root:
            return root
        whole = self._with_state(root, root.built.state)
        self._stored = _State(root.built.state, root.built.retirements, whole)
        return self._with_intent(root, whole)

    def rest(self, root: Published) -> Published:
        """What can be read of a damaged record: the state before, or none, and the intent.

        Whatever is missing, the root says whose site this is, how old it is, and how large it was.
        """
        self._stored, self._previous, self._intent = None, "", ("", b"")
        self._outdate(root.named(), root.built.as_of)
        is_complete = root.built.complete or bool(root.built.lists())
        built = replaced(root.built, state="", retirements=(), current={}, complete=is_complete)
        found = replaced(root, intent=None, previous="", stale={}, built=built)
        for name in (root.built.state, root.previous):
            with suppress(DamagedStateError):
                found = self._with_state(root, name, is_before=name == root.previous)
                break
        with suppress(DamagedStateError):
            found = self._with_intent(root, found)
        return replaced(found, built=replaced(found.built, market_count=root.built.market_count))

    def _with_state(self, root: Published, name: str, *, is_before: bool = False) -> Published:
        body, of = self._body(name), (name, is_before, root.built)
        if self._decoded[0] != of:
            try:
                # Of the state before, the root does not say when generations were retired.
                self._decoded = of, state.decoded(root.built, body, is_intended=is_before)
            except state.UNREADABLE as error:
                raise DamagedStateError(self._store.name, key(name), is_missing=False) from error
        built, etags = self._decoded[1]
        return replaced(root, built=built, etags={**etags, **root.etags}, intent=None, previous="", stale={})

    def _with_intent(self, root: Published, published: Published) -> Published:
        if not isinstance(root.intent, str):
            return root.intent.applied_to(published) if root.intent else published
        body = self._body(root.intent)
        try:
            said = zlib.decompress(body)
            intent = Intent.model_validate_json(said)
        except (ValueError, zlib.error) as error:
            raise DamagedStateError(self._store.name, key(root.intent), is_missing=False) from error
        self._intent = (root.intent, said)
        return intent.applied_to(published)

    def _body(self, name: str) -> bytes:
        """The bytes of a state or an intent; raise DamagedStateError if it is missing or altered."""
        if not state.is_name(name):
            raise DamagedStateError(self._store.name, KEY, is_missing=False, is_former=name == FORMER_STATE)
        copy = self._folder.read(LAST_STATE) if self._folder and self._has_copy else None
        if copy and state.is_intact(name, copy):
            return copy
        body = body_of(self._store, key(name))
        if body is None or not state.is_intact(name, body):
            raise DamagedStateError(self._store.name, key(name), is_missing=body is None)
        return body

    def written(
        self, wanted: Published, before: Published | None, touched: tuple[str, ...], sequence: int, now: str
    ) -> tuple[Published, tuple[str, ...]]:
        """Put what the record is to name; returns the root to put next, and what it says itself of `touched`.

        `before` is the record as it is, and `sequence` the number of that root.
        """
        named, self._decoded = self._named, (None, None)
        if not state.is_large(wanted.built):
            self._stored, self._previous, self._intent = None, "", ("", b"")
            self._outdate(named, now)
            if self._folder and self._folder.read(LAST_STATE) is not None:
                self._folder.discard_key(LAST_STATE)
            return replaced(wanted, stale=dict(self._stale)), touched
        if wanted.built.complete:
            stored = self._put_state(wanted, sequence)
        else:
            # Without one, this is the first intent of a site that is large, or becomes so.
            empty = replaced(wanted, built=wanted.built.emptied(), etags={})
            stored = self._stored or self._put_state(before or empty, sequence)
        intent = self._put_intent(Intent.of(stored.record.built, wanted, touched), sequence)
        self._outdate(named, now)
        root = replaced(
            wanted,
            built=state.header(wanted.built, stored.name, stored.retirements),
            etags={name: etag for name, etag in wanted.etags.items() if name in state.OUTSIDE},
            due=(),
            intent=intent,
            previous=self._previous,
            stale=dict(self._stale),
        )
        return root, ()

    def _put_state(self, wanted: Published, sequence: int) -> _State:
        stored = self._stored
        if stored is None or not _is_same(stored.record, wanted):
            body = state.encoded(wanted.built, wanted.etags)
            name = self._put(body, sequence)
            if self._folder:
                self._folder.save(LAST_STATE, body)
            self._previous = stored.name if stored else ""
            self._stored = stored = _State(name, state.retirements(wanted.built), wanted)
        return stored

    def _put_intent(self, intent: Intent, sequence: int) -> Intent | str | None:
        body = intent.model_dump_json(by_alias=True).encode()
        is_empty = intent == Intent()
        if is_empty or len(body) <= _SMALL:
            self._intent = ("", b"")
            return None if is_empty else intent
        if body != self._intent[1]:
            self._intent = (self._put(zlib.compress(body), sequence), body)
        return self._intent[0]

    def _put(self, body: bytes, sequence: int) -> str:
        name = f"{sequence}-{state.digest(body)}"
        put_until_answered(self._store, key(name), body, If.ALWAYS, self._require)
        self._store.flush()  # before the record names it
        return name

    def _outdate(self, before: frozenset[str], now: str) -> None:
        """Note that the record no longer names these, unless it does, or noted so earlier."""
        self._stale |= dict.fromkeys(sorted(before - self._named - self._stale.keys()), now)

    def sweep(self, now: str, before_each: BeforeEach) -> None:
        """Delete what no root has named for an hour."""
        ended = instant(datetime.fromisoformat(now) - IN_FLIGHT)
        self._delete([name for name, since in self._stale.items() if since <= ended], before_each)

    @property
    def exist(self) -> bool:
        """Whether the record has, or may have had, any."""
        return bool(self._named or self._stale)

    def look(self, sequence: int, before_each: BeforeEach, *, purges: bool) -> None:
        """Delete what killed runs put and no record ever named; `sequence` is the number of the record.

        If this run `purges`, everything goes that the record need not name: it may say what was withdrawn.
        """
        self._delete([*self._found(sequence)], before_each)
        if purges:
            previous, self._previous = self._previous, ""
            self._delete([*filter(None, [previous]), *self._stale], before_each)
            if former := with_retries(lambda: [*self._store.keys(FORMER_STATES)]):
                with_retries(partial(self._store.delete, former, before_each))
                with_retries(partial(self._store.purge_versions, FORMER_STATES, before_each))

    def _delete(self, names: Collection[str], before_each: BeforeEach) -> None:
        if names:
            with_retries(partial(self._store.delete, [*map(key, names)], before_each))
        for name in names:
            self._stale.pop(name, None)

    def _found(self, sequence: int) -> Iterator[str]:
        """The states and intents in the store that are older than the record, which never named them."""
        for name, number in self._listed():
            if number <= sequence and name not in self._named and name not in self._stale:
                yield name

    def last_number(self) -> int:
        """The greatest number of any: a record that is made anew counts from there."""
        return max((number for _, number in self._listed()), default=0)

    def _listed(self) -> Iterator[tuple[str, int]]:
        """The states and intents in the store, each with the number of the root that was to name it first."""
        for found in with_retries(lambda: [*self._store.keys(STATES)]):
            name = found.removeprefix(STATES)
            if state.is_name(name):
                yield name, int(name.partition("-")[0])


def _is_same(one: Published, other: Published) -> bool:
    """Whether both have the same state."""
    return one.built is other.built or (
        state.is_same(one.built, other.built) and state.without_build(one.etags) == state.without_build(other.etags)
    )


def key(name: str) -> str:
    """The key of a state or an intent."""
    return f"{STATES}{name}"
