"""The data in the inspection page is correct, and bounded whatever the size of the catalog."""

import json
from typing import Any

from generator.api.contract import QUESTION_LENGTH
from generator.builder.inspection import excerpts
from generator.builder.inspection.excerpts import DESCRIPTION, FILLS, LEVELS, POINTS, Excerpts
from generator.markets import row_validation
from generator.markets.detail import Book, Detail, Level
from generator.markets.fills import Fill
from tests.support.sites.builds import NOW
from tests.support.sites.rows import catalog_of, fill_id, market_id, market_row, public_market


def shown(number: int = 1, points: int = 0, levels: int = 0, fills: int = 0, **columns: Any) -> bytes:
    """The body of the detail of a market with that many points, levels on each side, and fills."""
    side = [Level(price=0.9 - level / 100, amount=1.5) for level in range(levels)]
    return Detail(
        market=row_validation.market(market_row(number, **columns), fx=None, fills24h=0, as_of=NOW),
        order_book=Book(bids=side, asks=side),
        recent_fills=[
            Fill(id=fill_id(number), amount=1.0, shares=2.0, price=None, timestamp=NOW) for number in range(fills)
        ],
        points=[
            (f"2026-01-{1 + at // 1440:02}T{at // 60 % 24:02}:{at % 60:02}:00.000Z", at / 9999) for at in range(points)
        ],
    ).body()


def held(made: Excerpts) -> Any:
    return json.loads(made.encoded())


def test_no_text_can_end_the_element_that_holds_the_data() -> None:
    text = "</script><!-- <b>"
    made = Excerpts(catalog_of(public_market(1, question=text)))
    made.keep(market_id(1), excerpts.encoded(shown(1, question=text, description=text)))
    assert b"<" not in made.encoded()
    assert held(made)["items"][0]["question"] == text
    assert held(made)["excerpts"][0]["description"] == text


def test_giant_texts_do_not_make_a_giant_page() -> None:
    giants = [public_market(number, question="\U0001d7d8" * QUESTION_LENGTH) for number in range(700)]
    made = Excerpts(catalog_of(*giants, public_market(999, trader_count=99)))
    items = held(made)["items"]
    assert items[0]["id"] == market_id(999)
    assert 0 < len(items) - 1 < len(giants)
    assert len(made.encoded()) < excerpts.ITEM_BYTES + 100_000


def test_only_the_most_popular_have_excerpts() -> None:
    count = excerpts.EXCERPTS + 5
    made = Excerpts(catalog_of(*[public_market(number, trader_count=number) for number in range(count)]))
    for number in range(count):
        made.keep(market_id(number), excerpts.encoded(shown(number)))
    assert {excerpt["id"] for excerpt in held(made)["excerpts"]} == {market_id(number) for number in range(5, count)}


def test_an_excerpt_is_short_and_states_the_full_counts() -> None:
    made = excerpts.excerpt(json.loads(shown(points=500, levels=20, fills=50, description="d" * 9_999)))
    assert (len(made["description"]), made["isCut"]) == (DESCRIPTION, True)
    assert made["bids"] == [20, *([round(0.9 - level / 100, 2), 1.5] for level in range(LEVELS))]
    assert made["fills"] == [50, *[[NOW, None, 1.0, 2.0]] * FILLS]
    count, start, *flat = made["history"]
    assert (count, start, len(flat)) == (500, "2026-01-01T00:00:00.000Z", 2 * POINTS)
    assert (flat[:2], flat[-2:]) == ([0, 0], [499 * 60, round(499 / 9.999)])
    assert len(json.dumps(made, default=str)) < 3_000
