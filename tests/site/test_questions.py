"""What is published of questions follows from the rules alone, byte for byte."""

from collections.abc import Collection
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from generator.api import contract, slugs
from generator.api.contract import SORTS, STATUS_FILTERS, Variant
from generator.api.questions import QuestionDefinition, QuestionDetail, QuestionListItem
from generator.markets.market import Market
from generator.markets.questions import Question, without
from generator.site import documents, questions
from generator.site.catalog import Catalog
from generator.site.questions import QuestionRows
from tests.support.sites.made_questions import CATEGORIES, TIMES, Naive, item, member, question, question_id, sites
from tests.support.sites.rows import FX_MEMBER, catalog_of, market_id, public_market

VARIANTS: tuple[Variant, ...] = ("core", "extended")
ANY_SITE = st.one_of(
    *(st.tuples(st.just(variant), sites(variant, is_one=is_one)) for variant in VARIANTS for is_one in (False, True))
)
Site = tuple[Variant, tuple[Catalog, list[Question]]]


def rows_of(markets: Collection[Market], *asked: Question, variant: Variant = "core") -> QuestionRows:
    return QuestionRows(catalog_of(*markets), asked, variant)


def only_row(markets: Collection[Market], asked: Question, variant: Variant = "core") -> Any:
    """The row of a question that all of the markets are in."""
    (row,) = rows_of(markets, asked, variant=variant).listed()
    return from_json(row.body)


def of_all(markets: Collection[Market]) -> Question:
    return question(1, *(member(int(market.id[:8], 16)) for market in markets))


def everything(rows: QuestionRows, categories: Collection[str]) -> list[Any]:
    return [documents.question_lists(rows, categories, None), [*rows.details()], [*rows.definitions()]]


@given(ANY_SITE)
def test_all_that_is_published_is_what_the_rules_say(site: Site) -> None:
    variant, (catalog, asked) = site
    rows, naive = QuestionRows(catalog, asked, variant), Naive(catalog, asked, variant)
    offered = [slugs.of_category(name) for name in CATEGORIES[:3]] if variant == "extended" else []
    lists = {one.name: one.items for one in documents.question_lists(rows, offered, None)}
    assert lists == {
        f"questions/{status}{category and f'.{category}'}/{sort}": [
            *map(contract.encode, naive.listed(status, sort, category or None))
        ]
        for status in STATUS_FILTERS for sort in SORTS for category in ("", *offered)
    }  # fmt: skip
    details = {one.id: (one.slug, one.body) for one in rows.details()}
    by_slug = {one.id: one.slug if variant == "extended" else None for one in asked}
    assert details == {one.id: (by_slug[one.id], contract.encode(naive.detail(one))) for one in asked}
    in_order = sorted(asked, key=lambda one: one.id)
    assert [*rows.definitions()] == [contract.encode(naive.definition(one)) for one in in_order]


@given(ANY_SITE)
def test_all_that_is_published_keeps_its_models_with_properties_in_their_order(site: Site) -> None:
    variant, (catalog, asked) = site
    rows = QuestionRows(catalog, asked, variant)
    for row in rows.listed():
        assert contract.encode(QuestionListItem.model_validate_json(row.body)) == row.body
    for detail in rows.details():
        assert contract.encode(QuestionDetail.model_validate_json(detail.body)) == detail.body
    for line in rows.definitions():
        assert contract.encode(QuestionDefinition.model_validate_json(line)) == line


@given(ANY_SITE)
def test_every_listed_market_is_in_just_one_row_with_its_detail(site: Site) -> None:
    variant, (catalog, asked) = site
    rows = QuestionRows(catalog, asked, variant)
    details = {one.id: from_json(one.body)["markets"] for one in rows.details()}
    shown = [from_json(row.body) for row in rows.listed()]
    held = [[one["market"] for one in details[row["id"]]] if row["id"] in details else row["markets"] for row in shown]
    assert [row["size"] for row in shown] == [*map(len, held)]
    assert sorted(one["id"] for one in chain(*held)) == [market.id for market in catalog.listed()]


