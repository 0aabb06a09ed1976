"""Values of the CloudFront templates: the bucket, its keys in URLs and policies, the rate limit for WAF. Pure."""

import hashlib
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from generator.api import contract, cursors, keys
from generator.config.settings import Config
from generator.edge import responses, router
from generator.site import families
from generator.tree import chunks

FOLDER: Final = "cloudfront"
FUNCTION: Final = "function.js"
ORIGIN_RESPONSE: Final = "origin-response.js"
#: Only where the edge cuts pages.
ORIGIN_REQUEST: Final = "origin-request.js"
STACK: Final = "template.yaml"
NAMES: Final = (FUNCTION, ORIGIN_RESPONSE, ORIGIN_REQUEST, STACK)

#: The region the stack must be in, and so its bucket.
_REGION: Final = "us-east-1"
_RUNTIME: Final = "nodejs22.x"
#: WAF's windows in seconds, and the bounds of its limit (AWS WAF Developer Guide, rate-based rules).
_WAF_WINDOWS: Final = (60, 120, 300, 600)
_WAF_LIMITS: Final = (10, 2_000_000_000)
_VERSION_LENGTH: Final = 16
#: In bytes (CloudFront Developer Guide, quotas on CloudFront Functions).
_LARGEST_FUNCTION: Final = 10 * 1024
#: In bytes, as JSON: a function on a request to the origin may answer 1 MB, headers included (quotas on Lambda@Edge).
LARGEST_ANSWER: Final = 990_000
#: How long the function that cuts pages may run.
_REQUEST_SECONDS: Final = 10
#: What the function that cuts pages refuses; the router before it has seen to the rest.
_FAULTS_OF_PAGES: Final = ("cursor.gone",)
_FAULTS_OF_SEARCHES: Final = ("cursor.gone", "cursor.foreign", "category", "q", "q.absent", "q.words")
#: The errors of CloudFront itself, by the answer to them. Pages for 400 and 404 would replace the functions' answers.
_OWN_ERRORS: Final = {
    HTTPStatus.BAD_REQUEST: (403, 414),
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: (416,),
    HTTPStatus.METHOD_NOT_ALLOWED: (405,),
    HTTPStatus.SERVICE_UNAVAILABLE: (500, 501, 502, 503, 504),
}
#: Errors that show the page of another.
_PAGES: Final = {HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: HTTPStatus.BAD_REQUEST}


def function_values(config: Config) -> dict[str, Any]:
    """Values of the function, in addition to those of the router core."""
    return {"root": _root(config)}


def origin_response_values(config: Config) -> dict[str, Any]:
    """Values of the Lambda@Edge function on the bucket's responses."""
    page_gone = contract.encode(contract.invalid("cursor.gone", variant=config.variant)).decode()
    unavailable = responses.error_bodies()[HTTPStatus.SERVICE_UNAVAILABLE]
    list_unknown = contract.encode(contract.invalid("category", variant=config.variant)).decode()
    # Where there are several resources, the function itself finds what all of them have.
    root, details = ("", ()) if config.questions.enabled else (_root(config), (keys.DETAILS, keys.SLUGS))
    return {
        **router.resource_values(config),
        "root": _root(config),
        "lists": f"{_root(config)}{keys.LISTS}/",
        "optional": [
            *(f"{root}{folder}/" for folder in (*details, *_downloads(config))),
            *(root + key for key in families.optional(config)),
        ],
        "head": keys.HEAD,
        "page": _root(config) + keys.error(HTTPStatus.SERVICE_UNAVAILABLE),
        "of_category": keys.CATEGORY_SEPARATOR,
        "first": keys.FIRST,
        "common": responses.COMMON,
        "page_gone": _answer(HTTPStatus.BAD_REQUEST, page_gone, config),
        "list_unknown": _answer(HTTPStatus.BAD_REQUEST, list_unknown, config),
        "not_found": _answer(HTTPStatus.NOT_FOUND, responses.error_bodies()[HTTPStatus.NOT_FOUND], config),
        "unavailable": _answer(HTTPStatus.SERVICE_UNAVAILABLE, unavailable, config),
    }


def origin_request_values(config: Config) -> dict[str, Any]:
    """Values of the Lambda@Edge function that cuts pages, in addition to `router.window_values`."""
    bad, unavailable = HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE
    sentences = contract.parameter_errors(config.variant, can_search=config.can_search)
    faults = _FAULTS_OF_SEARCHES if config.can_search else _FAULTS_OF_PAGES
    return {
        "region": _REGION,
        "root": _root(config),
        "prefix": _target(config)[1],
        "build": keys.BUILD,
        "limit_max": contract.LIMIT_MAX,
        "largest_answer": LARGEST_ANSWER,
        "patience_ms": (_REQUEST_SECONDS - 2) * 1000,
        "generation_length": cursors.GENERATION_LENGTH,
        "invalid": contract.invalid().error,
        "first": keys.FIRST,
        "chunk_letter": chunks.LETTER,
        "common": responses.COMMON,
        "sentences": {fault: sentences[fault] for fault in faults},
        "invalid_headers": responses.error_headers(bad, config),
        "unavailable_headers": responses.error_headers(unavailable, config),
        "unavailable": responses.error_bodies()[unavailable],
    }


