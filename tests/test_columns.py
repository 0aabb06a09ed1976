"""The table of columns in docs/your-database.md has those of the code, and what it says is what builds do."""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from generator.api import contract, keys
from generator.builder.report import Report
from generator.markets import question_rows, row_validation
from generator.markets.quarantine import Quarantine
from generator.source.relations import ALL_RELATIONS, OPTIONAL, QUESTION_RELATIONS, RELATIONS, Kind
from tests.support.readers.pages import PAGES
from tests.support.sites.builds import NOW, build_now, make_config
from tests.support.sites.rows import insert, market_id, market_row

PAGE: Final = "docs/your-database.md"
HEAD: Final = (
    "| relation | column | type | what it is, and its unit | values | NULL | example |\n|---|---|---|---|---|---|---|\n"
)
TYPES: Final[dict[Kind, str]] = {"id": "UUID", "integer": "whole number", "timestamp": "time"}


class ShownColumn(NamedTuple):
    """A row of the table, without relation and name of the column."""

    types: str
    means: str
    values: str
    null: str
    example: Any


def table() -> dict[str, dict[str, ShownColumn]]:
    """The table with which the page begins, by relation and column, optional ones included."""
    found = dict[str, dict[str, ShownColumn]]()
    for line in re.match(r"(?:\|.*\n)*", PAGES[PAGE].partition(HEAD)[2])[0].splitlines():  # type: ignore[index]
        relation, name, types, means, values, null, example = line.strip("| ").split(" | ")
        is_number = types.endswith(("number", "boolean"))
        shown = json.loads(example.strip("`")) if is_number else example.strip("`")
        found.setdefault(relation, {})[name] = ShownColumn(types, means, values, null, shown)
    return found


TABLE: Final = table()
ALL: Final = {
    relation: {re.sub(r"`| \(optional\)", "", name): column for name, column in columns.items()}
    for relation, columns in TABLE.items()
}
THEN: Final = "2026-01-01 00:00"
OWN: Final = str(ALL["markets"]["id"].example)
#: Columns that say what is published and how, and are not published themselves.
UNSEEN: Final = {*("approval", "is_listed", "is_public", "market_id", "position"), *OPTIONAL["markets"]}


def _types(*kinds: Kind) -> str:
    *others, last = (TYPES.get(kind, kind) for kind in kinds)
    return f"{', '.join(others)} or {last}" if others else last


def test_the_page_begins_with_the_columns_of_the_code() -> None:
    required = {
        relation: {f"`{name}`": _types(kind) for name, kind in held.items()} for relation, held in ALL_RELATIONS.items()
    }
    for relation, held in OPTIONAL.items():
        required[relation] |= {f"`{name}` (optional)": _types(*kinds) for name, kinds in held.items()}
    shown = {relation: [(name, column.types) for name, column in held.items()] for relation, held in TABLE.items()}
    assert shown == {relation: [*held.items()] for relation, held in required.items()}
    assert all(column.means for held in ALL.values() for column in held.values())
    assert len(PAGES[PAGE].partition(HEAD)[0].splitlines()) < 12


# ── what it says is true ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def columns(database: sqlite3.Connection) -> sqlite3.Connection:
    """An empty database with the optional columns, too."""
    for name in OPTIONAL["markets"]:
        database.execute(f"ALTER TABLE markets ADD COLUMN {name}")
    return database


def examples(relation: str, **replaced: Any) -> dict[str, Any]:
    """A row of examples, as of an open market."""
    return {name: column.example for name, column in ALL[relation].items()} | replaced


UNSETTLED: Final = {"resolution": None, "resolved_at": None}


def insert_examples(database: sqlite3.Connection) -> None:
    """A row of examples in each relation; the market has no outcome."""
    insert(database, "markets", **examples("markets", **UNSETTLED))
    for relation in RELATIONS.keys() - {"markets"}:
        insert(database, relation, **examples(relation))


def build(folder: Path) -> Report:
    settings = {"variant": "extended", "market_url": "https://example.org/{key}"}
    return build_now(make_config(folder, **settings), invalid=True)


def leaves(value: Any) -> Iterator[Any]:
    """Every value in JSON that holds no others, with the name it stands under."""
    if isinstance(value, dict):
        for name, held in value.items():
            yield from ((name, leaf) if leaf_name is None else (leaf_name, leaf) for leaf_name, leaf in leaves(held))
    elif isinstance(value, list):
        for held in value:
            yield from leaves(held)
    else:
        yield None, value


def test_every_example_is_published_as_it_stands(tmp_path: Path, columns: sqlite3.Connection) -> None:
    insert_examples(columns)
    settled = {"id": market_id(2), "slug": None, "key": "2", "status": "resolved"}
    insert(columns, "markets", **examples("markets", **settled))
    report = build(tmp_path)
    assert (report.built, [*report.quarantine], report.remarks) == (2, [], [])
    details = [json.loads((tmp_path / "output" / keys.detail(key)).read_bytes()) for key in (OWN, market_id(2))]
    shown = {*leaves(details)}
    expected = {
        (names.get((relation, name), to_camel(name)), _wire(column))
        for names in [{("fills", "created_at"): "timestamp", ("probabilities", "recorded_at"): "timestamp"}]
        for relation, held in ALL.items()
        if relation in RELATIONS
        for name, column in held.items()
        if name not in UNSEEN and name != "side"
    }
    assert len(expected) > 30
    assert expected - shown == set()
    assert details[0]["orderBook"]["bids"] == [{"price": 0.4, "amount": 5}]


def _wire(column: ShownColumn) -> Any:
    return row_validation.timestamp(column.example) if column.types == "time" else column.example


