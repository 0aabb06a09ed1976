"""A look at the store itself: what lies there compared with what its record says. It lists everything, so it costs.

What it cannot see are headers that somebody changed by hand: no listing shows them.
"""

from collections.abc import Mapping
from functools import partial

from generator.contract import API_VERSION
from generator.manifest import Current, Manifest
from generator.output import Output
from generator.pages import page_keys
from generator.planning import Doubts
from generator.record import Published
from generator.store import Listed, Store
from generator.transfer import each, persist


def audit(store: Store, published: Published | None, built: Manifest, folder: Output) -> Doubts:
    """Tell what is not as recorded: altered, missing and unknown objects, damaged generations."""
    found = {one.key: one for one in persist(lambda: list(store.list(f"{API_VERSION}/")))}
    recorded = published.built.generations() if published else {}
    broken = set()
    # What was built and is not recorded will be uploaded whole, so what is there of it is no stranger. Of what the
    # folder retains that is not so: unknown to the record, no takedown would find it.
    current = {(name, one.generation): one for name, one in built.lists.items()}
    for (name, generation), one in (current | recorded).items():
        pages = {key: found.pop(key, None) for key in page_keys(name, generation, one.count)}
        if (name, generation) in recorded and not _is_whole(store, folder, one, pages):
            broken.add((name, generation))
    for doomed in published.doomed if published else ():
        for key in page_keys(doomed.list, doomed.generation, doomed.count):
            found.pop(key, None)
    etags = published.etags if published else {}
    altered = {key for key, etag in etags.items() if key not in found or found[key].etag != etag}
    return Doubts(frozenset(altered | (found.keys() - etags.keys())), frozenset(broken))


def _is_whole(store: Store, folder: Output, one: Current, pages: Mapping[str, Listed | None]) -> bool:
    there = [page for page in pages.values() if page is not None]
    if len(there) != len(pages) or sum(page.size for page in there) != one.bytes:
        return False
    return all(each(partial(_is_as_built, store, folder), there, store.parallel))


def _is_as_built(store: Store, folder: Output, page: Listed) -> bool:
    body = folder.read(page.key)
    if body is None:
        return True  # retired before this folder was made: that all its pages weigh what they should must do
    etag = store.etag_of(body)
    if etag is not None:
        return etag == page.etag
    stored = persist(lambda: store.get(page.key))
    return stored is not None and stored.body == body