def stack_values(config: Config, functions: Mapping[str, str]) -> dict[str, Any]:
    """Values of the CloudFormation template; `functions` is rendered code by file name."""
    bucket, prefix = _target(config)
    origin_response, origin_request = functions[ORIGIN_RESPONSE], functions.get(ORIGIN_REQUEST)
    _, window = waf_limit(config.rate_limit.requests, responses.window_seconds(config))
    can_search = config.can_search and origin_request is not None
    too_many = responses.error_headers(HTTPStatus.TOO_MANY_REQUESTS, config) | responses.COMMON
    del too_many["content-type"]  # WAF sets it from the type of the body
    return {
        "bucket": bucket,
        "domain": _domain(config.base_url),
        "served": f"/{_in_policy(prefix)}{contract.API_VERSION}/*",
        "published": f"/{_in_policy(prefix)}*",
        "error_pages": dict(_error_pages(config)),
        "methods": responses.METHODS.split(", "),
        "exposed": responses.COMMON["access-control-expose-headers"].split(", "),
        "tls_seconds": responses.TLS_SECONDS,
        "preflight_seconds": int(responses.PREFLIGHT["access-control-max-age"]),
        "function": functions[FUNCTION],
        "function_size": len(functions[FUNCTION].encode()),
        "largest_function": _LARGEST_FUNCTION,
        "origin_response": origin_response,
        "origin_request": origin_request,
        "lists": [f"/{_in_policy(prefix)}{folder}/*" for folder in _folders_of_lists(config)],
        "build": f"/{_in_policy(prefix)}{keys.BUILD}",
        "request_seconds": _REQUEST_SECONDS,
        "can_search": can_search,
        "runtime": _RUNTIME,
        "version": _version(origin_response),
        "request_version": _version(origin_request or ""),
        "rules": [*_waf_rules(config, can_search=can_search)],
        "window": responses.window_seconds(config),
        "waf_window": window,
        "too_many_headers": too_many | {"retry-after": str(window)},
        "too_many_body": responses.error_bodies()[HTTPStatus.TOO_MANY_REQUESTS],
    }


def _folders_of_lists(config: Config) -> list[str]:
    """The folders of the lists of each resource."""
    return [keys.LISTS, *([keys.QUESTION_LISTS] if config.questions.enabled else [])]


def _downloads(config: Config) -> list[str]:
    """The folders of downloads, whose files may be withdrawn."""
    return [
        keys.list_prefix(name) for name in keys.DOWNLOADS if keys.head(name) in families.documents_of(config).values()
    ]


def _error_pages(config: Config) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Status and page of what CloudFront answers by itself, by CloudFront's status."""
    for answer, statuses in _OWN_ERRORS.items():
        for status in statuses:
            yield status, {"status": answer.value, "page": _root(config) + keys.error(_PAGES.get(answer, answer))}


def _waf_rules(config: Config, *, can_search: bool) -> Iterator[Mapping[str, Any]]:
    """A rule for all requests and, where there is search, one for searches, known by their query."""
    counts, seconds = config.rate_limit, responses.window_seconds(config)
    of_all = {"name": "RateLimit", "counted": f"{counts.requests} requests", "query": ""}
    yield of_all | {"limit": waf_limit(counts.requests, seconds)[0]}
    if can_search:
        of_searches = {"name": "SearchLimit", "counted": f"{counts.searches} searches"}
        yield of_searches | {"query": router.QUERY_OF_SEARCH, "limit": waf_limit(counts.searches, seconds)[0]}


def waf_limit(requests: int, seconds: int) -> tuple[int, int]:
    """Limit and window of the same rate for WAF: its next longer window, or its longest."""
    window = next((window for window in _WAF_WINDOWS if window >= seconds), _WAF_WINDOWS[-1])
    least, most = _WAF_LIMITS
    return min(max(-(-requests * window // seconds), least), most), window


def _version(code: str) -> str:
    """A name that changes with the code, because CloudFormation never updates a published version."""
    return hashlib.sha256(f"{_RUNTIME}\n{code}".encode()).hexdigest()[:_VERSION_LENGTH]


def _target(config: Config) -> tuple[str | None, str]:
    """The bucket, if it is known, and the prefix of its keys."""
    return config.publish.bucket() or (None, "")


def _root(config: Config) -> str:
    """The path that CloudFront puts before a key."""
    return f"/{quote(_target(config)[1])}"


def _in_policy(prefix: str) -> str:
    """The prefix escaped for an IAM policy (IAM User Guide, policy variables)."""
    return "".join(f"${{{letter}}}" if letter in "$*?" else letter for letter in prefix)


def _domain(base_url: str) -> str:
    url = urlsplit(base_url)
    return str(url.hostname) if url.scheme == "https" else ""


def _answer(status: HTTPStatus, body: str, config: Config) -> Mapping[str, Any]:
    headers = responses.error_headers(status, config)
    return {"status": str(status.value), "statusDescription": status.phrase, "headers": headers, "body": body}
