"""What a worker returns is the part that was asked for, or nothing is taken from it."""

import json
from dataclasses import replace
from io import BytesIO
from math import inf, nan
from typing import Any, Final

import pytest

from generator.api import keys
from generator.builder import remote_result
from generator.builder.last_details import EVERY_DETAIL
from generator.builder.notices import Topic
from generator.builder.part_rendering import NewMarketObject, ReadDetail, RenderedPart, Task
from generator.config.downloads import Dumps
from generator.config.settings import Config
from generator.downloads import records
from generator.downloads.histories import HeldRows, LastHistories, LaterRow, NewHistories, SpoolSegment, closing
from generator.errors import ClusterError
from generator.findings import Finding
from generator.markets.columns import NAMES, Columns
from generator.markets.fills import NO_TRADES, Trades
from generator.markets.market import Fingerprint
from generator.markets.quarantine import Quarantine
from generator.source.queries import EVERYTHING
from generator.source.survey import Facts
from generator.tree import manifest
from generator.tree.fingerprints import MadeOf
from tests.support.sites.builds import AS_OF, NOW
from tests.support.sites.rows import market_id, public_market

FIRST, SECOND, BLOCKED = market_id(1), market_id(2), market_id(4)
MARKET = public_market(1, question='Ünder "10"?', volume=0.1, close_time="2026-03-01 12:00:00")._replace(
    slug="ten", categories=("crypto", "a-b--0123456789"), words=("under", "10"), fingerprint=Fingerprint("v", "m")
)
BODY = b'{"market":"\xc3\xbc"}\n'
MADE = MadeOf("v", "m", len(BODY), 2, "")
READ = ReadDetail(
    FIRST, "ten", BODY, manifest.digest(keys.detail(FIRST), BODY), len(BODY), MADE,
    is_thinned=False, is_audited=False, has_findings=False,
    trades=Trades(has_newer=True, lowest=0.2, highest=0.4, older=3),
)  # fmt: skip
KEPT = ReadDetail(
    SECOND, None, None, "digest", 7, None, is_thinned=True, is_audited=True, has_findings=True, trades=NO_TRADES
)
SLUGS: Final = {FIRST: "ten", SECOND: None, BLOCKED: None}
TASK = Task(
    Config(), EVERYTHING, Facts(), AS_OF, NOW, EVERY_DETAIL, blocked=frozenset({BLOCKED}), known={SECOND: MADE},
    in_place={SECOND: "digest"},
)  # fmt: skip


REMARK = Finding(topic=Topic.FUTURE_TIME, subject="market", text="what", remedy="effect", key=FIRST, value="value")


def part(**changes: Any) -> RenderedPart:
    found = Quarantine()
    found.reject("markets", SECOND, Finding(column="prob", text="is too large", value="7"), title="Two")
    whole = RenderedPart(
        Columns.of([MARKET]), [READ, KEPT], [NewMarketObject(MARKET, b"{}")], [SECOND], found, [REMARK], [SECOND]
    )
    return replace(whole, **changes)


def shown(found: RenderedPart) -> list[Any]:
    return [
        found.markets.markets({}), found.details, found.updates, found.kept, found.quarantine.plain(), found.remarks,
        found.false_versions,
    ]  # fmt: skip


@pytest.mark.parametrize("sent", [part(), RenderedPart()])
def test_a_part_arrives_as_it_was_rendered(sent: RenderedPart) -> None:
    assert shown(remote_result.parsed(remote_result.encoded(sent), SLUGS, TASK)) == shown(sent)


def found_in(relation: str, value: str) -> Quarantine:
    found = Quarantine()
    found.reject(relation, SECOND, Finding(column="prob", text="is too large", value=value))
    return found


