"""The table of definitions has a row for each market of a question, in the order of the definitions."""

import pytest

from generator.downloads import definitions
from generator.site.questions import QuestionRows
from tests.support.sites.made_questions import TIMES, item, member, question, question_id
from tests.support.sites.rows import catalog_of, market_id

ROWS = QuestionRows(
    catalog_of(item(1, "extended"), item(2, "extended", status="resolved"), item(3, "extended")),
    [
        question(2, member(3)),
        question(1, member(1, "No", 2), member(2, "Yes", 1, 1.0), slug="which", description="Of two."),
    ],
    "extended",
)


def test_a_row_is_a_market_of_a_question() -> None:
    found = [one.model_dump() for one in definitions.rows(ROWS.definitions())]
    first = {
        "question_id": question_id(1),
        "kind": "independent",
        "slug": "which",
        "title": "Title 1",
        "description": "Of two.",
        "created_at": TIMES[0],
    }
    second = first | {"question_id": question_id(2), "title": "Title 2", "description": None}
    del second["slug"]
    assert found == [
        {**first, "market_id": market_id(2), "label": "Yes", "position": 1, "payout": 1.0},
        {**first, "market_id": market_id(1), "label": "No", "position": 2, "payout": None},
        {**second, "market_id": market_id(3), "label": "Question 3?", "position": None, "payout": None},
    ]


def test_a_row_has_the_address_of_its_question_where_there_is_one() -> None:
    linked = definitions.rows(ROWS.definitions(), lambda _, slug: slug and f"https://example.org/{slug}")
    assert [one.url for one in linked] == ["https://example.org/which"] * 2 + [None]


def test_what_is_no_definition_is_refused() -> None:
    with pytest.raises(ValueError, match="QuestionDefinition"):
        [*definitions.rows([b"{}"])]
