"""A look at the store itself: what lies there compared with what its record says. It lists everything, so it costs.

What it cannot see are headers that somebody changed by hand: no listing shows them.
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
    """Tell what is not as recorded: altered, missing and unknown objects, damaged generations."""
    found = {one.key: one for one in with_retries(lambda: list(store.list(f"{API_VERSION}/")))}
    recorded = published.built.generations() if published else {}
    broken = {pair for pair, one in recorded.items() if not _is_whole(store, folder, pair, one, found)}
    etags = published.etags if published else {}
    altered = {key for key, etag in etags.items() if key not in found or found[key].etag != etag}
    # What was built and is not recorded will be uploaded whole, so what is there of it is no stranger. Of what the
    # folder retains that is not so: unknown to the record, no takedown would find it.
    doomed = {(one.list, one.generation): one for one in published.doomed} if published else {}
    known = {key for pair, one in (doomed | recorded | built.current()).items() for key in object_keys(pair[0], one)}
    return Doubts(frozenset(altered | (found.keys() - etags.keys() - known)), frozenset(broken))


def _is_whole(store: Store, folder: Output, pair: tuple[str, str], one: Current, found: Mapping[str, Listed]) -> bool:
    wanted = [*object_keys(pair[0], one)]
    there = [found[key] for key in wanted if key in found]
    if len(there) != len(wanted) or sum(listed.size for listed in there) != one.bytes:
        return False
    return all(parallel_map(partial(_is_as_built, store, folder), there, store.parallel))


def _is_as_built(store: Store, folder: Output, listed: Listed) -> bool:
    body = folder.read(listed.key)
    if body is None:
        return True  # retired before this folder was made: that all its objects weigh what they should must do
    etag = store.etag_of(body)
    if etag is not None:
        return etag == listed.etag
    stored = with_retries(lambda: store.get(listed.key))
    return stored is not None and stored.body == body
