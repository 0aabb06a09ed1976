"""Parquet files: what a dump's lines and rows say, in the types people expect, and nothing else."""

import io
from collections.abc import Iterator, Sequence
from copy import copy
from datetime import UTC
from functools import partial
from itertools import count
from typing import Any, Final

import pytest
from arro3.io import read_parquet
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import columns as meaning_of
from generator.api import contract
from generator.api.columns import OWNER
from generator.api.contract import Variant
from generator.downloads import parquet, records
from generator.downloads.periods import DAYS
from tests.support.readers.parquet import rows
from tests.support.sites.builds import VARIANTS
from tests.support.sites.rows import market_id

#: Columns of times, which are text on the wire.
TIMES: Final = ("closeTime", "createdAt", "resolvedAt", "lastActivityAt", "timestamp")
TEXTS: Final = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\n\r"), max_size=20)
NAME: Final = st.text(st.characters(categories=["L", "Zs"]), min_size=1).filter(str.strip)
NAMES: Final = st.lists(NAME, max_size=3)
INSTANTS: Final = st.datetimes().map(lambda at: f"{at.replace(microsecond=0).isoformat()}.{at.microsecond // 1000:03}Z")
AMOUNTS: Final = st.one_of(st.floats(0, allow_infinity=False), st.sampled_from([0.0, 1e-7, 5e-324, 1e300, 0.1 + 0.2]))
PROBABILITIES: Final = st.floats(0, 1)
EXTENDED: Final = {
    **dict.fromkeys(("slug", "creation_source", "sponsor"), st.none() | TEXTS),
    "category": st.none() | NAME,
    "categories": st.none() | NAMES,
}


def market_of(variant: Variant) -> st.SearchStrategy[dict[str, Any]]:
    """The fields of any valid market that a dump can hold, but for its id."""
    return st.fixed_dictionaries(
        {
            "question": TEXTS,
            "status": st.sampled_from(contract.MARKET_STATUSES),
            "prob": PROBABILITIES,
            **dict.fromkeys(("volume", "pool_yes", "pool_no"), AMOUNTS),
            **dict.fromkeys(("close_time", "created_at", "last_activity_at"), INSTANTS),
            "resolution": st.none() | st.sampled_from(contract.RESOLUTIONS),
            "resolved_at": st.none() | INSTANTS,
            "trader_count": st.integers(0, 2**63 - 1),
            "fills24h": st.integers(0, 10),
            "accepting_bets": st.booleans(),
            **dict.fromkeys(("description", "trading_pause_reason"), st.none() | TEXTS),
            "fx_family_member": st.none(),
            **(EXTENDED if variant == "extended" else {}),
        }
    )


def plain(number: int, **fields: Any) -> dict[str, Any]:
    """The fields of a market of the core variant without anything odd."""
    at = "2026-01-31T12:00:00.000Z"
    market = {
        "id": market_id(number), "question": f"Question {number}?", "status": "open", "prob": 0.5, "volume": 1.0,
        "close_time": at, "resolution": None, "created_at": at, "resolved_at": None, "last_activity_at": at,
        "trader_count": 1, "fills24h": 0, "accepting_bets": True, "description": None, "pool_yes": 1.0,
        "pool_no": 1.0, "trading_pause_reason": None, "fx_family_member": None,
    }  # fmt: skip
    return market | fields


def line(market: dict[str, Any]) -> bytes:
    return contract.encode(contract.PublicMarketDetailMarket(**market))


def file_of(make: Any, *arguments: Any) -> tuple[bytes, Any]:
    pieces: list[bytes] = []
    written = make(pieces.append, *arguments)
    return b"".join(pieces), written


def table_of(table: str, values: Sequence[Sequence[Any]], *, fills: bool = True) -> bytes:
    """A file with these rows of a table."""
    found = records.of(table, values, (OWNER, *records.COLUMNS[table]))
    file, written = file_of(partial(records.written, fills=fills), [found], table)
    assert written.rows == len(values)
    return file


def columns(file: bytes) -> list[tuple[str, str, bool]]:
    schema = read_parquet(io.BytesIO(file)).schema
    return [
        (field.name, repr(field.type).strip()[len("arro3.core.DataType<") : -1], field.nullable)
        for field in map(schema.field, schema.names)
    ]


