"""The responses of the OpenAPI document's operations, and the errors that these share."""

from typing import Any, Final

from generator.api import contract, keys
from generator.api.openapi import examples
from generator.api.openapi.schemas import JsonObject, ref
from generator.config.settings import Config

JSON: Final = "application/json"


def found(description: str, model: str, shown: JsonObject, links: JsonObject) -> JsonObject:
    """The response with a resource of markets."""
    headers = {**_HEADERS, "X-As-Of": _AS_OF}
    if model == "PublicMarketList":
        headers["Link"] = {
            "description": "The next page, relative to this one.",
            "schema": {"type": "string"},
            "example": f'<?status=open&sort=popular&limit=2&cursor={examples.CURSOR}>; rel="next"',
        }
    response = {"description": description, "headers": headers, "content": _content(model, shown)}
    return {**response, "links": links} if links else response


def document(description: str, schema: JsonObject, shown: JsonObject, media_type: str = JSON) -> JsonObject:
    """The response with a document, in this media type; `shown` are examples."""
    return {
        "description": description,
        "headers": _HEADERS,
        "content": {media_type: {"schema": schema, "examples": shown}},
    }


def file(description: str, media_type: str) -> JsonObject:
    """The response with a file of a download."""
    immutable = {**_HEADERS["Cache-Control"], "example": f"{keys.IMMUTABLE}, no-transform"}
    ranges = {"description": "Parts can be requested.", "schema": {"type": "string"}, "example": "bytes"}
    return {
        "description": description,
        "headers": {**_HEADERS, "Cache-Control": immutable, "Accept-Ranges": ranges},
        "content": {media_type: {"schema": {"type": "string", "format": "binary"}}},
    }


#: The headers of every answer that is an object, except that not every edge can tell when it changed.
_HEADERS: Final[JsonObject] = {
    "Cache-Control": {
        "description": "How long the response may be kept.",
        "schema": {"type": "string"},
        "example": keys.MUTABLE,
    },
    "ETag": {
        "description": "Names these bytes, for `If-None-Match`.",
        "schema": {"type": "string"},
        "example": '"5d41402abc4b2a76b9719d911017c592"',
    },
    "Last-Modified": {
        "description": "When these bytes last changed.",
        "schema": {"type": "string"},
        "example": "Sat, 31 Jan 2026 12:00:04 GMT",
    },
}
#: A header that not every edge can tell.
_AS_OF: Final[JsonObject] = {
    "description": "The instant whose data it is, or an earlier one. Later pages of a walk lack it.",
    "schema": {"type": "string", "format": "date-time"},
    "example": "2026-01-31T12:00:00.000Z",
}


def invalid(description: str, shown: JsonObject) -> JsonObject:
    """The response to an invalid request."""
    return {"description": description, "content": _content("ErrorResponse", shown)}


def _content(model: str, shown: JsonObject) -> JsonObject:
    return {JSON: {"schema": ref(model), "examples": shown}}


_SHARED: Final = {404: "NotFound", 405: "MethodNotAllowed", 429: "TooManyRequests", 503: "Unavailable"}


def refused(*statuses: int) -> JsonObject:
    """The responses for these statuses, which are the same for all operations."""
    return {str(status): {"$ref": f"#/components/responses/{_SHARED[status]}"} for status in statuses}


def shared_errors(config: Config) -> JsonObject:
    """The errors that `refused` refers to."""
    seconds = int(config.rate_limit.window.total_seconds())
    descriptions = {
        404: "There is no such market or file, or it is not public; these look alike.",
        405: "The request's method is none of those that `Allow` names. GET is never answered so.",
        429: f"The address has used up its requests{' or searches' if config.can_search else ''} for now.",
        503: "The data cannot be read for now. It says nothing about whether something exists.",
    }
    pause = {"type": "integer", "minimum": 1}
    headers: dict[int, JsonObject] = {
        405: {"Allow": _required_header("The methods there are.", {"type": "string"}, "GET, HEAD, OPTIONS")},
        429: {"Retry-After": _required_header("Seconds to wait.", pause, seconds)},
        503: {"Retry-After": _required_header("Seconds to wait.", pause, contract.UNAVAILABLE_PAUSE)},
    }
    return {
        name: {
            "description": descriptions[status],
            **({"headers": headers[status]} if status in headers else {}),
            "content": _content("ErrorResponse", examples.fixed_error(status)),
        }
        for status, name in _SHARED.items()
    }


def _required_header(description: str, schema: JsonObject, example: Any) -> JsonObject:
    return {"description": description, "required": True, "schema": schema, "example": example}
