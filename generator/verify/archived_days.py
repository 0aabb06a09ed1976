"""The archive: each day is what the index says of it, and shows nobody who was withdrawn."""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Final
from uuid import UUID

from generator.api import keys
from generator.api.archive import ArchivedDay, ArchiveHead, DayEntry
from generator.api.downloads import MarketsFile
from generator.downloads import dump, market_lines
from generator.verify.answers import not_ok, parsed
from generator.verify.expected import is_file
from generator.verify.inquiry import Inquiry
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.spooled_body import SpooledBody

#: Of how many days of a sample the files are read, too: one of so many.
_PER_READ: Final = 10


@dataclass(frozen=True)
class ArchiveCheck:
    """The index of the archive, where there is one, and some of its days; without `most`, all, files included."""

    most: int | None
    seed: int

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare each day with the index, and the files with both."""
        answer = asked.reader.get(keys.head(keys.ARCHIVE))
        if answer.status == HTTPStatus.NOT_FOUND:  # nothing else says whether there is one
            return
        head, broken = parsed(answer, ArchiveHead)
        yield from broken
        if head is None:
            return
        days = self._chosen(head.days)
        for day in days:
            yield from _of_day(asked, head, day)
        for day in days if self.most is None else days[: 1 + self.most // _PER_READ]:
            yield from _of_files(asked, day.files(head.base_url), day)

    def _chosen(self, days: list[DayEntry]) -> list[DayEntry]:
        rng = random.Random(self.seed)  # noqa: S311 - which ones is no secret
        return days if self.most is None else rng.sample(days, min(len(days), self.most))


def _of_day(asked: Inquiry, head: ArchiveHead, day: DayEntry) -> Iterator[Mismatch]:
    answer = asked.reader.get(keys.archived_day(day.date))
    found, broken = parsed(answer, ArchivedDay)
    yield from broken
    if found and found != day.served_from(head.base_url):
        yield Mismatch(Verdict.WRONG, answer.target, f"is not what the index of the archive says of {day.date}")


def _of_files(asked: Inquiry, files: list[MarketsFile], day: DayEntry) -> Iterator[Mismatch]:
    for file in files:
        answer, content = asked.reader.file(file.key, file.size)
        if answer.status != HTTPStatus.OK:
            yield not_ok(answer)
        elif not is_file(file, content):
            yield Mismatch(Verdict.WRONG, answer.target, f"is not the file that the archive names for {day.date}")
        elif file.format == "ndjson":
            yield from _of_markets(asked, answer.target, content, day)


def _of_markets(asked: Inquiry, target: str, content: SpooledBody, day: DayEntry) -> Iterator[Mismatch]:
    state, ids = hashlib.sha256(), list[str]()
    try:
        for line in islice(dump.lines(content.pieces()), day.count + 1):
            state.update(line + b"\n")
            ids.append(str(UUID(market_lines.id_of(line))))
    except ValueError as error:
        yield Mismatch(Verdict.BROKEN, target, str(error))
        return
    if (state.hexdigest(), len(ids)) != (day.state, day.count):
        yield Mismatch(Verdict.WRONG, target, f"has another state than the archive says of {day.date}")
    for market_id in ids:
        # A market that has become a member of an FX family is in no dump any more, and still public.
        if market_id not in asked.site.markets and not _is_public(asked, market_id):
            yield Mismatch(Verdict.WITHDRAWN, target, f"shows market {market_id} on {day.date}, which is not public")
            return


def _is_public(asked: Inquiry, market_id: str) -> bool:
    return asked.reader.get(f"{keys.MARKETS}/{market_id}").status == HTTPStatus.OK
