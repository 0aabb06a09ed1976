"""What `check`, a build's log and its report say of findings."""

from itertools import permutations
from typing import Final

import pytest

from generator.findings import Finding, FindingCounts, error, fine, in_order, warning

REMARK: Final = Finding(topic="empty_question", subject="market", text="question is empty", remedy="write it")
FAULT: Final = Finding(subject="fills", column="amount", text="not a number", remedy="cast it")


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (error("s3://site: is read-only"), "error: s3://site: is read-only"),
        (warning("cron: is late; run it"), "warning: cron: is late; run it"),
        (fine("output: writable"), "fine: output: writable"),
        (REMARK.about("7"), "warning: market 7: question is empty; write it"),
        (REMARK.about("7", "open"), "warning: market 7: question is empty (open); write it"),
        (FAULT.about("f"), "warning: fills f: amount: not a number; cast it"),
        (FAULT.about("f", ""), "warning: fills f: amount: not a number (); cast it"),
    ],
)
def test_a_finding_is_a_line(finding: Finding, line: str) -> None:
    assert str(finding) == line


def test_findings_that_differ_only_in_the_row_are_one_line_with_the_first_as_an_example() -> None:
    findings = [FAULT.about("b", "x"), FAULT.about("a", "z"), FAULT.about("a", "y"), REMARK.about("7")]
    for order in permutations(findings):
        lines = FindingCounts(order).lines(lambda kind, rows: f"{rows} of {kind.subject}", "finding")
        assert [*lines] == [
            "3 of fills: amount: not a number (such as a: y); cast it",
            "1 of market: question is empty (7); write it",
        ]


def test_counts_that_were_made_apart_add_up() -> None:
    findings = [FAULT.about(str(number % 7), str(number % 3)) for number in range(50)]
    whole, parts = FindingCounts(findings), FindingCounts()
    for start in range(0, 50, 8):
        parts.merge(FindingCounts(findings[start : start + 8]))
    assert [*parts] == [*whole] == [(FAULT.about("0", "0"), 50)]
    assert parts.total() == 50


def test_findings_have_an_order_even_if_only_some_have_a_value() -> None:
    findings = [FAULT.about("a"), FAULT.about("a", "x"), REMARK.about("8"), REMARK.about("7"), FAULT.about("b")]
    for order in permutations(findings):
        assert in_order(order) == [FAULT.about("a"), FAULT.about("a", "x"), FAULT.about("b"), *in_order(findings)[3:]]
    assert [finding.key for finding in in_order(findings)] == ["a", "a", "b", "7", "8"]
