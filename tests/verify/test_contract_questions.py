"""`verify --contract URL` holds rows, details and markets of questions against each other, where there are any."""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from generator.progress import SILENT
from generator.verify.contract.run import MOST_REQUESTS, ContractVerification, verify_contract
from generator.verify.mismatches import Verdict
from generator.verify.reader import SiteReader
from tests.verify.dynamic import Dynamic
from tests.verify.grouped import QUESTIONS, Grouped
from tests.verify.rows import Row

Forge = Callable[[str, Any], object]


def held(url: str, *hidden: str) -> ContractVerification:
    return verify_contract(SiteReader(url, 1e6, print, MOST_REQUESTS), hidden, SILENT)


# ── a server that is right ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("count", [120, 5, 2, 1000])
def test_nothing_is_wrong_with_questions_that_are_right(count: int) -> None:
    with Grouped(count=count) as server:
        found = held(server.url, server.hidden_id)
        assert found.requests == server.requests <= MOST_REQUESTS
    assert [*map(str, found.mismatches)] == []
    assert found.notes == []
    is_large = "there are more questions or markets than were walked past, so none could be missed" in found.left_out
    assert is_large == (count == 1000)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("every", [1, 7, 29])
def test_nothing_is_wrong_with_questions_of_a_server_that_changes(every: int) -> None:
    with Grouped(change_every=every) as server:
        found = held(server.url, server.hidden_id)
        assert server.changes >= 5
    assert [*map(str, found.mismatches)] == []


def test_a_server_without_questions_is_asked_once_for_them() -> None:
    asked = list[str]()

    class Watched(Dynamic):
        def respond(self, method: str, target: str, if_none_match: str | None) -> Any:
            asked.append(target)
            return super().respond(method, target, if_none_match)

    with Watched() as server:
        assert held(server.url).mismatches == []
    assert [target for target in asked if target.startswith(QUESTIONS)] == [
        f"{QUESTIONS}?status=all&sort=new&limit=100"
    ]


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _large(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: int(row["size"]))


def _single(rows: list[Row]) -> Row:
    return min((row for row in rows if row["kind"] == "single"), key=lambda row: str(row["id"]))


def _small(rows: list[Row]) -> Row:
    return next(row for row in rows if row["kind"] != "single" and 1 < row["size"] < 10)


def _twice(rows: list[Row]) -> None:
    _small(rows)["markets"].append(_large(rows)["markets"][0])


def _another(row: Row, market: Row) -> None:
    row["markets"][0]["market"] = {**row["markets"][0]["market"], **market}


#: What is changed in all questions, and words of what is said of it.
SPOILT: Final[dict[str, tuple[Callable[[list[Row]], object], str]]] = {
    "a market in two rows": (_twice, "has market .* in two rows"),
    "a market in no row": (lambda rows: rows.remove(_single(rows)), "has market .* in no row, and status=all"),
    "a sum": (lambda rows: _small(rows).update(volume=12345.5), r"row .* has volume 12345\.5; its \d markets make it"),
    "a sum of many": (lambda rows: _large(rows).update(volume=1.5), r"has volume 1\.5; its 2\d markets make it"),
    "traders": (lambda rows: _small(rows).update(traderCount=1), "has traderCount 1; its"),
    "a status": (lambda rows: _large(rows).update(status="closed"), "has status 'closed'; its .* make it open"),
    "an end": (lambda rows: _large(rows).update(resolvedAt="2026-01-01T00:00:00.000Z"), "has resolvedAt .*it None"),
    "a size": (lambda rows: _small(rows).update(size=9), "has size 9|shows . markets, and its size is 9"),
    "a price": (lambda rows: _another(_small(rows), {"prob": 0.123}), r"prob 0\.123(, which has| here, and)"),
    "a title of a market alone": (lambda rows: _single(rows).update(title="?"), r"shows '\?' of the market, whose"),
    "a label of a market alone": (
        lambda rows: _single(rows)["markets"][0].update(label="Alone"), "of one market with its id and no label",
    ),
    "a market of nobody": (
        lambda rows: _another(_small(rows), {"id": "00000000-0000-4000-8000-000000000000"}),
        "shows market 0{8}-.*, and status=all",
    ),
}  # fmt: skip


