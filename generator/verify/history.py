"""The record of accuracy: what the closes of the dump and the outcomes of its markets make it."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from generator.api import keys
from generator.api.downloads import CLOSES, PeriodFile
from generator.api.history import History
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.site import history
from generator.verify import parquet_file
from generator.verify.expected import ExpectedSite
from generator.verify.inquiry import Inquiry, stale
from generator.verify.mismatches import Mismatch, Verdict, parsed


def requests(site: ExpectedSite) -> int:
    """How many requests the check takes."""
    return 1 + len(site.dump.table(CLOSES)) if site.dump and site.offers.history else 0


def check_history(asked: Inquiry) -> Iterator[Mismatch]:
    """Make it again, if the files can be read."""
    head = asked.site.dump
    if head is None or head.closes is None or not asked.site.offers.history:
        return
    answer = asked.reader.get(keys.HISTORY)
    shown, broken = parsed(answer, History)
    yield from broken
    try:
        made = history.figures(head, asked.site.catalog, partial(_rows, asked))
    except (ConfigError, ValueError):
        return  # whoever checks the files says what is wrong with them
    if shown is None or shown == made:
        return
    if shown.as_of < made.as_of:
        yield stale(asked, answer, made.as_of)
    else:
        text = f"is not what the closes and outcomes of the dump make it{answer.age}"
        yield Mismatch(Verdict.WRONG, answer.target, text)


def _rows(asked: Inquiry, files: Sequence[PeriodFile], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of the dump's files. Raises ValueError or ConfigError if they cannot be read."""
    for file in files:
        found = parquet_file.opened(asked, file, CLOSES)
        if found is None or isinstance(found, Mismatch):
            raise ValueError(file.key)
        yield from parquet.values(found.body, columns)