@given(ANY_SITE)
def test_definitions_tell_all_that_a_withdrawal_needs_to_make_the_rest(site: Site) -> None:
    variant, (catalog, asked) = site
    rows = QuestionRows(catalog, asked, variant)
    read = questions.published(rows.definitions())
    offered = catalog.categories()
    assert everything(QuestionRows(catalog, read, variant), offered) == everything(rows, offered)


@given(ANY_SITE, st.sets(st.integers(1, 40)))
def test_a_site_without_some_markets_is_made_as_if_they_had_never_been_there(site: Site, numbers: set[int]) -> None:
    variant, (catalog, asked) = site
    gone = {market_id(number) for number in numbers}
    kept = without(asked, gone)
    rows = QuestionRows(catalog.without(gone), kept, variant)
    assert {one.id for one in kept} == {one.id for one in asked if {each.market_id for each in one.members} - gone}
    naive = Naive(catalog.without(gone), kept, variant)
    assert [row.body for row in rows.listed()] == [
        contract.encode(row) for row in sorted(naive.rows, key=lambda row: row["id"])
    ]


def test_a_question_is_published_like_this() -> None:
    markets = [
        item(1, "extended", question='"North"?', volume=0.1, categories=["rain", "F 1"], slug="north", prob=0.25),
        item(2, "extended", volume=0.2, categories=["rain"], status="resolved", resolution="NO", resolved_at=TIMES[2]),
    ]
    asked = question(
        7, member(1, position=2, payout=1.0), member(2, "South", payout=0.0),
        title="Where?", description="All of it.", kind="exclusive", slug="where",
    )  # fmt: skip
    rows = rows_of(markets, asked, variant="extended")
    (row,), (detail,), (line,) = rows.listed(), rows.details(), rows.definitions()
    beginning = (
        '"id":"00000007-8000-4000-8000-000000000000","title":"Where?","kind":"exclusive","status":"open",'
        '"volume":0.30000000000000004,"traderCount":2,"fills24h":0,"acceptingBets":false,'
        f'"closeTime":"{TIMES[3]}","createdAt":"{TIMES[0]}","resolvedAt":null,"lastActivityAt":"{TIMES[1]}","size":2'
    )
    extras = '"slug":"where","category":"rain","categories":["rain","F 1"]'
    assert row.body.decode() == (
        f'{{{beginning},"markets":['
        f'{{"id":"{market_id(1)}","label":"\\"North\\"?","prob":0.25,"status":"open","resolution":null}},'
        f'{{"id":"{market_id(2)}","label":"South","prob":0.5,"status":"resolved","resolution":"NO"}}],{extras}}}'
    )
    assert detail.body.decode() == (
        f'{{"question":{{{beginning},"description":"All of it.",{extras}}},"markets":['
        f'{{"label":"\\"North\\"?","position":2,"payout":null,"market":{markets[0].body.decode()}}},'
        f'{{"label":"South","position":null,"payout":0.0,"market":{markets[1].body.decode()}}}]}}'
    )
    assert (detail.id, detail.slug) == (question_id(7), "where")
    assert line.decode() == (
        '{"id":"00000007-8000-4000-8000-000000000000","kind":"exclusive","slug":"where","title":"Where?",'
        f'"description":"All of it.","createdAt":"{TIMES[0]}","members":['
        f'{{"id":"{market_id(1)}","label":"\\"North\\"?","position":2,"payout":null}},'
        f'{{"id":"{market_id(2)}","label":"South","position":null,"payout":0.0}}]}}'
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_market_in_no_question_is_a_row_that_shows_it_byte_for_byte(variant: Variant) -> None:
    extended: dict[str, Any] = {"slug": "a", "categories": ["Sun, moon"]} if variant == "extended" else {}
    market = item(1, variant, volume=1e16, prob=1e-7, question='","status":', **extended)
    (row,) = rows_of([market], variant=variant).listed()
    ending = ',"slug":"a","category":"Sun, moon","categories":["Sun, moon"]}' if extended else "}"
    assert row.body.decode() == (
        f'{{"id":"{market_id(1)}","title":"\\",\\"status\\":","kind":"single","status":"open","volume":1e+16,'
        f'"traderCount":1,"fills24h":0,"acceptingBets":false,"closeTime":"{TIMES[3]}","createdAt":"{TIMES[0]}",'
        f'"resolvedAt":null,"lastActivityAt":"{TIMES[1]}","size":1,"markets":[{{"id":"{market_id(1)}","label":null,'
        f'"prob":1e-7,"status":"open","resolution":null}}]{ending}'
    )


def test_ten_markets_are_shown_open_first_then_yes_then_by_probability_position_and_id() -> None:
    settled: dict[str, Any] = {"status": "resolved"}
    markets = [
        item(1, **settled, resolution="YES", prob=0.1),
        item(2, **settled, resolution="NO", prob=1.0),
        item(3, prob=0.5),
        item(4, prob=0.5),
        item(5, prob=0.5),
        item(6, prob=0.5),
        item(7, prob=0.75),
        item(8, status="closed", prob=0.99),
        item(9, status="cancelled", prob=0.3),
        item(10, **settled, resolution="YES", prob=0.2),
        item(11, **settled, prob=0.4),
        item(12, prob=0.0),
    ]
    positions = {3: None, 4: 5, 5: -1, 6: -1}
    asked = question(1, *(member(number, f"{number}", positions.get(number, number)) for number in range(1, 13)))
    row = only_row(markets, asked)
    assert " ".join(one["label"] for one in row["markets"]) == "7 5 6 4 3 12 10 1 2 8"
    assert row["size"] == 12
    (detail,) = rows_of(markets, asked).details()
    assert " ".join(one["label"] for one in from_json(detail.body)["markets"]) == "5 6 1 2 4 7 8 9 10 11 12 3"


def test_no_rank_is_sure_of_a_place_among_the_ten() -> None:
    markets = [*(item(number) for number in range(1, 11)), item(11, status="resolved", resolution="YES", prob=1.0)]
    row = only_row(markets, of_all(markets))
    assert [one["id"] for one in row["markets"]] == [*map(market_id, range(1, 11))]


@pytest.mark.parametrize(
    ("held", "status"),
    [
        ("cancelled resolved closed open", "open"),
        ("cancelled resolved closed", "closed"),
        ("cancelled resolved", "resolved"),
        ("cancelled cancelled", "cancelled"),
    ],
)
def test_one_market_decides_the_status(held: str, status: str) -> None:
    markets = [item(number, status=one) for number, one in enumerate(held.split(), 1)]
    assert only_row(markets, of_all(markets))["status"] == status


def test_the_closing_time_is_the_latest_of_open_markets_else_of_all() -> None:
    late, early = item(1, status="resolved", close_time=TIMES[3]), item(2, close_time=TIMES[1])
    first = item(3, close_time=TIMES[0])
    assert only_row([late, early, first], of_all([late, early, first]))["closeTime"] == TIMES[1]
    ended = [late, item(2, status="closed", close_time=TIMES[1])]
    assert only_row(ended, of_all(ended))["closeTime"] == TIMES[3]


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        ([("resolved", 0), ("cancelled", 2), ("resolved", None)], 2),
        ([("resolved", 0), ("closed", None)], None),
        ([("resolved", 0), ("open", None)], None),
        ([("cancelled", None), ("resolved", None)], None),
    ],
)
def test_a_question_is_resolved_when_its_last_market_was(held: list[tuple[str, int | None]], shown: int | None) -> None:
    markets = [
        item(number, status=status, resolved_at=None if time is None else TIMES[time])
        for number, (status, time) in enumerate(held, 1)
    ]
    row = only_row(markets, of_all(markets))
    assert row["resolvedAt"] == (None if shown is None else TIMES[shown])


