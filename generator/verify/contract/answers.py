"""Whether an answer has the form that the contract gives it: status, headers, body. Pure.

The wire models are stricter than the contract where it is silent, so that what this program publishes is uniform. What
only they ask for is no fault of another server.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json

from generator.api.contract import ErrorResponse, PublicMarketDetailMarket, PublicMarketList, PublicMarketListItem
from generator.verify.answers import place_of
from generator.verify.reader import ORIGIN, SiteAnswer

#: Kinds of faults by bounds that only this program has.
_OWN_BOUNDS: Final = frozenset({"string_too_long", "too_long", "control_character", "blank"})
UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
#: What a browser on another site may read: for everybody, or for the one that the reader's headers name.
_ORIGINS: Final = ("*", ORIGIN)


def faults(answer: SiteAnswer, method: str = "GET") -> Iterator[str]:
    """What is wrong with the headers of an answer, and with the body of an error."""
    if answer.headers.get("access-control-allow-origin") not in _ORIGINS:
        yield f"{_named(answer)} has no Access-Control-Allow-Origin, so browsers on other sites cannot read it"
    if answer.status == HTTPStatus.METHOD_NOT_ALLOWED and "allow" not in answer.headers:
        yield "the 405 has no Allow header"
    if answer.status >= HTTPStatus.BAD_REQUEST:
        yield from _type_faults(answer)
        if method != "HEAD":
            yield from _error_faults(answer)


def content(answer: SiteAnswer, model: type[BaseModel]) -> tuple[Any, list[str]]:
    """The parsed body of an answer that must be a 200 of this model, None if it is not; and all that is wrong."""
    found = [*faults(answer)]
    if answer.status != HTTPStatus.OK:
        return None, [f"is answered {answer.status}, not 200", *found]
    found += _type_faults(answer)
    fault = _fault(answer.body, model)
    if fault:
        return None, [fault, *found]
    parsed = from_json(answer.body)
    return parsed, [*_unknown(parsed, model), *found]


def parameters(answer: SiteAnswer) -> set[str]:
    """Every name that the details of a 400 hold; none if it has no such details."""
    try:
        details = ErrorResponse.model_validate_json(answer.body).details or []
    except ValidationError:
        try:
            details = from_json(answer.body)["details"]
            return {name for detail in details for name in detail["path"]}
        except (ValueError, TypeError, KeyError):
            return set()
    return {name for detail in details for name in detail.path}


def comparable(value: Any) -> Any:
    """A value, or a time as an instant, as one may be spelt in several ways."""
    return _instant(value) if _is_instant(value) else value


def _named(answer: SiteAnswer) -> str:
    return f"the {answer.status}" if answer.status >= HTTPStatus.BAD_REQUEST else "the answer"


def _type_faults(answer: SiteAnswer) -> Iterator[str]:
    given = answer.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        yield f"{_named(answer)} has the type {given!a}, not application/json"


def _error_faults(answer: SiteAnswer) -> Iterator[str]:
    """An error's body must be an ErrorResponse. The contract does not close it, and details are free but in a 400."""
    fault = _fault(answer.body, ErrorResponse, is_bad_request=answer.status == HTTPStatus.BAD_REQUEST)
    if fault:
        yield f"the body of the {answer.status} is no error of the contract ({fault})"


def _fault(body: bytes, model: type[BaseModel], *, is_bad_request: bool = True) -> str | None:
    try:
        model.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            is_free = model is ErrorResponse and (
                fault["type"] == "extra_forbidden" or (not is_bad_request and fault["loc"][:1] == ("details",))
            )
            if not is_free and not _is_own(fault):
                return place_of(fault)
    return None


def _is_own(fault: ErrorDetails) -> bool:
    """Whether only this program asks for it: lengths, and one spelling of ids and times."""
    given = fault["input"]
    if fault["type"] == "string_pattern_mismatch":
        return UUID.fullmatch(given) is not None or _is_instant(given)
    return fault["type"] in _OWN_BOUNDS


def _unknown(parsed: Any, model: type[BaseModel]) -> Iterator[str]:
    """Properties of markets that the contract does not have; the models refuse those of everything else."""
    if model is PublicMarketList:
        markets, known = parsed["items"], PublicMarketListItem.model_fields
    elif "market" in model.model_fields:
        markets, known = [parsed["market"]], PublicMarketDetailMarket.model_fields
    else:
        return
    names = {field.alias or name for name, field in known.items()}
    for name in sorted({name for market in markets for name in market} - names):
        yield f"shows the property {name!a} of markets, which the contract does not have"


def _is_instant(value: object) -> bool:
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return False
    try:
        return _instant(value) is not None
    except (ValueError, OverflowError):
        return False


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.upper()).astimezone(UTC)
