"""Audits the store: compares objects in it with the record.

`audit` lists everything, so it costs; it cannot see altered headers, which no listing shows. The others look only where
a request of an earlier publisher may have taken effect late.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.publish.plan import Doubts
from generator.publish.record import Published
from generator.stores.requests import body_of, etags_of, parallel_map, with_retries
from generator.stores.store import Listed, Store
from generator.tree import generations
from generator.tree.folder import Output
from generator.tree.generations import object_keys
from generator.tree.manifest import Current, Manifest, Retired


def audit(store: Store, published: Published | None, built: Manifest, folder: Output) -> Doubts:
    """Find what differs from the record: altered, missing and unknown objects, damaged generations."""
    found = {listed.key: listed for listed in with_retries(lambda: list(store.list(f"{API_VERSION}/")))}
    recorded = published.built.generations() if published else {}
    broken = {pair for pair, entry in recorded.items() if not _is_whole(store, folder, pair, entry, found)}
    etags = published.etags if published else {}
    altered = {key for key, etag in etags.items() if key not in found or found[key].etag != etag}
    # What was built but is not recorded will be uploaded in full, so what is stored of it is not unknown. Generations
    # that only the folder retains are unknown: no takedown would find them.
    due = published.due_generations() if published else {}
    known = {
        key
        for pair, entry in (due | recorded | built.current_generations()).items()
        for key in object_keys(pair[0], entry)
    }
    doubted = frozenset(altered | (found.keys() - etags.keys() - known))
    # Nobody knows what objects show that are not those of the record.
    is_shown = not doubted.isdisjoint(found)
    return Doubts(doubted, frozenset(broken), show_withdrawn=is_shown)


def late(store: Store, published: Published, built: Manifest, undone: Collection[str]) -> Doubts:
    """Find what requests of earlier publishers have put or deleted since.

    `undone` are markets (ids) whose takedown was undone so lately that it may have deleted their details since the last
    publish, or may still do so.
    """
    details = published.built.all_details(undone) & published.built.objects.keys()
    suspects = details.union(*(entry.touched for entry in published.abandoned)) - published.unfinished()
    found = etags_of(store, suspects)
    altered = {key for key, etag in found.items() if etag != published.etags.get(key)}
    # A publisher that was about to put one, and found its market blocked, left no ETag of it.
    altered |= {key for key in details if key in found and found[key] is None}
    known = published.due_generations() | published.built.generations() | built.current_generations()
    gone = {
        entry.pair: entry.as_current()
        for abandoned in published.abandoned
        for entry in abandoned.generations
        if entry.pair not in known
    }
    chunks = generations.chunk_keys(gone) - generations.chunk_keys(known)
    strays, vanished = _unanswered(store, published, built)
    strays |= _of_archive(store, published, built)
    doubted = altered | strays | _existing(store, chunks) | _objects_of(store, gone)
    vanished |= _vanished(store, published)
    broken = _broken_by(vanished, published.built)
    return Doubts(frozenset(doubted), frozenset(broken), frozenset(vanished), show_withdrawn=bool(doubted))


def _of_archive(store: Store, published: Published, built: Manifest) -> set[str]:
    """What a former program left of its archive, and files of dumps that only this named, until it is replaced."""
    if not published.built.may_have_archive:
        return set()
    is_known = _belonging(published.due_generations() | published.built.generations() | built.current_generations())
    found = with_retries(lambda: [*store.keys(f"{keys.list_prefix(keys.DUMPS)}/")])
    return {key for key in found if key not in published.etags and key not in built.objects and not is_known(key)}


def _unanswered(store: Store, published: Published, built: Manifest) -> tuple[set[str], set[str]]:
    """Immutable objects that requests without an answer put late although nothing names them, or deleted late."""
    etags = etags_of(store, {key for abandoned in published.abandoned for key in abandoned.immutable})
    if not etags:
        return set(), set()
    live = {pair: entry for pair, entry in published.built.generations().items() if not _is_partial(entry)}
    is_known = _belonging(published.due_generations() | published.built.generations() | built.current_generations())
    is_live = _belonging(live)
    strays = {key for key, etag in etags.items() if etag is not None and not is_known(key)}
    return strays, {key for key, etag in etags.items() if etag is None and is_live(key)}


def _belonging(known: Mapping[tuple[str, str], Current]) -> Callable[[str], bool]:
    """Whether the object of a key belongs to one of these generations."""
    folders, chunks = {keys.generation_prefix(*pair) for pair in known}, generations.chunk_keys(known)
    # A page is two folders below its generation, an index one.
    return lambda key: key in chunks or not folders.isdisjoint((key.rsplit("/", 2)[0], key.rsplit("/", 1)[0]))


def _is_partial(entry: Current) -> bool:
    return isinstance(entry, Retired) and entry.partial


def _vanished(store: Store, published: Published) -> set[str]:
    """Published immutable objects that a publisher which was cut short deleted: they had been due before."""
    deleted = {
        key for abandoned in published.abandoned for entry in abandoned.due for key in object_keys(entry.list, entry)
    }
    if not deleted:
        return set()
    whole = {pair: entry for pair, entry in published.built.generations().items() if not _is_partial(entry)}
    live = {key for pair, entry in whole.items() for key in object_keys(pair[0], entry)}
    return {key for key, etag in etags_of(store, deleted & live).items() if etag is None}


def _broken_by(missing: AbstractSet[str], built: Manifest) -> set[tuple[str, str]]:
    """The generations that are not whole until they are put again; current ones bring back what others share."""
    if not missing:
        return set()

    def having(known: Mapping[tuple[str, str], Current], lost: AbstractSet[str]) -> set[tuple[str, str]]:
        return {pair for pair, entry in known.items() if not lost.isdisjoint(object_keys(pair[0], entry))}

    current = built.current_generations()
    put_again = {key for pair, entry in current.items() for key in object_keys(pair[0], entry)}
    retired = {entry.pair: entry for entry in built.retired if not entry.partial and entry.pair not in current}
    return having(current, missing) | having(retired, missing - put_again)


def stray_details(store: Store, published: Published, ids: Collection[str]) -> Doubts:
    """Find details of these markets that the store holds, although the record knows of none."""
    found = _existing(store, published.built.all_details(ids) - published.built.objects.keys())
    return Doubts(frozenset(found), show_withdrawn=bool(found))


def _objects_of(store: Store, generations: Iterable[tuple[str, str]]) -> set[str]:
    """The objects of these generations that exist, except chunks: few, so listing costs less than deleting all."""

    def listed(pair: tuple[str, str]) -> list[str]:
        prefix = f"{keys.generation_prefix(*pair)}/"
        return with_retries(lambda: list(store.keys(prefix)))

    return {key for found in parallel_map(listed, generations, store.parallel) for key in found}


def _existing(store: Store, object_keys: Collection[str]) -> set[str]:
    return {key for key, etag in etags_of(store, object_keys).items() if etag is not None}


def _is_whole(store: Store, folder: Output, pair: tuple[str, str], entry: Current, found: Mapping[str, Listed]) -> bool:
    wanted = [*object_keys(pair[0], entry)]
    stored = [found[key] for key in wanted if key in found]
    if len(stored) != len(wanted) or sum(listed.size for listed in stored) != entry.bytes:
        return False
    threads = 1 if generations.of(*pair).has_large_files else store.parallel
    return all(parallel_map(partial(_is_as_built, store, folder), stored, threads))


def _is_as_built(store: Store, folder: Output, listed: Listed) -> bool:
    body = folder.read(listed.key)
    if body is None:
        return True  # retired before this folder was made: the total size of its objects must do
    etag = store.etag_of(body)
    if etag is not None:
        return etag == listed.etag
    return body_of(store, listed.key) == body
