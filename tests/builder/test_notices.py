"""Remarks about what is published differently than the rows say."""

import json
import sqlite3
from pathlib import Path

from generator.api import keys
from tests.support.builds import build_now, files, make_config
from tests.support.rows import insert_market, market_id

#: When the markets of these tests were settled; no other time.
SETTLED_AT = "2026-01-30T01:02:03.456Z"


def test_an_outcome_before_its_time_is_in_no_byte_and_in_a_remark_that_does_not_tell_it(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1, status="open", resolution="YES", resolved_at=SETTLED_AT)
    insert_market(database, 2, status="closed", resolution="NO")
    insert_market(database, 3, status="closed", resolved_at=SETTLED_AT)
    insert_market(database, 4)
    insert_market(database, 5, status="cancelled", resolution="CANCEL", resolved_at="2026-01-29T00:00:00Z")
    report = build_now(make_config(tmp_path))
    early = "has a resolution or a resolved_at; both are published as null until its status is resolved or cancelled"
    assert report.remarks == [
        f"market {market_id(number)} is {status} but {early}"
        for number, status in ((1, "open"), (2, "closed"), (3, "closed"))
    ]
    assert report.built == 5
    for key, body in files(tmp_path / "output").items():
        assert SETTLED_AT.encode() not in body, key
        assert key == keys.OPENAPI or not {b'"YES"', b'"NO"'} & {*body.replace(b":", b",").split(b",")}, key


def test_a_resolved_market_without_a_resolution_stays_published_with_a_remark(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1, status="resolved", resolved_at=SETTLED_AT)
    insert_market(database, 2, status="resolved", resolution="CANCEL", resolved_at=SETTLED_AT)
    report = build_now(make_config(tmp_path))
    assert report.remarks == [f"market {market_id(1)} is resolved but has no resolution; it is published as it stands"]
    shown = json.loads((tmp_path / "output" / keys.detail(market_id(1))).read_bytes())["market"]
    assert (shown["status"], shown["resolution"], shown["resolvedAt"]) == ("resolved", None, SETTLED_AT)
