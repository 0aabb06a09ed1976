"""The sessions of the change feed of a folder: each leads on from what readers find, or another one begins.

A step shows what markets have become. One that leads to a state that was built and never published would show what was
never public, so such steps are put together to one, from the published state to that of the folder. Where nobody knows
what readers have found, a new session begins from the dump that is there, without steps. Its name is drawn: one made
from the state could be that of a session in which the state stood before, and then one serial would name two states.
"""

import secrets
from datetime import timedelta
from functools import cache
from typing import Self

from pydantic import ValidationError

from generator.api import changes, downloads, keys
from generator.api.changes import ChangesHead
from generator.api.downloads import SESSION_LENGTH, DumpHead
from generator.config.settings import Config
from generator.downloads import dump, market_lines, steps
from generator.downloads.steps import StepWriter
from generator.errors import OutputError
from generator.models import replaced
from generator.site.change_feed import ChangeFeed, NewState
from generator.site.download_files import Download, NewFiles
from generator.tree import files, generations, staging
from generator.tree.folder import Output
from generator.tree.generation import Read, Workplace
from generator.tree.manifest import Current, Manifest
from generator.tree.staging import Rendered, Staged
from generator.tree.stored import StoredModel


def reader_of_heads(read: Read, known: Manifest | None) -> Read:
    """Reads the head of a download, by its key, if a known generation has it; else what the current one says, if any.

    An index says what the head said, so a head that was damaged is not lost.
    """
    if known is None:
        return read

    def found(key: str) -> bytes | None:
        name = next(family for family in keys.INDEXED if keys.head(family) == key)
        body = read(key) or b""
        if (name, generations.name_of_index(keys.DOWNLOAD_LETTER, body)) in known.generations():
            return body
        current = known.current.get(name)
        index = read(keys.index(name, current.generation)) if current else None
        return index if current and index and generations.is_index(name, current.generation, index) else None

    return found


class LastPublish(StoredModel):
    """What readers were last led to by a publish from an output folder, as the folder itself knows it.

    It is kept beside `v1/` where builds have a target: the states of builds that were never published are not public.
    Empty before the first publish, and while nobody knows what readers find. `as_of` is that of the build, `changes`
    the generation of its change feed, `target` the address it went to.
    """

    as_of: str = ""
    changes: str = ""
    target: str = ""

    @classmethod
    def of(cls, built: Manifest, target: str | None) -> Self:
        """A publish of this state."""
        changes = built.current.get(keys.CHANGES)
        return cls(as_of=built.as_of, changes=changes.generation if changes else "", target=target or "")

    @classmethod
    def found(cls, read: Read) -> Self | None:
        """What the folder says; None if its last build had no target."""
        content = read(files.LAST_PUBLISH)
        if content is None:
            return None
        try:
            return cls.model_validate_json(content)
        except ValidationError:
            return cls()

    @classmethod
    def begin(cls, folder: Output, built: Manifest, target: str | None) -> None:
        """Note that readers of the target may find this state from now on, though the publish may be cut short."""
        last, published = cls.found(folder.read), cls.of(built, target)
        if last is None or (last.changes, last.target) != (published.changes, published.target):
            cls().save(folder)

    def save(self, folder: Output) -> None:
        """Save it in the folder, unless it says so already."""
        content = self.model_dump_json(by_alias=True).encode() + b"\n"
        if folder.read(files.LAST_PUBLISH) != content:
            folder.save(files.LAST_PUBLISH, content)


def has_unpublished_histories(config: Config, folder: Workplace) -> bool:
    """Whether files of histories are of a build that was to be published, and was not: the next one makes them anew."""
    last, head = LastPublish.found(folder.read), DumpHead.found_by(folder.read)
    if config.publish.target is None or last is None or head is None:
        return False
    return last.target != config.publish.target or (head.history_as_of or "") > last.as_of


def _begun_anew(folder: Output, before: Manifest, lifetime: timedelta) -> Manifest:
    """Begin a session; returns the folder's new manifest."""
    dumped = DumpHead.found_by(folder.read)
    if dumped is None:
        place = folder.path(keys.head(keys.DUMPS))
        raise OutputError(f"{place}: missing or damaged; run `public-markets build` again")
    head = replaced(changes.begun(dumped), session=secrets.token_hex(SESSION_LENGTH // 2))
    return _with_feed(folder, before, Download(head, ()), lifetime)


def _with_feed(folder: Output, before: Manifest, feed: Download, lifetime: timedelta) -> Manifest:
    """Place another generation of the change feed; returns the folder's new manifest."""
    changes = staging.stage_generation(folder, before.generations(), feed)
    staged = Staged(objects=dict(before.objects))
    staged.add(changes.first_pages)
    update = {"current": {**before.current, changes.name: changes.current}, "objects": staged.objects}
    built = replaced(before, **update, retired=(), markets={})
    beside = {name: folder.read(name) for name in files.BESIDE}
    rendered = Rendered({changes.name: changes}, staged, built, before.markets, beside=beside)
    return staging.place(folder, before, rendered, lifetime).manifest


def _forks(folder: Output, built: Manifest, published: Manifest, read: Read) -> bool:
    """Whether the folder's change feed may give a serial to another state than the published one did, or could do.

    So it is if the build is older, or if the folder is a copy of one that went on: readers may have seen what that
    committed, and what it put before it was killed. `read` reads the store.
    """
    now, before = built.current[keys.CHANGES], published.current.get(keys.CHANGES)
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
    head = ChangesHead.found_by(folder.read)
    has_steps = keys.CHANGES in before.current and (head is None or bool(head.steps))
    return staging.purge_retired(folder, _begun_anew(folder, before, lifetime) if has_steps else before)


def lead_on(folder: Output, built: Manifest, published: Manifest | None, read: Read, lifetime: timedelta) -> Manifest:
    """The folder's new manifest, once its feed leads on from what is published; `read` reads the store.

    A new session begins if nobody knows what readers have found.
    """
    read = cache(read)
    now = built.current.get(keys.CHANGES)
    before = published.current.get(keys.CHANGES) if published else None
    if now is None:
        return built
    if published and _forks(folder, built, published, read):
        return _begun_anew(folder, built, lifetime)
    own = None if _has_one_new_step(now, before) else ChangesHead.found_by(folder.read)
    if own is None:
        return built
    shown = _head(before.generation, folder.read, read) if before else None
    if _is_one_step_from(own, shown) or _goes_on(own, ChangesHead.found_by(read)):
        return built
    # Else somebody may have seen what lies between: in another target, or in a publish that was cut short.
    last = LastPublish.found(folder.read)
    is_known = before is not None and last is not None and last.changes == before.generation
    feed = _joined(folder, built, shown, read) if is_known and shown and shown.session == own.session else None
    return _with_feed(folder, built, feed, lifetime) if feed else _begun_anew(folder, built, lifetime)


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
    writer = StepWriter(before.dump.size)
    try:
        former, latest = _body(before.dump.key, folder.read, read), _body(dumped.ndjson.key, folder.read)
        for change in dump.changes(dump.lines([former]), dump.lines([latest])):
            writer.add(change)
        ids = {market_lines.id_of(line) for line in dump.lines([latest])}
    except ValueError:
        return None
    as_of = before.as_of if before.state == dumped.state else dumped.as_of
    new, step = replaced(dumped, as_of=as_of), files.draft(writer.close)
    state = NewState(as_of, ids, new, before.dump.name, step, writer.has_gone)
    kept = steps.retained(before.steps, dumped.ndjson.size, built.as_of)
    return Download(ChangeFeed(files, state, fetch=read).head(replaced(before, steps=kept)), files.staged)
