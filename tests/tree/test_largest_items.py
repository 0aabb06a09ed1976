"""The largest item that can be published: every edge reads the chunks that hold it, and answers pages of it."""

import json
from itertools import pairwise
from typing import Final

import pytest

from generator.api import contract, slugs
from generator.edge import cloudfront, nginx
from generator.markets import row_validation
from generator.markets.market import Market
from generator.markets.row_validation import ExtendedFields
from generator.tree import borders
from tests.support.sites.builds import NOW
from tests.support.sites.rows import market_row

#: Of all characters that a question may have, those that become most bytes: in UTF-8, and in JSON within JSON.
LARGEST: Final = {"utf-8": "🙂", "json": '"', "line": "\n"}
NUMBER: Final = 1.7976931348623157e308


def largest(character: str) -> bytes:
    """An item with the longest value in every field."""
    row = market_row(
        question=character * contract.QUESTION_LENGTH, status="cancelled", resolution="CANCEL",
        resolved_at="2026-01-15 00:00:00.000000", prob=1.2345678901234567e-100, volume=NUMBER, trader_count=10**308,
    )  # fmt: skip
    names = [
        f"{number:02}" + ("🙂" if character == "\n" else character) * (contract.CATEGORY_LENGTH - 2)
        for number in range(contract.CATEGORIES_MAX)
    ]
    shown = ExtendedFields("s" * slugs.REFERENCE_LENGTH, names)
    return Market.of(row_validation.market(row, fx=None, fills24h=10**12, as_of=NOW, extended=shown)).body


@pytest.mark.parametrize("character", LARGEST.values(), ids=LARGEST)
def test_a_hundred_of_the_largest_items_fit_into_a_chunk_and_a_page_into_every_edge(character: str) -> None:
    item = largest(character)
    page = contract.LIMIT_MAX * (len(item) + 2)
    assert page < borders.LARGEST, "so that a page lies in two chunks at most"
    assert nginx.LARGEST_OBJECT > borders.LARGEST + 1_000
    # Lambda@Edge answers with JSON that has the page as a text, and halves a page until that fits.
    alone = json.dumps({"items": [json.loads(item)], "nextCursor": "x" * 100}, ensure_ascii=False)
    assert len(json.dumps(alone, ensure_ascii=False).encode()) < cloudfront.LARGEST_ANSWER / 25


def test_chunks_of_the_largest_items_have_at_least_a_hundred() -> None:
    found = [*pairwise(borders.of([largest("🙂")] * 2_000))]
    assert all(end - start >= contract.LIMIT_MAX for start, end in found[1:])
    assert len(found) > 10, "of at most two megabytes"