@pytest.mark.campaign(short=3)
@pytest.mark.parametrize("kind", SPOILT)
def test_what_is_wrong_with_questions_is_named(kind: str) -> None:
    spoil, words = SPOILT[kind]
    with Grouped(spoil=spoil) as server:
        found = held(server.url)
        assert found.requests <= MOST_REQUESTS
    assert {one.verdict for one in found.mismatches} <= {Verdict.WRONG, Verdict.BROKEN}
    assert any(re.search(words, str(one)) for one in found.mismatches), [*map(str, found.mismatches)]
    assert all(QUESTIONS in one.target for one in found.mismatches)


def _of_details(change: Callable[[Any], object]) -> Forge:
    return lambda target, content: change(content) if "?" not in target else None


def _of_lists(change: Callable[[Any], object]) -> Forge:
    return lambda target, content: change(content["items"]) if "?" in target else None


def _several(rows: list[Row]) -> Row:
    """The row of a page that shows the most markets."""
    return max(rows, key=lambda row: len(row["markets"]))


FORGED: Final[dict[str, tuple[Forge, str]]] = {
    "the title of a detail": (
        _of_details(lambda page: page["question"].update(title="?")), r"its question has title '\?' here, and",
    ),
    "a market of a detail": (
        _of_details(lambda page: page["markets"][0]["market"].update(prob=0.5)), "its market .* has prob 0.5 here",
    ),
    "a market that a detail lacks": (_of_details(lambda page: page["markets"].pop()), "has size .*; its"),
    "the positions of a detail": (
        _of_details(lambda page: page["markets"].reverse()), "are not in the order of their positions",
    ),
    "a payout": (
        _of_details(lambda page: [one.update(payout=0.5) for one in page["markets"]]), "shows a payout of market",
    ),
    "a label": (
        _of_details(lambda page: page["markets"][0].update(label="Forged")), "with label 'Wird .*, which has 'Forged",
    ),
    "the order of rows": (_of_lists(list.reverse), "is not in the order of sort=new: row"),
    "the order of markets": (
        _of_lists(lambda rows: _several(rows)["markets"].reverse() if rows else None), "open ones come first, then YES",
    ),
    "which ten are shown": (
        _of_lists(lambda rows: _several(rows)["markets"].pop() if rows else None), "shows . markets, and its size is",
    ),
    "another property": (_of_lists(lambda rows: [row.update(owner=1) for row in rows]), "owner: Extra inputs"),
}  # fmt: skip


@pytest.mark.campaign(short=3)
@pytest.mark.parametrize("kind", FORGED)
def test_answers_that_contradict_each_other_are_named(kind: str) -> None:
    forge, words = FORGED[kind]
    with Grouped(forge=forge) as server:
        found = held(server.url)
    assert any(re.search(words, str(one)) for one in found.mismatches), [*map(str, found.mismatches)]
    assert all(QUESTIONS in one.target for one in found.mismatches)


REFUSED: Final = {
    "q": r"\?q=a: is answered 200, not 400 with details that name q",
    "cursor": "is answered 200, not 400 with details that name cursor",
    "single": "is answered 200, not 404: this market is in no question",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_must_be_refused_is_asked_for(what: str) -> None:
    with Grouped(accepts=frozenset({what})) as server:
        (found,) = held(server.url).mismatches
    assert found.verdict == Verdict.BROKEN
    assert re.search(REFUSED[what], str(found))


def test_a_hidden_market_in_a_row_is_named() -> None:
    with Grouped() as server:
        hidden = next(row for row in server._now if row["id"] == server.hidden_id)  # noqa: SLF001 - to show it
        server.spoil = lambda rows: _small(rows)["markets"].append({"label": "?", "position": 1, "market": hidden})
        found = held(server.url, server.hidden_id)
    assert any(f"shows market {server.hidden_id}, which is hidden" in one.text for one in found.mismatches)