def with_(**changes: Any) -> RenderedPart:
    return part(markets=Columns.of([MARKET._replace(**changes)]))


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (with_(id="../../manifest"), "another part"),
        (part(details=[READ._replace(market_id="../../manifest")]), "another part"),
        (part(kept=[market_id(3)]), "another part"),
        (with_(categories=("../../../etc",)), "no slug"),
        (with_(status="secret"), "does not parse"),
        (part(markets=Columns.of([MARKET, MARKET])), "twice"),
        (part(markets=Columns([*Columns.of([MARKET]).values[:-1], []])), "different lengths"),
        (part(details=[READ._replace(size=len(BODY) + 1)]), "too short"),
        (part(details=[READ._replace(size=-1)]), "too short"),
        (part(details=[READ._replace(size=1)]), "too long"),
        (part(details=[READ._replace(digest=KEPT.digest)]), "digest"),
        (part(details=[READ._replace(body=None)]), "not in place"),
        (part(details=[KEPT._replace(digest="other")]), "not in place"),
        (part(kept=[BLOCKED]), "nothing is known of"),
        (part(details=[KEPT._replace(market_id=BLOCKED)]), "a blocked market"),
        (part(updates=[NewMarketObject(MARKET._replace(id=BLOCKED, slug=None), b"{}")]), "a blocked market"),
        (with_(slug="of-another-market"), "slug of another market"),
        (part(details=[KEPT._replace(slug="of-another-market")]), "slug of another market"),
        (part(remarks=[REMARK._replace(key="\x1b[2J")]), "control character"),
        (part(quarantine=found_in("markets", "\x1b[2J")), "control character"),
    ],
)
def test_a_part_that_nobody_asked_for_is_refused(sent: RenderedPart, reason: str) -> None:
    with pytest.raises(ClusterError, match=f"something else than a part of the site .*{reason}"):
        remote_result.parsed(remote_result.encoded(sent), SLUGS, TASK)


def records_of(*rows: tuple[str, str, float], table: str = "history") -> bytes:
    """Points of these markets, at these times."""
    return records.of(table, rows, (records.OWNER, "timestamp", "prob")).tobytes()


def point(market: str, month: int) -> tuple[str, str, float]:
    return market, f"2026-0{month}-01T00:00:00.000Z", 0.5


#: Both markets were read.
READ_BOTH = part(markets=Columns.of([MARKET, MARKET._replace(id=SECOND, slug=SLUGS[SECOND])]))
HELD = HeldRows("v", closed_at=closing(MARKET))
ROWS = records_of(point(FIRST, 1), point(SECOND, 1), point(FIRST, 2))
SIZE = len(ROWS) // 3
BACKWARDS = records_of(*((FIRST, f"2026-01-0{day}T00:00:00.000Z", 0.5) for day in (2, 1)))
JANUARY = SpoolSegment("history", "2026-01", FIRST, SECOND, 0, 2 * SIZE)
FEBRUARY = SpoolSegment("history", "2026-02", FIRST, FIRST, 2 * SIZE, SIZE)


CANDLE = LaterRow("candles/day", "2026-01-31T00:00:00.000Z", (None, None, None, None, 1e300, 1))
CLOSE = LaterRow("closes", "2026-03-01T12:00:00.000Z", (0.5, None, None))


def arrived(*segments: SpoolSegment, rows: bytes = b"", held: HeldRows = HELD) -> RenderedPart:
    """What arrives of a part with histories."""
    found = NewHistories(is_first=True, entries={FIRST: held, SECOND: held}, segments=[*segments])
    sent = remote_result.encoded(replace(READ_BOTH, histories=found, spool=BytesIO(rows)))
    return remote_result.parsed(sent, SLUGS, replace(TASK, histories=LastHistories()))


def test_rows_of_histories_arrive_as_they_were_collected_and_those_that_are_not_over_too() -> None:
    held = HELD._replace(later=(CANDLE,), close=(CLOSE,))
    found = arrived(JANUARY, FEBRUARY, rows=ROWS, held=held)
    assert found.histories
    assert (found.histories.segments, found.histories.entries) == ([JANUARY, FEBRUARY], {FIRST: held, SECOND: held})
    assert found.spool
    assert found.spool.read() == ROWS


