"""How an answer can differ from what it must be, in form or content, and how bad that is."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from http import HTTPStatus
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from generator.verify.reader import NoAnswerError, SiteAnswer
from generator.wording import escaped


class Verdict(IntEnum):
    """How bad a mismatch is: also the exit code of a run whose worst one it is. A note is none, and does not count."""

    NOTE = 0
    STALE = 6
    WITHDRAWN = 7
    WRONG = 8
    BROKEN = 9


#: What the last line says of a run, by its worst mismatch.
MEANINGS: Final = {
    Verdict.STALE: "some answers are of an earlier state; run again in some minutes, and purge the CDN if they stay",
    Verdict.WITHDRAWN: "markets that were withdrawn are still shown; purge the CDN now",
    Verdict.WRONG: "some answers contradict the dump; purge the CDN, then run `public-markets publish --verify`",
    Verdict.BROKEN: "some answers break the contract; compare the edge's configuration with what `build` rendered",
}
#: The same where a deployment was held to the contract alone.
CONTRACT_MEANINGS: Final = {
    Verdict.WRONG: "some answers contradict each other, or the order of their sort; each line names where",
    Verdict.BROKEN: "some answers have not the form that the contract gives them; each line names what",
}


#: How much of what one check finds is told, and of each text: all of it may come from the site.
_MOST: Final = 1_000
_LONGEST: Final = 1_000


class Mismatch(NamedTuple):
    """What is wrong with the answer to a request: `target` is its path and query, `text` a sentence."""

    verdict: Verdict
    target: str
    text: str

    def __str__(self) -> str:
        return escaped(f"{self.verdict.name.lower()}: {self.target}: {self.text}")


def broken(target: str, text: str) -> Mismatch:
    """An answer that has not the form that the contract gives it."""
    return Mismatch(Verdict.BROKEN, target, text)


def no_answer(error: NoAnswerError) -> Mismatch:
    """A request that got no answer; why not, may be put otherwise the next time."""
    return broken(error.target, error.reason.partition(" (")[0])


def wrong(target: str, text: str) -> Mismatch:
    """An answer whose content contradicts the contract, or another answer."""
    return Mismatch(Verdict.WRONG, target, text)


def note(target: str, text: str) -> Mismatch:
    """An answer that this program would give otherwise, of which the contract says nothing."""
    return Mismatch(Verdict.NOTE, target, text)


def told(found: Iterable[Mismatch]) -> Iterator[Mismatch]:
    """As much of what is wrong as anybody reads."""
    for one in islice(found, _MOST):
        yield one._replace(target=one.target[:_LONGEST], text=one.text[:_LONGEST])


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
