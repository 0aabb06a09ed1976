"""Replaces the change feed in an output folder, and begins new sessions: from the dump that is there, without steps.

The name of a session is drawn: one made from the state could be that of a session in which the state stood before, and
then one serial would name two states.
"""

import secrets
from collections.abc import Callable
from datetime import timedelta

from generator.api import keys
from generator.api.downloads import SESSION_LENGTH, ChangesHead, DumpHead, begun
from generator.errors import OutputError
from generator.models import replaced
from generator.tree import files, staging
from generator.tree.download import Download
from generator.tree.folder import Output
from generator.tree.manifest import Manifest
from generator.tree.staging import Rendered, Staged


def begin(folder: Output, before: Manifest, lifetime: timedelta) -> Manifest:
    """Begin the session; returns the folder's new manifest."""
    dumped = DumpHead.found_by(folder.read)
    if dumped is None:
        place = folder.path(keys.head(keys.DUMPS))
        raise OutputError(f"{place}: missing or damaged; run `public-markets build` again")
    head = replaced(begun(dumped), session=secrets.token_hex(SESSION_LENGTH // 2))
    return replace_feed(folder, before, Download(head, ()), lifetime)


def replace_feed(folder: Output, before: Manifest, feed: Download, lifetime: timedelta) -> Manifest:
    """Place another generation of the change feed; returns the folder's new manifest."""
    changes = staging.stage_generation(folder, before.generations(), feed)
    staged = Staged(objects=dict(before.objects))
    staged.add(changes.first_pages)
    update = {"current": {**before.current, changes.name: changes.current}, "objects": staged.objects}
    built = replaced(before, **update, retired=(), markets={})
    beside = folder.read(files.DUMP_PARTS)
    rendered = Rendered({changes.name: changes}, staged, built, before.markets, dump_parts=beside)
    return staging.place(folder, before, rendered, lifetime).manifest


def has_steps(folder: Output, built: Manifest) -> bool:
    """Whether the change feed retains steps, or may do so."""
    if keys.CHANGES not in built.current:
        return False
    head = ChangesHead.found_by(folder.read)
    return head is None or bool(head.steps)


def forks(folder: Output, built: Manifest, published: Manifest, read: Callable[[str], bytes | None]) -> bool:
    """Whether the folder's change feed may give a serial to another state than the published one did, or could do.

    So it is if the build is older, or if the folder is a copy of one that went on: readers may have seen what that
    committed, and what it put before it was killed. `read` reads the store.
    """
    now, before = (manifest.current.get(keys.CHANGES) for manifest in (built, published))
    if now is None:
        return False
    if before and before.generation != now.generation and built.as_of < published.as_of:
        return True
    seen = {entry.generation for entry in published.retired if entry.list == keys.CHANGES and entry.may_be_current}
    seen |= {before.generation} if before else set()
    others = {generation for generation in seen if (keys.CHANGES, generation) not in built.generations()}
    own = ChangesHead.found_by(folder.read) if others else None
    # The index never changes; the head may have been replaced by a late request.
    indexes = {generation: read(keys.index(keys.CHANGES, generation)) for generation in others}
    if before and indexes.get(before.generation, b"") is None:
        return True
    # Whoever was killed before its index was put had not put the head, either.
    return any(not _leads_on(own, index) for index in indexes.values() if index is not None)


def _leads_on(own: ChangesHead | None, index: bytes) -> bool:
    """Whether the folder's feed has gone on from the one that the index is of."""
    former = ChangesHead.found_by(lambda _: index)
    return own is not None and former is not None and own.leads_on(former)


def purge(folder: Output, before: Manifest, lifetime: timedelta) -> Manifest:
    """Delete every generation that is not current, and all steps; returns the folder's new manifest."""
    rest = begin(folder, before, lifetime) if has_steps(folder, before) else before
    return staging.purge_retired(folder, rest)
