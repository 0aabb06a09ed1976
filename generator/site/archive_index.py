"""The days that the archive of dumps has by what is published, whichever object tells of them; and those to withdraw.

Readers find them by the head. The index of the current generation says the same of all days that are over, and is never
changed, so it tells which days there have to be even while a withdrawal has deleted some.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Final, TypeAlias

from pydantic import ValidationError

from generator.api import contract, keys
from generator.api.archive import ArchivedDay, ArchiveHead, DayEntry
from generator.api.downloads import DumpHead
from generator.models import replaced
from generator.tree import families
from generator.tree.manifest import Manifest, Retired

_DATE: Final = len("2026-10-31")
#: Markets whose details are read before the first deletion, at most.
_MOST_ASKED: Final = 10
#: Reads an object by its key.
Read: TypeAlias = Callable[[str], bytes | None]
#: Reads objects by their keys, several at a time.
ReadAll: TypeAlias = Callable[[Iterable[str]], Iterable[bytes | None]]


def found_by(read: Read, before: Manifest) -> ArchiveHead | None:
    """The head that readers find, or else what the index of one of its generations says, the current first.

    `before` is what is published. The head does not name the days that a withdrawal has just deleted.
    """
    known = before.generations().items()
    entries = {generation: entry for (name, generation), entry in known if name == keys.ARCHIVE}
    if all(isinstance(entry, Retired) for entry in entries.values()):
        return None  # it was switched off
    head = ArchiveHead.found_by(read)
    of_head = families.name_of_index(keys.DOWNLOAD_LETTER, contract.encode(head.index())) if head else ""
    entry = entries.get(of_head)
    # A late request may have put an older head, which shows markets that were withdrawn since.
    if entry and (not isinstance(entry, Retired) or entry.may_be_current):
        return head
    for generation in reversed(entries):
        if index := _index(read, generation):
            return _with_other_days(read, before, index, head)
    return None


def _index(read: Read, generation: str) -> ArchiveHead | None:
    """What the index of a generation says; None if it is missing or damaged."""
    with suppress(ValidationError):
        return ArchiveHead.model_validate_json(read(keys.index(keys.ARCHIVE, generation)) or b"")
    return None


def _with_other_days(read: Read, before: Manifest, index: ArchiveHead, head: ArchiveHead | None) -> ArchiveHead:
    """The index with the days that only their own objects tell of, the last of which is not over.

    These are one of `before`, and the one that a killed run began: the `head` names it, or the dump is its own.
    """
    known = {keys.archived_day(day.date) for day in index.days}
    dumped = DumpHead.found_by(read)
    dates = [dumped.as_of[:_DATE]] if dumped else []
    dates += [head.today.date] if head and head.today else []
    begun = {*map(keys.archived_day, dates)}
    others = ({*filter(keys.is_archived_day, before.objects)} | begun) - known
    found = sorted(filter(None, (_day(read, key) for key in others)), key=lambda day: day.as_of)
    if not found:
        return index
    *over, today = found
    return replaced(index, days=sorted([*index.days, *over], key=lambda day: day.date), today=today)


def _day(read: Read, key: str) -> DayEntry | None:
    with suppress(ValidationError, KeyError):
        day = ArchivedDay.model_validate_json(read(key) or b"")
        return DayEntry.of(day.date, day)
    return None


def days_since(read_all: ReadAll, before: Manifest, ids: Collection[str]) -> list[str]:
    """The keys of the days that are over since the first of these markets (ids) was made; of all, if these are many.

    The index of the generation tells of these when they are deleted; without it, there are none. Of a day that is not
    over, only the head and its own object tell, so it is left: it shows what the dump shows. Not all of these days need
    show a market, nor need they be all that do, as somebody may have changed the time of its creation.
    """

    def read(key: str) -> bytes | None:
        (body,) = read_all([key])
        return body

    current = before.current.get(keys.ARCHIVE) if ids else None
    index = _index(read, current.generation) if current else None
    if index is None:
        return []
    asked = [keys.detail(market_id) for market_id in ids] if len(ids) <= _MOST_ASKED else []
    first = min(map(_created_on, read_all(asked)), default="")
    return [keys.archived_day(day.date) for day in index.days if day.date >= first]


def head_without(read: Read, days: Collection[str]) -> bytes | None:
    """The head that readers find, encoded, without these days (keys); None if it names none of them, or is missing."""
    head = ArchiveHead.found_by(read)
    if head is None or not any(keys.archived_day(day.date) in days for day in head.all_days()):
        return None
    over = [day for day in head.days if keys.archived_day(day.date) not in days]
    is_gone = head.today is None or keys.archived_day(head.today.date) in days
    return contract.encode(replaced(head, days=over, today=None if is_gone else head.today))


def _created_on(body: bytes | None) -> str:
    """The date of a market's creation, from the body of its detail; before all others if it does not say."""
    with suppress(ValidationError):
        return contract.PublicMarketDetail.model_validate_json(body or b"").market.created_at[:_DATE]
    return ""


def news(own: ArchiveHead, others: ArchiveHead) -> dict[str, DayEntry]:
    """By date, the days that the other archive knows better: all that are over there, and a newer one that is not.

    Of the day that is today in this one, it knows better itself.
    """
    known = {day.date: day for day in own.all_days()}
    found = {day.date: day for day in others.days if known.get(day.date) != day}
    if (last := others.today) and (last.date not in known or last.as_of > known[last.date].as_of):
        found[last.date] = last
    return {date: day for date, day in found.items() if own.today is None or date != own.today.date}
