"""All quarantined rows are counted, and a bounded number is named."""

import json
from typing import Final

import pytest

from generator.findings import LINES, Finding
from generator.markets.quarantine import NAMED_AT_MOST, Quarantine, QuarantinedRow, printable


def fault(column: str, text: str, value: str | None = None) -> Finding:
    return Finding(column=column, text=text, value=value, remedy="correct it")


FAULT: Final = fault("prob", "bad")


def test_the_same_rows_are_named_in_whatever_order_and_parts_they_come() -> None:
    rows = [(relation, key) for key in range(10, 30) for relation in ("fills", "markets")] * 2
    collectors = list[Quarantine]()
    for size, step in ((len(rows), 1), (len(rows), -1), (7, 1), (3, -1)):
        ordered, whole = rows[::step], Quarantine(5)
        for start in range(0, len(rows), size):
            part = Quarantine(5)
            for relation, key in ordered[start : start + size]:
                part.reject(relation, key, FAULT)
            whole.add(part)
        collectors.append(whole)
    first, *others = ([(row.relation, row.key, row.rows) for row in whole] for whole in collectors)
    assert first == [("markets", str(key), 2) for key in range(10, 15)], "markets before their rows"
    assert others == [first] * 3
    assert {(whole.unnamed(), whole.total("fills")) for whole in collectors} == {(len(rows) - 10, len(rows) // 2)}
    assert len({tuple(whole.lines()) for whole in collectors}) == 1


def test_ten_million_broken_rows_do_not_fill_the_memory(quarantine: Quarantine) -> None:
    extra = 5_000
    for number in range(NAMED_AT_MOST + extra):
        quarantine.reject("fills", number, FAULT)
    assert len(list(quarantine)) == NAMED_AT_MOST
    assert quarantine.total("fills") == quarantine.total() == NAMED_AT_MOST + extra
    assert quarantine.unnamed() == extra
    quarantine.reject("fills", 0, FAULT)
    assert next(iter(quarantine)) == QuarantinedRow("fills", "0", "", "prob: bad", 2), "named already"
    assert quarantine.unnamed() == extra


def test_a_rejection_names_its_row_shortly_and_as_people_call_it(quarantine: Quarantine) -> None:
    reason = "x" * 2_000
    quarantine.reject("markets", "k" * 10_000, fault("prob", reason), title="Will it\nsnow? " + "!" * 100)
    (row,) = quarantine
    assert (len(row.key), row.reason, row.rows) == (80, f"prob: {reason}", 1)
    assert row.title.startswith("Will it\\nsnow? !!!")
    assert len(row.title) <= 80


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("Will it snow? ☃ قبل", "Will it snow? ☃ قبل"), ("", ""), (None, "None"), (1.2, "1.2"),
        (b"\xff", "b'\\xff'"), ("x" * 79, "x" * 79), ("x" * 1_000_000, "x" * 79 + "…"),
        ("\0" * 1_000_000, "\\x00" * 19 + "\\x0…"),
    ],
    ids=lambda one: repr(one)[:9],
)  # fmt: skip
def test_a_value_is_shown_shortly_a_text_as_it_is_and_others_as_python_writes_them(value: object, shown: str) -> None:
    assert printable(value) == shown


@pytest.mark.parametrize(
    "text", ["two\nlines", "a\u2028b", "nul\0here", "bell\x07", "lone \ud800", "\udcff", "\u202eevil"]
)
def test_whatever_it_holds_it_is_shown_on_one_line_that_can_be_written(text: str) -> None:
    line = printable(text)
    assert line.isprintable()
    assert line.splitlines() == [line]
    assert json.loads(json.dumps(line)).encode()


def test_thousands_of_equal_faults_are_one_line_with_an_example_and_the_remedy(quarantine: Quarantine) -> None:
    for number in range(NAMED_AT_MOST + 2_387):
        quarantine.reject(
            "fills", number, Finding(column="id", text="not a UUID", remedy="make some", value=str(number))
        )
    (line,) = quarantine.lines()
    assert line == "fills: 12,387 rows quarantined: id: not a UUID (such as 0); make some"


def test_a_line_quotes_the_value_of_its_example_and_a_row_stands_in_the_line_of_each_of_its_faults(
    quarantine: Quarantine,
) -> None:
    quarantine.reject("markets", "b", fault("prob", "bad", "7"), fault("volume", "must not be NULL"))
    quarantine.reject("markets", "a", fault("prob", "bad", "9"))
    assert list(quarantine.lines()) == [
        "markets: 2 rows quarantined: prob: bad (such as a: 9); correct it",
        "markets: 1 row quarantined: volume: must not be NULL (b); correct it",
    ]
    assert quarantine.total() == 2


def test_many_kinds_of_fault_fit_the_screen_and_none_of_a_relation_hides_those_of_another(
    quarantine: Quarantine,
) -> None:
    for column in range(3 * LINES):
        for row in range(2):
            quarantine.reject("fills", row, fault(f"column{column:02}", "bad"))
    quarantine.reject("markets", 1, FAULT)
    lines = list(quarantine.lines())
    assert [line.split(":")[0] for line in lines[:-1]] == ["fills"] * (LINES - 1) + ["markets"]
    assert lines[-1] == f"{2 * LINES + 1} more kinds of fault that quarantine rows, not shown"
