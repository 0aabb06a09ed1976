"""Has the change feed of a folder lead on from what readers find; only a publish knows what that is.

A step shows what markets have become. One that leads to a state that was built and never published would show what was
never public, so such steps are put together to one, from the published state to that of the folder.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache

from generator.api import downloads, keys
from generator.api.downloads import ChangesHead, DumpHead
from generator.downloads import dump, market_lines, steps
from generator.downloads.steps import StepWriter
from generator.models import replaced
from generator.site.change_feed import ChangeFeed, NewState
from generator.tree import last_publish, sessions
from generator.tree.download import Download, NewFiles
from generator.tree.folder import Output
from generator.tree.manifest import Current, Manifest

Read = Callable[[str], bytes | None]


def lead_on(folder: Output, built: Manifest, published: Manifest | None, read: Read, lifetime: timedelta) -> Manifest:
    """The folder's new manifest, once its feed leads on from what is published; `read` reads the store.

    A new session begins if nobody knows what readers have found.
    """
    read = cache(read)
    now = built.current.get(keys.CHANGES)
    before = published.current.get(keys.CHANGES) if published else None
    if now is None:
        return built
    if published and sessions.forks(folder, built, published, read):
        return sessions.begin(folder, built, lifetime)
    own = None if _has_one_new_step(now, before) else ChangesHead.found_by(folder.read)
    if own is None:
        return built
    shown = _head(before.generation, folder.read, read) if before else None
    if _is_one_step_from(own, shown) or _goes_on(own, ChangesHead.found_by(read)):
        return built
    # Else somebody may have seen what lies between: in another target, or in a publish that was cut short.
    last = last_publish.found(folder.read)
    is_known = before is not None and last is not None and last.changes == before.generation
    feed = _joined(folder, built, shown, read) if is_known and shown and shown.session == own.session else None
    return sessions.replace_feed(folder, built, feed, lifetime) if feed else sessions.begin(folder, built, lifetime)


def _has_one_new_step(now: Current, before: Current | None) -> bool:
    """Whether only the newest step, if any, is not published, as after most builds: nothing need be read."""
    is_in_order = len(now.chunks) == now.count  # else two steps have the same bytes, and one name
    return is_in_order and {*now.chunks[:-1]} <= {*(before.chunks if before else ())}


def _goes_on(own: ChangesHead, in_place: ChangesHead | None) -> bool:
    """Whether the feed goes on from the head in place, which a publish may have put that was cut short."""
    return in_place is not None and own.leads_on(in_place) and _is_one_step_from(own, in_place)


def _is_one_step_from(own: ChangesHead, before: ChangesHead | None) -> bool:
    """Whether each of its steps but the last one led to a state that readers of the head `before` know, too."""
    known = before.serial if before and before.session == own.session else 0
    return all(start <= known for start, _ in own.numbered())


def _head(generation: str, *places: Read) -> ChangesHead | None:
    """What the head of a generation said, by the first of the places that has its index."""
    key = keys.index(keys.CHANGES, generation)
    body = next(filter(None, (place(key) for place in places)), None)
    return ChangesHead.found_by(lambda _: body)


def _body(key: str, *places: Read) -> bytes:
    """A file that is named by its content, from the first of the places that has it; raise ValueError if none has."""
    for place in places:
        body = place(key)
        if body is not None and downloads.is_named_by(key, body):
            return body
    raise ValueError(f"{key} is missing or damaged")


def _joined(folder: Output, built: Manifest, before: ChangesHead, read: Read) -> Download | None:
    """The feed with one step from that head to the dump of the folder; None if a dump cannot be read."""
    dumped, files = DumpHead.found_by(folder.read), NewFiles(folder)
    if dumped is None:
        return None
    writer, has_gone = StepWriter(before.dump.size), False
    try:
        former, latest = _body(before.dump.key, folder.read, read), _body(dumped.ndjson.key, folder.read)
        for change in dump.changes(dump.lines([former]), dump.lines([latest])):
            writer.add(change)
            has_gone |= change.after is None
        ids = {market_lines.id_of(line) for line in dump.lines([latest])}
    except ValueError:
        return None
    as_of = before.as_of if before.state == dumped.state else dumped.as_of
    new, step = replaced(dumped, as_of=as_of), files.draft(writer.close)
    state = NewState(as_of, ids, new, before.dump.name, step, has_gone)
    kept = steps.retained(before.steps, dumped.ndjson.size, built.as_of)
    return Download(ChangeFeed(files, state, fetch=read).head(replaced(before, steps=kept)), files.staged)
