"""Whether an answer has the form that the contract gives it."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteAnswer

_Model = TypeVar("_Model", bound=BaseModel)


def parsed(
    answer: SiteAnswer, model: type[_Model], content_type: str = "application/json"
) -> tuple[_Model | None, list[Mismatch]]:
    """The answer's content, and how it breaks the contract: without content, only that matters."""
    broken = [Mismatch(Verdict.BROKEN, answer.target, text) for text in flaws(answer, content_type)]
    if answer.status != HTTPStatus.OK:
        return None, [not_ok(answer), *broken]
    try:
        return model.model_validate_json(answer.body, by_alias=True, by_name=False), broken
    except ValidationError as error:
        return None, [Mismatch(Verdict.BROKEN, answer.target, place_of(error.errors(include_url=False)[0])), *broken]


def not_ok(answer: SiteAnswer) -> Mismatch:
    """An answer that is no 200."""
    return Mismatch(Verdict.BROKEN, answer.target, f"is answered {answer.status}, not 200{answer.age}")


def place_of(fault: ErrorDetails) -> str:
    """Where a body breaks its model, and how."""
    where = ascii(".".join(map(str, fault["loc"])) or "the body")[1:-1]  # it may be the name of any property
    return f"{where:.200}: {fault['msg']:.200}"


def flaws(answer: SiteAnswer, content_type: str) -> Iterator[str]:
    """What headers lack."""
    found = answer.headers.get("content-type", "")
    if found.partition(";")[0].strip() != content_type:
        yield f"has the type {found!a}, not {content_type}"
    if answer.headers.get("access-control-allow-origin") != "*":
        yield "has no Access-Control-Allow-Origin: *, so browsers on other sites cannot read it"