def test_a_payout_is_hidden_until_its_market_is_settled() -> None:
    states = ["open", "closed", "resolved", "cancelled"]
    markets = [item(number, status=status) for number, status in enumerate(states, 1)]
    asked = question(1, *(member(number, payout=0.5) for number in range(1, 5)))
    rows = rows_of(markets, asked)
    (detail,), (line,) = rows.details(), rows.definitions()
    assert [one["payout"] for one in from_json(detail.body)["markets"]] == [None, None, 0.5, 0.5]
    assert [one["payout"] for one in from_json(line)["members"]] == [None, None, 0.5, 0.5]


def test_categories_are_all_that_markets_show_the_most_frequent_first_then_by_name() -> None:
    names = [f"{number:03}" for number in range(40)]
    markets = [
        item(1, "extended", categories=["b", "Z", *names[:18]]),
        item(2, "extended", categories=["z", "b", *names[18:36]]),
        item(3, "extended", categories=["a"]),
    ]
    row = only_row(markets, of_all(markets), "extended")
    assert (row["category"], row["categories"]) == ("b", ["b", *names[:36], "Z", "a", "z"])
    bare = [item(1, "extended")]
    row = only_row(bare, of_all(bare), "extended")
    assert "category" not in row
    assert row["categories"] == []


def test_a_row_is_whole_in_the_list_of_a_category_that_one_market_has() -> None:
    markets = [item(1, "extended", categories=["rain"]), item(2, "extended", volume=2.0), item(3, "extended")]
    rows = rows_of(markets, question(1, member(1), member(2)), variant="extended")
    (found,) = (one for one in documents.question_lists(rows, ["rain"], None) if one.name == "questions/all.rain/new")
    (row,) = map(from_json, found.items)
    assert (row["size"], row["volume"]) == (2, 3.0)