@pytest.mark.parametrize(
    ("segments", "rows", "reason"),
    [
        ((JANUARY, FEBRUARY._replace(month="2026-03")), ROWS, "rows of another month"),
        ((JANUARY, FEBRUARY), ROWS.replace(SECOND.encode(), BLOCKED.encode()), "rows of other markets"),
        ((JANUARY._replace(last=FIRST), FEBRUARY), ROWS, "rows of other markets"),
        ((JANUARY, FEBRUARY), ROWS.replace(SECOND.encode(), b"../" * 12), "an id that is"),
        ((JANUARY, FEBRUARY), ROWS[SIZE : 2 * SIZE] + ROWS[:SIZE] + ROWS[2 * SIZE :], "not in order"),
        ((JANUARY._replace(last=FIRST),), BACKWARDS, "not in order"),
        ((JANUARY._replace(month="NaT"), FEBRUARY), ROWS, "that are none"),
        ((JANUARY, FEBRUARY, FEBRUARY._replace(offset=3 * SIZE)), ROWS, "too short"),
        ((JANUARY, FEBRUARY), records_of((*point(FIRST, 1)[:2], inf)) + ROWS[SIZE:], "infinite"),
        ((JANUARY, FEBRUARY), records_of((*point(FIRST, 1)[:2], nan)) + ROWS[SIZE:], "not rows of this table"),
        ((JANUARY, FEBRUARY._replace(table="markets")), ROWS, "that are none"),
        ((JANUARY, FEBRUARY._replace(offset=0)), ROWS, "that are none"),
        ((JANUARY, FEBRUARY._replace(path="/etc/passwd")), ROWS, "that are none"),
        ((JANUARY, FEBRUARY._replace(size=SIZE - 1)), ROWS[:-1], "multiple of"),
        ((JANUARY, FEBRUARY, FEBRUARY._replace(offset=3 * SIZE, size=0)), ROWS, "that are none"),
        ((JANUARY, FEBRUARY), ROWS + b"x", "too long"),
    ],
)
def test_rows_of_histories_that_nobody_asked_for_are_refused(
    segments: tuple[SpoolSegment, ...], rows: bytes, reason: str
) -> None:
    with pytest.raises(ClusterError, match=reason):
        arrived(*segments, rows=rows)


@pytest.mark.parametrize(
    "held",
    [
        HELD._replace(later=(CLOSE,)),
        HELD._replace(close=(CANDLE,)),
        HELD._replace(later=(CANDLE._replace(table="weeks"),)),
        HELD._replace(later=(CANDLE._replace(values=(*CANDLE.values, 1)),)),
        HELD._replace(later=(CANDLE._replace(values=(*CANDLE.values[:-1], -1)),)),
        HELD._replace(later=(CANDLE._replace(values=(*CANDLE.values[:-1], 2**63)),)),
        HELD._replace(closed_at="", later=(CANDLE,)),
        HELD._replace(closed_at="2026-01-01T00:00:00.000Z"),
        HELD._replace(later=(CANDLE._replace(time="../../a"),)),
        HELD._replace(close=(CLOSE._replace(values=(None, None, None)),)),
        HELD._replace(close=(CLOSE._replace(values=(2.0, None, None)),)),
    ],
)
def test_a_row_that_a_later_build_could_not_put_into_the_files_is_refused(held: HeldRows) -> None:
    with pytest.raises(ClusterError, match=r"later rows|not those of their market"):
        arrived(held=held)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e400])
def test_a_number_that_json_has_not_is_refused(number: float) -> None:
    content = remote_result.encoded(part())
    end = 8 + int.from_bytes(content[:8])
    head = json.loads(content[8:end])
    head["markets"][NAMES.index("volume")] = [number]
    changed = json.dumps(head).encode()
    with pytest.raises(ClusterError, match="does not parse"):
        remote_result.parsed(len(changed).to_bytes(8) + changed + content[end:], SLUGS, TASK)


@pytest.mark.parametrize("kept", [slice(0), slice(8, None), slice(-1)])
def test_a_part_that_is_damaged_is_refused(kept: slice) -> None:
    with pytest.raises(ClusterError, match="something else"):
        remote_result.parsed(remote_result.encoded(part())[kept], SLUGS, TASK)


@pytest.mark.parametrize("fills", [False, True])
def test_another_machine_knows_which_rows_are_published(*, fills: bool) -> None:
    shown = remote_result.shared(Config(dumps=Dumps(parquet=True, fills=fills)))
    assert (shown.has_parquet, shown.has_fills) == (True, fills)
