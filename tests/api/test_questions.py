"""The wire schema of questions is closed and bounded; its order and bytes are proven by what is made of it."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from generator.api import questions
from generator.api.contract import Closed
from tests.api.test_contract import ITEM, TIME
from tests.support.sites.rows import market_id

SHOWN: dict[str, Any] = {"id": market_id(1), "label": "Yes", "prob": 0.5, "status": "open", "resolution": None}
ROW = {
    "id": market_id(9),
    "title": "Where?", "kind": "exclusive", "status": "open", "volume": 1.0, "traderCount": 3, "fills24h": 1,
    "acceptingBets": True, "closeTime": TIME, "createdAt": TIME, "resolvedAt": None, "lastActivityAt": TIME, "size": 1,
}  # fmt: skip
PLACED: dict[str, Any] = {"label": "Yes", "position": -(2**53 - 1), "payout": 1.0}
DEFINED = {"id": market_id(9), "kind": "exclusive", "title": "", "description": None, "createdAt": TIME}
#: Every resource with valid content that has all its fields but those of the extended variant.
RESOURCES: dict[type[BaseModel], dict[str, Any]] = {
    questions.QuestionMarket: SHOWN,
    questions.QuestionListItem: ROW | {"markets": [SHOWN]},
    questions.QuestionList: {
        "items": [ROW | {"kind": "single", "markets": [SHOWN | {"label": None}]}], "nextCursor": None,
    },
    questions.QuestionSummary: ROW | {"description": None},
    questions.QuestionMember: PLACED | {"market": ITEM},
    questions.QuestionDetail: {
        "question": ROW | {"description": None}, "markets": [PLACED | {"market": ITEM}],
    },
    questions.DefinedMember: PLACED | {"id": market_id(1)},
    questions.QuestionDefinition: DEFINED | {"members": [PLACED | {"id": market_id(1)}]},
    questions.DefinitionRow: {
        "questionId": market_id(9), "marketId": market_id(1), **DEFINED, **PLACED,
    },
}  # fmt: skip
del RESOURCES[questions.DefinitionRow]["id"]


def test_every_resource_is_listed() -> None:
    found = {one for one in vars(questions).values() if isinstance(one, type) and issubclass(one, BaseModel)}
    declared = {one for one in found if one.__module__ == questions.__name__}
    assert declared == RESOURCES.keys() | {questions.QuestionFields}


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_resource_has_these_fields_and_no_others(resource: type[BaseModel]) -> None:
    content = RESOURCES[resource]
    assert issubclass(resource, Closed)
    assert resource.model_validate(content).model_dump(by_alias=True) == content
    with pytest.raises(ValidationError):
        resource.model_validate(content | {"more": 1})
    for name in content:
        with pytest.raises(ValidationError):
            resource.model_validate({key: value for key, value in content.items() if key != name})


@pytest.mark.parametrize(
    ("resource", "wrong"),
    [
        (questions.QuestionListItem, {"markets": []}),
        (questions.QuestionListItem, {"markets": [SHOWN] * 11}),
        (questions.QuestionListItem, {"size": 0}),
        (questions.QuestionListItem, {"kind": "other"}),
        (questions.QuestionSummary, {"volume": -1.0}),
        (questions.QuestionMember, {"position": 2**53}),
        (questions.QuestionMember, {"payout": 1.5}),
        (questions.QuestionMember, {"label": None}),
        (questions.QuestionDefinition, {"kind": "single"}),
        (questions.QuestionDefinition, {"slug": "s" * 256}),
    ],
)
def test_values_out_of_bounds_are_refused(resource: type[BaseModel], wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValidationError, match=name):
        resource.model_validate(RESOURCES[resource] | wrong)


def test_categories_of_a_question_have_no_cap() -> None:
    names = [f"{number}" for number in range(1_000)]
    row = RESOURCES[questions.QuestionListItem] | {"slug": "where", "category": "0", "categories": names}
    assert questions.QuestionListItem.model_validate(row).model_dump(by_alias=True) == row
