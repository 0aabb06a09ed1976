"""A Parquet file as `verify` reads it: by the head of the dump, and with the columns of its table."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import BinaryIO, NamedTuple

from generator.api.contract import PublicMarketDetail
from generator.api.downloads import DumpFile
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.verify.expected import is_file
from generator.verify.inquiry import Inquiry
from generator.verify.mismatches import Mismatch, Verdict, not_ok
from generator.verify.objects import detail_of
from generator.verify.spooled_body import SpooledBody


class OpenedFile(NamedTuple):
    """A file that can be read, and the markets that it has rows of."""

    target: str
    content: SpooledBody
    ids: set[str]

    @property
    def body(self) -> BinaryIO:
        """Its bytes."""
        return self.content.file


def opened(asked: Inquiry, file: DumpFile, table: str | None = None) -> OpenedFile | Mismatch | None:
    """The file, or what is wrong with it; None if its digest is right, and its rows cannot be read for want of code."""
    answer, content = asked.reader.file(file.key, file.size)
    if answer.status != HTTPStatus.OK:
        return not_ok(answer)
    if not is_file(file, content):
        return Mismatch(Verdict.WRONG, answer.target, "is not the file that the head of the dump names")
    try:
        fills = asked.site.dump is not None and asked.site.dump.has_fills
        parquet.require_columns(content.file, table, asked.site.build.variant, fills=fills)
        return OpenedFile(answer.target, content, parquet.ids(content.file))
    except ConfigError:
        return None
    except ValueError as error:
        return unreadable(answer.target, error)


def withdrawn(asked: Inquiry, file: OpenedFile) -> Iterator[Mismatch]:
    """Tell of a market that the file must not have."""
    for market_id in sorted(file.ids - asked.site.markets.keys())[:1]:
        text = f"shows market {market_id}, which the dump does not have"
        yield Mismatch(Verdict.WITHDRAWN, file.target, text)


def details(asked: Inquiry, ids: Iterable[str]) -> Iterator[PublicMarketDetail | Mismatch]:
    """The details of these markets that are as they must be, and what is wrong with others."""
    for market_id in ids:
        detail, wrong = detail_of(asked, market_id, asked.site.markets[market_id])
        yield from wrong
        if detail and not wrong:
            yield detail


def unreadable(target: str, error: ValueError) -> Mismatch:
    """A file that is damaged."""
    return Mismatch(Verdict.WRONG, target, f"cannot be read as what it must be ({error!s:.200})")
