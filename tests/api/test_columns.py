"""What is said of the columns of the dump's tables has one home: what else describes them is held equal to it."""

import re
from typing import Any, Final, get_args

import pytest

from generator.api import columns
from generator.api.columns import ColumnType
from generator.api.contract import Variant
from generator.api.downloads import TABLES, DumpHead
from generator.downloads import parquet
from generator.site import families
from tests.support.project import ROOT
from tests.support.sites.builds import make_config

#: A schema of OpenAPI with the properties of each table that resources show, too.
SCHEMAS: Final = {
    "markets": "PublicMarketDetailMarket", "history": "ProbabilityPoint", "fills": "PublicRecentFill",
}  # fmt: skip


def test_tables_are_named_as_in_the_head() -> None:
    assert len(columns.NAMES) == 7
    assert {*columns.NAMES} <= {field.alias for field in DumpHead.model_fields.values()}
    assert {*map(columns.name, TABLES)} == {*columns.NAMES} - {columns.MARKETS, columns.QUESTIONS}


@pytest.mark.parametrize("name", columns.NAMES)
def test_every_column_is_told_in_a_sentence(name: str) -> None:
    table = columns.table(name)
    shown = {column.name for column in table.columns}
    assert table.sentence.endswith(".")
    assert {*table.key} <= shown
    for column in table.columns:
        assert re.fullmatch(r"[A-Z`].*\.", column.meaning), column
        assert "[[" not in column.meaning
        assert "{{" not in column.meaning
        assert column.type in get_args(ColumnType)
        assert (column.unit is not None) == (column.type in ("double", "int64") and column.name != "position")
    for own, other, target in table.references:
        assert own in shown
        assert target in {one.name for one in columns.columns(other)}


def test_a_site_has_no_columns_of_what_it_does_not_publish() -> None:
    names = [column.name for column in columns.columns("markets", "core", linked=False)]
    assert not {"slug", "categories", "sponsor", "url"} & {*names}
    assert {*columns.OF_FILLS} <= {column.name for column in columns.columns("candlesDay")}
    assert not {*columns.OF_FILLS} & {column.name for column in columns.columns("candlesHour", fills=False)}
    assert "volume" in {column.name for column in columns.columns("markets", fills=False)}


@pytest.mark.parametrize("variant", ["core", "extended"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_openapi_says_the_same(variant: Variant, name: str, tmp_path: Any) -> None:
    config = make_config(tmp_path, variant=variant, fills_window_step="0")
    properties = families.openapi(config)["components"]["schemas"][SCHEMAS[name]]["properties"]
    own = {columns.OWNER, "fxFamilyMember"}
    # What JSON leaves out is null in a table.
    texts = {key: value["description"].replace("; absent ", "; null ") for key, value in properties.items()}
    told = {key: text for key, text in texts.items() if key not in own}
    found = columns.columns(name, variant, linked=False)
    assert {one.name: one.meaning for one in found if one.name not in own} == told
    assert len(told) > 1


def test_the_page_of_dumps_says_the_same() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", (ROOT / "docs" / "dumps.md").read_text("utf-8"), re.MULTILINE)
    for name in ("candlesDay", "candlesHour", "closes"):
        told = [(column.name, column.meaning) for column in columns.columns(name)]
        assert any(rows[start : start + len(told)] == told for start in range(len(rows))), name


def test_parquet_has_these_columns() -> None:
    for table in (None, parquet.DEFINITIONS, *TABLES):
        schema = parquet.columns_of(table, linked=True)
        told = columns.columns(parquet.name_of(table))
        assert [(field.name, field.nullable) for field in schema] == [(one.name, one.is_nullable) for one in told]