def test_questions_and_single_markets_are_ordered_together_ties_by_id() -> None:
    asked = [question(2, member(5)), question(4, member(1))]
    rows = rows_of([item(1), item(3), item(5), item(2)], *asked)
    (found,) = documents.question_lists(rows, [], ["questions/open/popular"])
    assert found.name == "questions/open/popular"
    order = [market_id(2), question_id(2), market_id(3), question_id(4)]
    assert [from_json(row)["id"] for row in found.items] == order


def test_the_core_variant_names_neither_slugs_nor_categories() -> None:
    rows = rows_of([item(1)], question(1, member(1), slug="secret"))
    (row,), (detail,), (line,) = rows.listed(), rows.details(), rows.definitions()
    assert [b"slug" in body or b"categor" in body for body in (row.body, detail.body, line)] == [False] * 3
    assert detail.slug is None


def test_a_site_without_questions_has_a_row_for_each_listed_market() -> None:
    rows = rows_of([item(1), item(2), public_market(3, fx=FX_MEMBER)])
    assert [row.id for row in rows.listed()] == [market_id(1), market_id(2)]
    assert [*rows.details(), *rows.definitions()] == []
    assert len(documents.question_lists(rows_of([]), ["rain"], None)) == 60


def test_questions_that_cannot_be_public_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        rows_of([item(1)], question(1))
    with pytest.raises(KeyError, match=market_id(2)):
        rows_of([item(1)], question(1, member(2)))
    with pytest.raises(KeyError, match=market_id(1)):
        rows_of([item(1)], question(1, member(1)), question(2, member(1)))
    with pytest.raises(KeyError, match=market_id(3)):
        rows_of([public_market(3, fx=FX_MEMBER)], question(1, member(3)))
    great = [item(1, volume=1.7e308), item(2, volume=1.7e308)]
    with pytest.raises(ValueError, match=f"question {question_id(1)}: the sum of its volumes is too large"):
        rows_of(great, of_all(great))
    with pytest.raises(ValueError, match="1 validation error for QuestionDefinition"):
        questions.published([b"{"])
