"""Markets that pass from one process to another by column."""

import json
import pickle

from generator.markets import columns
from generator.markets.columns import Columns
from generator.markets.market import Fingerprint, Market
from tests.support.sites.rows import FX_MEMBER, public_market


def sent(markets: list[Market]) -> Columns:
    """What another process receives."""
    received: Columns = pickle.loads(pickle.dumps(Columns.of(markets)))  # noqa: S301 - our own
    return received


def test_markets_pass_by_column_without_their_fingerprints() -> None:
    markets = [public_market(1, slug="a"), public_market(2)._replace(categories=("rain",), words=("it", "rains"))]
    versioned = [market._replace(fingerprint=Fingerprint("version", "market")) for market in markets]
    assert sent(versioned).markets({}) == [market._replace(fingerprint=None) for market in markets]
    assert Columns.of([]).markets({}) == Columns().markets({}) == []


def test_markets_pass_through_json_and_equal_ones_are_equal_there() -> None:
    markets = [
        public_market(1, slug="a", fx=FX_MEMBER),
        public_market(2)._replace(categories=("rain",), words=("rains", "it"), until="2026-01-31T13:00:00.000Z"),
    ]
    kept = [*map(columns.plain, markets)]
    again = columns.of_plain(json.loads(json.dumps(kept)))
    assert [*map(columns.plain, again)] == kept
    assert again[0].fx is not None
    assert again[1] == markets[1]._replace(words=("it", "rains"))
    other = markets[1]._replace(words=("it", "rains"), fingerprint=Fingerprint("version", "market"))
    assert columns.plain(other) == kept[1], (
        "a process hashes texts in its own way, so sets of words have their own order"
    )
    assert columns.of_plain([]) == []