def test_null_is_refused_exactly_where_the_table_says_so(tmp_path: Path, columns: sqlite3.Connection) -> None:
    insert_examples(columns)
    for number, name in enumerate(ALL["markets"], start=2):
        row = {"id": market_id(number), "slug": f"s-{number}", "key": f"k{number}"}
        insert(columns, "markets", **examples("markets", **row, **UNSETTLED) | {name: None})
    for number, name in enumerate(RELATIONS["fx_members"], start=100):
        insert(columns, "markets", **examples("markets", id=market_id(number), slug=None, key=None, **UNSETTLED))
        insert(columns, "fx_members", **examples("fx_members", market_id=market_id(number)) | {name: None})
    for relation in ("market_categories", "orders", "fills", "probabilities"):
        for name in RELATIONS[relation]:
            insert(columns, relation, **examples(relation) | {name: None})
    report = build(tmp_path)
    refused = set()
    for bad in report.quarantine:
        column = bad.reason.partition(":")[0]
        refused.add((bad.relation, column) if "." not in column else tuple(column.split(".")))
    assert refused == {
        (relation, name) for relation in RELATIONS for name, column in ALL[relation].items() if column.null == "no"
    }
    assert report.hidden == [column.null for column in ALL["markets"].values()].count("hidden") == 2
    assert report.remarks == []


def accepts(**columns: Any) -> bool:
    """Whether a market with these values would be published."""
    try:
        row_validation.market(market_row(**columns), fx=None, fills24h=0, as_of=NOW)
    except ValidationError:
        return False
    return True


def test_the_values_of_words_are_all_that_are_taken() -> None:
    taken = {"status": contract.MARKET_STATUSES, "resolution": contract.RESOLUTIONS}
    for name, words in taken.items():
        shown = ALL["markets"][name].values.replace(" or ", ", ").split(", ")
        assert shown == [f"`{word}`" for word in words]
        assert all(accepts(**{"status": "resolved", name: word}) for word in words)
        assert not any(accepts(**{"status": "resolved", name: word}) for word in ("OPEN", "yes", "N/A", "", 1))


def test_the_lengths_of_texts_are_those_that_hold() -> None:
    for relation, lengths in row_validation.LENGTHS.items():
        for name, longest in lengths.items():
            assert re.search(rf"(?:at most|1 to) {longest:,} ", ALL[relation][name].values), name
    assert f"at most {contract.CATEGORIES_MAX} a market" in ALL["market_categories"]["category"].values


@pytest.mark.parametrize(
    ("model", "relation", "fixed"),
    [
        (row_validation.LevelRow, "orders", {"price": 0.5, "amount": 1}),
        (row_validation.FillRow, "fills", {"id": OWN, "amount": 1, "shares": 1, "price": 0.5, "timestamp": THEN}),
        (row_validation.PointRow, "probabilities", {"timestamp": THEN, "prob": 0.5}),
        (None, "markets", {}),
    ],
)  # fmt: skip
def test_the_bounds_of_numbers_are_those_that_hold(model: Any, relation: str, fixed: dict[str, Any]) -> None:
    numbers = {name: ALL[relation][name] for name, kind in RELATIONS[relation].items() if kind in {"number", "integer"}}
    assert numbers
    for name, column in numbers.items():
        least, greatest = _bounds(column)
        above = {greatest + 0.5: False} if greatest else {1e300: True}
        for value, is_within in {least: True, least - 0.5: False, greatest or 1e9: True, **above}.items():
            if model is None:
                assert accepts(**{name: value}) is is_within, (name, value)
            elif relation == "fills" and name == "price":
                assert (model.model_validate({**fixed, name: value}).price == value) is is_within
            else:
                assert _takes(model, {**fixed, name: value}) is is_within, (name, value)


def _bounds(column: ShownColumn) -> tuple[float, float | None]:
    """The smallest and the greatest value."""
    least, _, greatest = column.values.partition(";")[0].partition(" to ")
    return float(least.removesuffix(" or more")), float(greatest) if greatest else None


def _takes(model: Any, values: dict[str, Any]) -> bool:
    try:
        model.model_validate(values)
    except ValidationError:
        return False
    return True


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def refusals(relation: str, **replaced: Any) -> list[str]:
    """The columns for which a row of examples with these values is refused."""
    quarantine = Quarantine()
    row = examples(relation, **replaced)
    if relation == "questions":
        question_rows.valid([row], [], quarantine)
    else:
        question_rows.member([row[name] for name in question_rows.MemberRow.model_fields], OWN, quarantine)
    return [found.reason.partition(":")[0] for found in quarantine]


@pytest.mark.parametrize("relation", QUESTION_RELATIONS)
def test_null_is_refused_in_a_question_exactly_where_the_table_says_so(relation: str) -> None:
    assert refusals(relation) == []
    assert [refusals(relation, **{name: None}) for name in ALL[relation]] == [
        [name] if column.null == "no" else [] for name, column in ALL[relation].items()
    ]


def test_the_words_and_bounds_of_questions_are_those_that_hold() -> None:
    kinds = ALL["questions"]["kind"].values.replace("`", "").split(" or ")
    assert [refusals("questions", kind=word) for word in (*kinds, "Exclusive", "")] == [[], [], ["kind"], ["kind"]]
    for relation, name in (("questions", "title"), ("questions", "description"), ("question_members", "label")):
        most = row_validation.LENGTHS[relation][name]
        assert [refusals(relation, **{name: "x" * (most + more)}) for more in (0, 1)] == [[], [name]]
    for name in ("position", "payout"):
        least, greatest = map(int, ALL["question_members"][name].values.split(" to "))
        assert [refusals("question_members", **{name: value}) for value in (least, greatest)] == [[], []]
        assert [refusals("question_members", **{name: value}) for value in (least - 1, greatest + 1)] == [[name]] * 2
