"""Markets that join a question which was taken down: they are blocked from then on, whatever becomes of both."""

from generator.source.reader import Reader
from generator.tree import blocked_names, blocklist
from generator.tree.blocklist import BlockedList
from generator.tree.folder import Output
from generator.tree.manifest import Manifest


def block(folder: Output, reader: Reader, before: Manifest | None, now: str) -> frozenset[str]:
    """All that is blocked once every market is that has a membership of a blocked question, visible or not.

    The copy of the blocked list in the folder says so from `now` on. `before` is the state of the folder.
    """
    copy = blocklist.load(folder)
    after = after_joining(copy, reader, before, now)
    if after != copy:
        blocklist.save(folder, after)
    return after.ids()


def after_joining(copy: BlockedList, reader: Reader, before: Manifest | None, now: str) -> BlockedList:
    """The list as it is then; the same if no market has joined. That is asked where questions are off, too."""
    questions = copy.question_ids()
    if not questions or not reader.has_members():
        return copy
    reader.require_schema()
    found = reader.questions().blocked_markets(questions)
    names = {market_id: [*blocked_names.digests(market_id, [before])] for market_id in found} if before else {}
    return copy.joined(found, now=now, names=names)
