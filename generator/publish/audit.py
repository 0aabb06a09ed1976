"""Audits the store: compares every object in it with the record. It lists everything, so it costs.

It cannot see altered headers: no listing shows them.
"""

from collections.abc import Mapping
from functools import partial

from generator.api.contract import API_VERSION
from generator.publish.plan import Doubts
from generator.publish.record import Published
from generator.publish.stores.requests import parallel_map, with_retries
from generator.publish.stores.store import Listed, Store
from generator.tree.folder import Output
from generator.tree.layouts import object_keys
from generator.tree.manifest import Current, Manifest


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
    known = {key for pair, entry in (due | recorded | built.current()).items() for key in object_keys(pair[0], entry)}
    return Doubts(frozenset(altered | (found.keys() - etags.keys() - known)), frozenset(broken))


def _is_whole(store: Store, folder: Output, pair: tuple[str, str], entry: Current, found: Mapping[str, Listed]) -> bool:
    wanted = [*object_keys(pair[0], entry)]
    stored = [found[key] for key in wanted if key in found]
    if len(stored) != len(wanted) or sum(listed.size for listed in stored) != entry.bytes:
        return False
    return all(parallel_map(partial(_is_as_built, store, folder), stored, store.parallel))


def _is_as_built(store: Store, folder: Output, listed: Listed) -> bool:
    body = folder.read(listed.key)
    if body is None:
        return True  # retired before this folder was made: the total size of its objects must do
    etag = store.etag_of(body)
    if etag is not None:
        return etag == listed.etag
    stored = with_retries(lambda: store.get(listed.key))
    return stored is not None and stored.body == body
