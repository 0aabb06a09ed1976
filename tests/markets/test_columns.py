"""Markets that pass from one process to another by column."""

import pickle

from generator.markets.columns import Columns
from generator.markets.fingerprint import Fingerprint
from generator.markets.market import Market
from tests.support.sites.rows import public_market


def sent(markets: list[Market]) -> Columns:
    """What another process receives."""
    received: Columns = pickle.loads(pickle.dumps(Columns.of(markets)))  # noqa: S301 - our own
    return received


def test_markets_pass_by_column_without_their_fingerprints() -> None:
    markets = [public_market(1, slug="a"), public_market(2)._replace(categories=("rain",), words=("it", "rains"))]
    versioned = [market._replace(fingerprint=Fingerprint("version", "market")) for market in markets]
    assert sent(versioned).markets({}) == [market._replace(fingerprint=None) for market in markets]


def test_no_markets_pass_by_column_as_none() -> None:
    assert Columns.of([]).markets({}) == Columns().markets({}) == []


def test_equal_texts_of_markets_that_passed_are_one() -> None:
    one = dict[str, str]()
    held = [
        market
        for number in range(2)
        for market in sent([public_market(number)._replace(categories=("rain",), words=("rains",))]).markets(one)
    ]
    first, second = ((market.status, *market.categories, *market.words) for market in held)
    assert all(text is other for text, other in zip(first, second, strict=True))
