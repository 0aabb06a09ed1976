"""What a worker returns is the part that was asked for, or nothing is taken from it."""

from dataclasses import replace
from typing import Any

import pytest

from generator.builder import remote_result
from generator.builder.notices import Kind, Remark, Topic
from generator.builder.part_rendering import NewMarketObject, ReadDetail, RenderedPart
from generator.errors import ClusterError
from generator.markets.catalog import Market
from generator.markets.columns import Columns
from generator.markets.fingerprint import Fingerprint
from generator.markets.quarantine import Fault, Quarantine
from generator.tree.fingerprints import Made
from tests.support.rows import market_id

FIRST, SECOND = market_id(1), market_id(2)
MARKET = Market(
    id=FIRST, body='{"question":"Ünder \\"10\\"?"}'.encode(), status="open", resolution=None, slug="ten", volume=0.1,
    close_time="2026-03-01T12:00:00.000Z", created_at="2026-01-01T12:00:00.000Z", resolved_at=None,
    last_activity_at="2026-01-01T12:00:00.000Z", trader_count=1, fills24h=2, accepting_bets=True,
    has_visible_question=True, fx=None, categories=("crypto", "a-b--0123456789"), has_early_outcome=False,
    has_bidi_override=False,
    words=("under", "10"), fingerprint=Fingerprint("v", "m"), until="",
)  # fmt: skip
BODY = b'{"market":"\xc3\xbc"}\n'
READ = ReadDetail(FIRST, "ten", BODY, "digest", len(BODY), Made("v", "m", len(BODY), 2, "", ()), *(False, False))
KEPT = ReadDetail(SECOND, None, None, "digest", 7, None, *(True, True))


def part(**changes: Any) -> RenderedPart:
    found = Quarantine()
    found.reject("markets", SECOND, Fault("prob", "is too large", "7"), title="Two")
    remark = Remark(Kind(Topic.FUTURE_TIME, "market", "what", "effect"), FIRST, "value")
    whole = RenderedPart(
        Columns.of([MARKET]), [READ, KEPT], [NewMarketObject(MARKET, b"{}")], [SECOND], found, [remark], [SECOND]
    )
    return replace(whole, **changes)


def shown(found: RenderedPart) -> list[Any]:
    return [
        found.markets.markets({}), found.details, found.updates, found.kept, found.quarantine.plain(), found.remarks,
        found.false_versions,
    ]  # fmt: skip


@pytest.mark.parametrize("sent", [part(), RenderedPart()])
def test_a_part_arrives_as_it_was_rendered(sent: RenderedPart) -> None:
    assert shown(remote_result.parsed(remote_result.encoded(sent), [FIRST, SECOND])) == shown(sent)


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
        (with_(volume="much"), "does not parse"),
        (part(markets=Columns.of([MARKET, MARKET])), "twice"),
        (part(markets=Columns([*Columns.of([MARKET]).values[:-1], []])), "different lengths"),
        (part(details=[READ._replace(size=len(BODY) + 1)]), "too short"),
        (part(details=[READ._replace(size=-1)]), "too short"),
        (part(details=[READ._replace(size=1)]), "too long"),
    ],
)
def test_a_part_that_nobody_asked_for_is_refused(sent: RenderedPart, reason: str) -> None:
    with pytest.raises(ClusterError, match=f"something else than a part of the site .*{reason}"):
        remote_result.parsed(remote_result.encoded(sent), [FIRST, SECOND])


@pytest.mark.parametrize("kept", [slice(0), slice(7), slice(8, None), slice(99), slice(-1)])
def test_a_part_that_is_damaged_is_refused(kept: slice) -> None:
    with pytest.raises(ClusterError, match="something else"):
        remote_result.parsed(remote_result.encoded(part())[kept], [FIRST, SECOND])
