"""Whether an answer has the form that the contract gives it: status, headers, body. Pure.

The wire models are stricter than the contract where it is silent, so that what this program publishes is uniform. What
only they ask for is no fault of another server.
"""

import json
import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json

from generator.api import contract
from generator.api.contract import ErrorResponse, PublicMarketDetailMarket, PublicMarketList, PublicMarketListItem
from generator.verify.mismatches import Mismatch, broken, note, place_of
from generator.verify.reader import ORIGIN, SiteAnswer

#: Kinds of faults by bounds that only this program has.
_OWN_BOUNDS: Final = frozenset({"string_too_long", "too_long", "control_character", "blank"})
UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
#: What a browser on another site may read: for everybody, or for the one that the reader's headers name.
_ORIGINS: Final = ("*", ORIGIN)
#: The errors that the contract describes.
_DESCRIBED: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS)
_CHARSET: Final = re.compile(r"""charset\s*=\s*["']?([^"';\s]+)""", re.IGNORECASE)
_UTF_8: Final = ("utf-8", "utf8")
#: Where a word ends in names such as creatorUserID or owner_id.
_BETWEEN_WORDS: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_-]+")
#: Words of names of what the contract never shows (§1), but for counts, which name nobody.
_PRIVATE: Final = re.compile(
    r"\b((user|owner|creator|author)(s|ids?)?|moderat\w+|review\w*|approv\w+|admins?|premium|forecasters?|private"
    r"|e ?mails?|(creat|submitt|edit|updat)ed by|(bet|order)s? ?ids?|matched (bet|order)s?)\b"
)
_COUNT: Final = re.compile(r"\b(counts?|num|number|total|unique)\b")


def faults(answer: SiteAnswer, method: str = "GET") -> Iterator[Mismatch]:
    """What is wrong with the headers of an answer, and with the body of an error; what the contract omits is a note."""
    target = shown(method, answer.target)
    if answer.flaw:
        yield (broken if method == "GET" else note)(target, answer.flaw)
        return
    if answer.headers.get("access-control-allow-origin") not in _ORIGINS:
        yield note(target, "has no Access-Control-Allow-Origin, so browsers on other sites cannot read it")
    if answer.status == HTTPStatus.METHOD_NOT_ALLOWED and "allow" not in answer.headers:
        yield note(target, "the 405 has no Allow header")
    if answer.status >= HTTPStatus.BAD_REQUEST:
        is_described = method == "GET" and answer.status in _DESCRIBED
        texts = [*_type_faults(answer), *([] if method == "HEAD" else _error_faults(answer))]
        yield from ((broken if is_described else note)(target, text) for text in texts)


def shown(method: str, target: str) -> str:
    """How a request is named."""
    return target if method == "GET" else f"{method} {target}"


def content(answer: SiteAnswer, model: type[BaseModel], may_lack: Collection[str] = ()) -> tuple[Any, list[Mismatch]]:
    """The parsed body of an answer that must be a 200 of this model, None if it is not; and all that is wrong."""
    others = [*faults(answer)]
    if answer.status != HTTPStatus.OK:
        return None, [broken(answer.target, f"is answered {answer.status}, not 200"), *others]
    if answer.flaw:
        return None, others
    others += (broken(answer.target, text) for text in _type_faults(answer))
    fault = _fault(answer.body, model, may_lack=may_lack)
    if fault:
        return None, [broken(answer.target, fault), *others]
    parsed = from_json(answer.body)
    return parsed, [*_unknown(answer.target, parsed, model), *others]


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


def date(text: str) -> datetime | None:
    """The instant of a date as headers have it; None if it is none."""
    try:
        return parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None


def _named(answer: SiteAnswer) -> str:
    return f"the {answer.status}" if answer.status >= HTTPStatus.BAD_REQUEST else "the answer"


def _type_faults(answer: SiteAnswer) -> Iterator[str]:
    given = answer.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        yield f"{_named(answer)} has the type {given!a}, not application/json"
    charset = _CHARSET.search(given)
    if charset and charset[1].lower() not in _UTF_8 and not answer.body.isascii():
        yield f"{_named(answer)} has the charset {charset[1]!a:.80}, though JSON is UTF-8, so readers garble its texts"


def _error_faults(answer: SiteAnswer) -> Iterator[str]:
    """An error's body must be an ErrorResponse. The contract does not close it, and details are free but in a 400."""
    fault = _fault(answer.body, ErrorResponse, is_bad_request=answer.status == HTTPStatus.BAD_REQUEST)
    if fault:
        yield f"the body of the {answer.status} is no error of the contract ({fault})"


def _fault(
    body: bytes, model: type[BaseModel], *, is_bad_request: bool = True, may_lack: Collection[str] = ()
) -> str | None:
    try:
        model.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            is_free = model is ErrorResponse and (
                fault["type"] == "extra_forbidden" or (not is_bad_request and fault["loc"][:1] == ("details",))
            )
            is_left_out = fault["type"] == "missing" and fault["loc"][0] in may_lack
            if not is_free and not is_left_out and not _is_own(fault):
                return place_of(fault)
    return _unsafe_json(body)


def _unsafe_json(body: bytes) -> str | None:
    """What readers of other JSON parsers would see otherwise, in a body that one parser can read."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        given = dict[str, Any]()
        for name, value in pairs:
            if name in given:
                text = f"the property {name!a:.80} is given twice in one object, of which parsers take either"
                raise ValueError(text)
            given[name] = value
        return given

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        json.loads(body, object_pairs_hook=unique, parse_constant=refuse, parse_int=float)
    except ValueError as error:
        return str(error)
    return None


def _is_own(fault: ErrorDetails) -> bool:
    """Whether only this program asks for it: lengths, types of optional extras, and one spelling of ids and numbers."""
    given = fault["input"]
    if not contract.EXTENDED_PROPERTIES.isdisjoint(fault["loc"]):
        return True
    if fault["type"] == "string_pattern_mismatch":
        return UUID.fullmatch(given) is not None or _is_instant(given)
    if fault["type"] == "int_type" and isinstance(given, float):
        return given.is_integer() and given >= 0
    return fault["type"] in _OWN_BOUNDS


def _unknown(target: str, parsed: Any, model: type[BaseModel]) -> Iterator[Mismatch]:
    """Properties of markets that the contract does not have; the models refuse those of everything that it closes."""
    if model is PublicMarketList:
        markets, fields = parsed["items"], PublicMarketListItem.model_fields
    elif "market" in model.model_fields:
        markets, fields = [parsed["market"]], PublicMarketDetailMarket.model_fields
    else:
        return
    names = {field.alias or name for name, field in fields.items()}
    for name in sorted({name for market in markets for name in market} - names):
        text = f"shows the property {name!a} of markets, which the contract does not have"
        yield broken(target, f"{text}, and which may be private") if _is_private(name) else note(target, text)


def _is_private(name: str) -> bool:
    words = _BETWEEN_WORDS.sub(" ", name).lower()
    return _PRIVATE.search(words) is not None and not _COUNT.search(words)


def _is_instant(value: object) -> bool:
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return False
    try:
        return _instant(value) is not None
    except (ValueError, OverflowError):
        return False


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.upper()).astimezone(UTC)