def on_the_wire(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A row as a property of the wire each: times as text, absent for null where the wire leaves it out."""
    text = {name: at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z" for name, at in row.items()
            if name in TIMES and at is not None}  # fmt: skip
    assert all(row[name].utcoffset() == UTC.utcoffset(None) for name in text)
    years = {name: f"{row[name].year:04}{value[value.index('-') :]}" for name, value in text.items()}
    return {name: value for name, value in (row | years).items() if value is not None or name in names}


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=12)
@given(data=st.data())
def test_a_row_says_what_its_line_says(variant: Variant, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(market_of(variant), max_size=4))
    markets = [{"id": market_id(number), **market} for number, market in enumerate(drawn)]
    file, written = file_of(parquet.markets, [*map(line, markets)], variant)
    found = rows(file)
    for row, fields in zip(found, markets, strict=True):
        market = contract.PublicMarketDetailMarket(**fields).model_dump(by_alias=True)
        assert market.pop("fxFamilyMember") is None
        assert on_the_wire(row, [*market]) == market
    assert written.rows == len(markets)


def test_the_rows_of_a_market_are_found_in_all_batches() -> None:
    at = "2026-01-31T12:00:00.000Z"
    file = table_of("history", [(market_id(number), at, 0.5) for number in range(3) for _ in range(15_000)])
    assert parquet.ids(io.BytesIO(file)) == {*map(market_id, range(3))}
    assert len([*parquet.rows(io.BytesIO(file), [market_id(1)])]) == 15_000
    assert len([*parquet.values(io.BytesIO(file), ("prob",))]) == 45_000
    assert parquet.has_any(io.BytesIO(file), [market_id(2)])
    assert not parquet.has_any(io.BytesIO(file), [market_id(3)])
    rest = [*records.read(io.BytesIO(file), "history", {market_id(1)})]
    assert {owner for piece in rest for owner in records.owner_ids(piece)} == {market_id(0), market_id(2)}
    assert sum(map(len, rest)) == 30_000


def test_columns_have_the_types_people_expect() -> None:
    file, _ = file_of(parquet.markets, [], "extended")
    expected = {
        "id": ("Utf8", False), "question": ("Utf8", False), "status": ("Utf8", False), "prob": ("Float64", False),
        "volume": ("Float64", False), "closeTime": ('Timestamp(ms, "UTC")', False), "resolution": ("Utf8", True),
        "createdAt": ('Timestamp(ms, "UTC")', False), "resolvedAt": ('Timestamp(ms, "UTC")', True),
        "lastActivityAt": ('Timestamp(ms, "UTC")', False), "traderCount": ("Int64", False),
        "fills24h": ("Int64", False), "acceptingBets": ("Boolean", False), "slug": ("Utf8", True),
        "category": ("Utf8", True), "categories": ("List(non-null Utf8, field: 'element')", True),
        "description": ("Utf8", True),
        "poolYes": ("Float64", False), "poolNo": ("Float64", False), "tradingPauseReason": ("Utf8", True),
        "creationSource": ("Utf8", True), "sponsor": ("Utf8", True),
    }  # fmt: skip
    assert columns(file) == [(name, *found) for name, found in expected.items()]
    in_core = [name for name in expected if name not in contract.EXTENDED_PROPERTIES]
    assert [name for name, *_ in columns(file_of(parquet.markets, [], "core")[0])] == in_core
    assert [name for name, *_ in columns(table_of("history", []))] == ["marketId", "timestamp", "prob"]
    fills = ["marketId", "id", "amount", "shares", "price", "timestamp"]
    assert [name for name, *_ in columns(table_of("fills", []))] == fills
    candles = ["marketId", "start", "open", "high", "low", "close"]
    assert [name for name, *_ in columns(table_of(DAYS, []))] == [*candles, "volume", "trades"]
    assert [name for name, *_ in columns(table_of(DAYS, [], fills=False))] == candles


def test_a_count_beyond_64_bits_is_the_greatest_that_fits() -> None:
    counts = (2**63 - 1, 2**63, 10**300)
    question = '"traderCount":99999999999999999999'
    lines = [line(plain(number, trader_count=count, question=question)) for number, count in enumerate(counts)]
    found = rows(file_of(parquet.markets, lines, "core")[0])
    assert [(row["traderCount"], row["question"]) for row in found] == [(2**63 - 1, question)] * 3


def lines_of(count: int) -> Iterator[bytes]:
    """Lines that differ in their ids alone."""
    before, after = line(plain(0)).split(market_id(0).encode())
    return (before + market_id(number).encode() + after for number in range(count))


def test_a_dump_is_streamed_a_row_group_at_a_time() -> None:
    taken, seen = count(), list[int]()
    lines = (one for one, _ in zip(lines_of(80_000), taken, strict=False))
    parquet.markets(lambda _: seen.append(copy(taken).__next__()), lines, "core")
    assert seen[0] < 2 * parquet.MARKETS_PER_GROUP
    assert len({*seen}) > 2


def test_a_file_names_its_writer_and_has_statistics_for_readers_to_skip_by() -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    size = parquet.MARKETS_PER_GROUP
    file, _ = file_of(parquet.markets, lines_of(size + 5), "core")
    metadata = pyarrow.read_metadata(io.BytesIO(file))
    ids = [metadata.row_group(group).column(0) for group in range(metadata.num_row_groups)]
    assert [(column.statistics.min, column.statistics.max) for column in ids] == [
        (market_id(0), market_id(size - 1)), (market_id(size), market_id(size + 4))
    ]  # fmt: skip
    assert all(column.has_column_index and column.has_offset_index for column in ids)
    assert {column.compression for column in ids} == {"ZSTD"}
    assert (metadata.created_by, [*metadata.metadata]) == ("public-markets version 1", [b"ARROW:schema"])


def test_a_file_says_what_its_columns_mean_and_states_the_licence_if_there_is_one() -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    stated = '{"license":"CC-BY-4.0","publisher":{"name":"Zoë"}}'
    history = records.of("history", [(market_id(1), "2026-10-01T00:00:00.000Z", 0.5)], (OWNER, "timestamp", "prob"))
    written = {
        "markets": file_of(partial(parquet.markets, stated=stated), lines_of(2), "extended"),
        "questions": file_of(partial(parquet.definitions, linked=False), [], "extended", stated),
        "history": file_of(partial(records.written, fills=False), [history], "history", stated),
    }
    for table, (file, _) in written.items():
        schema = pyarrow.read_schema(io.BytesIO(file))
        shown = {one.name: {key.decode(): text.decode() for key, text in one.metadata.items()} for one in schema}
        assert shown == {
            one.name: {"description": one.meaning, **({"unit": one.unit} if one.unit else {})}
            for one in meaning_of.columns(table, linked=False)
        }
        assert pyarrow.read_metadata(io.BytesIO(file)).metadata[b"dataset"] == stated.encode()


@pytest.mark.parametrize("wrong", [b'{"id":null}', b'{"id":"a"'], ids=["null", "torn"])
def test_what_is_no_market_is_an_error(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="not "):
        file_of(parquet.markets, [wrong], "core")


@pytest.mark.parametrize(
    "damage", [lambda file: file[:-1], lambda file: file[:4] + bytes(300) + file[304:]], ids=["footer", "page"]
)
def test_a_damaged_file_is_an_error(damage: Any) -> None:
    file, _ = file_of(parquet.markets, [line(plain(number)) for number in range(50)], "core")
    with pytest.raises(ValueError, match="Parquet file"):
        parquet.has_any(io.BytesIO(damage(file)), [market_id(1)])


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=str)
def test_a_failure_to_read_or_write_is_raised_as_it_is(
    failure: BaseException, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Any:
        raise failure

    lines = [line(plain(number)) for number in range(10)]
    with pytest.raises(type(failure)) as written:
        parquet.markets(fail, lines, "core")
    with pytest.raises(type(failure)) as read:
        parquet.markets(lambda _: None, map(fail, lines), "core")
    assert written.value is read.value is failure
    assert capfd.readouterr() == ("", "")


def test_values_of_candles_are_those_since_a_time() -> None:
    days = [(market_id(number), f"2026-01-0{day}T00:00:00.000Z", *[0.5] * 4, 1.0, day)
            for number in (1, 2) for day in range(1, 5)]  # fmt: skip
    body = io.BytesIO(table_of(DAYS, days))
    columns, whole = ("start", "trades"), [(day * 86_400_000 + 1_767_139_200_000, day) for day in range(1, 5)]
    assert [*parquet.values(body, columns)] == whole * 2
    assert [*parquet.values(body, columns, since=whole[2][0])] == whole[2:] * 2
    with pytest.raises(ValueError, match="not such a table"):
        next(parquet.values(body, ("prob",)))
