"""Simulates CloudFront: gives the rendered functions the documented events, and refuses what CloudFront would.

What it knows is in the CloudFront Developer Guide: "CloudFront Functions event structure", "General helper methods"
(rawQueryString), "Lambda@Edge event structure", "Restrictions on all edge functions". It applies no response headers
policy, as none is documented for answers that a function makes: they must be right without.
"""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote

from generator.api import keys
from generator.config.downloads import Dumps
from generator.config.settings import Config, Publish
from generator.edge import cloudfront, deployment
from tests.support.edges.cases import Case
from tests.support.edges.cloudflare import NODE_FOLDER
from tests.support.edges.servers import Answer
from tests.support.programs import require
from tests.support.sites.builds import files
from tests.support.stores.s3.server import S3Server
from tests.support.waiting import PATIENCE_S

#: How the function gets the query: whole, or in parts only, as in CloudFront's test events.
Query: TypeAlias = Literal["raw", "parsed"]
Event: TypeAlias = dict[str, Any]

FOLDER: Final = f"{deployment.FOLDER}/{cloudfront.FOLDER}"
PLAIN: Final = Config()
EXTENDED: Final = Config(variant="extended")
CHUNKED: Final = Config(layout="chunks")
#: With every kind of file.
FULL: Final = Config(dumps=Dumps(parquet=True, fills=True))
IN_BUCKET: Final = Config(publish=Publish(target="s3://markets-example/read api/v1/"))
#: Every character with a meaning in JavaScript, YAML, URLs or IAM.
AWKWARD: Final = Config(
    base_url="https://api.example.com/it's/%7B%7D/a:b&c",
    publish=Publish(target='s3://markets-example/it\'s "${x}" <b>*?#%\\ é: - /|>/'),
)

ORIGIN: Final = {"s3": {"authMethod": "none", "domainName": "markets.s3.us-east-1.amazonaws.com", "path": ""}}
_READ_ONLY: Final = ("content-length", "host", "transfer-encoding", "via")
_READ_ONLY_AT_ORIGIN: Final = ("transfer-encoding", "via")
_DISALLOWED: Final = re.compile(
    r"connection|expect|keep-alive|proxy-(authenticate|authorization|connection)|trailer|upgrade|x-accel-.*"
    r"|x-amz-cf-.*|x-amzn-.*|x-cache|x-edge-.*|x-forwarded-proto|x-real-ip"
)
_HEADER_NAME: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_LARGEST_ANSWER: Final = 40 * 1024
_LARGEST_ORIGIN_ANSWER: Final = 1024 * 1024
_LONGEST_URI: Final = 8192

_RUN_FUNCTION: Final = """
const fs = require('fs');
const tasks = JSON.parse(fs.readFileSync(%s, 'utf8'));
fs.writeFileSync(%s, JSON.stringify(tasks.map(function (task) {
  // CloudFront's method gives undefined where there is no question mark.
  const raw = task.query === '' ? undefined : task.query;
  if (task.isRaw) task.event.request.rawQueryString = function () { return raw; };
  return handler(task.event);
})));
"""
_RUN_LAMBDA: Final = """
const fs = require('fs');
const tasks = JSON.parse(fs.readFileSync(%s, 'utf8'));
(async function () {
  const results = [];
  // Few at a time: among all of them, one would wait for S3 longer than the function does.
  for (let at = 0; at < tasks.length; at += 8) {
    results.push(...(await Promise.all(tasks.slice(at, at + 8).map(event => exports.handler(event)))));
  }
  fs.writeFileSync(%s, JSON.stringify(results));
})();
"""


def rendered(config: Config) -> Mapping[str, str]:
    files = {file.name: file.text for file in deployment.render(config)}
    return {name: files[f"{FOLDER}/{name}"] for name in cloudfront.NAMES if f"{FOLDER}/{name}" in files}


class RefusedError(Exception):
    """CloudFront would answer 502 or 503 instead of the function's result."""


@dataclass(frozen=True)
class CloudFront:
    """A distribution with its functions before a bucket; `root` is the path of the keys, `folder` for scripts.

    With `origin_request`, the function that cuts pages, `store` is the endpoint of the S3 server that it reads.
    """

    function: str
    origin_response: str
    root: str
    output: Path
    folder: Path
    origin_request: str = ""
    store: str = ""

    def answers(self, cases: Sequence[Case], program: str, query: Query) -> list[Answer]:
        """The answer to every case, with the functions run by `program` and by Node."""
        returned = self.viewer_requests(cases, program, query)
        passed = [result for result in returned if "statusCode" not in result]
        responses = iter(self._origin(passed))
        return [
            _viewer_answer(result) if "statusCode" in result else _leave_body(case, next(responses))
            for case, result in zip(cases, returned, strict=True)
        ]

    def viewer_requests(self, cases: Sequence[Case], program: str, query: Query) -> list[Event]:
        """What the function on viewer requests returns for every case, if CloudFront accepts it."""
        events = [viewer_event(case.method, case.path, case.query) for case in cases]
        tasks = [
            {"event": event, "isRaw": query == "raw", "query": case.query}
            for event, case in zip(events, cases, strict=True)
        ]
        results = self._run(program, self.function, _RUN_FUNCTION, tasks)
        for event, result in zip(events, results, strict=True):
            check_viewer_result(event["request"], result)
        return results

    def origin_responses(self, events: Sequence[Event]) -> list[Event]:
        """What the function on origin responses returns for every event, if CloudFront accepts it."""
        results = self._run("node", self.origin_response, _RUN_LAMBDA, events)
        for event, result in zip(events, results, strict=True):
            check_origin_result(event["Records"][0]["cf"]["response"], result)
        return results

    def origin_requests(self, requests: Sequence[Event]) -> list[Event]:
        """What the function on requests to the origin returns for each: the request, or an answer."""
        given = [{"clientIp": "198.51.100.11", "querystring": "", "headers": {}, "origin": ORIGIN} for _ in requests]
        for event, request in zip(given, requests, strict=True):
            event |= {"method": request["method"], "uri": request["uri"]}
        config = {"distributionId": "EDFDVBD6EXAMPLE", "eventType": "origin-request", "requestId": "EXAMPLE"}
        events = [{"Records": [{"cf": {"config": config, "request": request}}]} for request in given]
        results = self._run("node", self.origin_request, _RUN_LAMBDA, events)
        for request, result in zip(given, results, strict=True):
            check_origin_request_result(request, result)
        return results

    def _origin(self, requests: Sequence[Event]) -> list[Answer]:
        if not self.origin_request:
            return self._bucket(requests)
        made = self.origin_requests(requests)
        passed = iter(self._bucket([request for request in made if "status" not in request]))
        return [_generated(result) if "status" in result else next(passed) for result in made]

    def _bucket(self, requests: Sequence[Event]) -> list[Answer]:
        objects = [self._read(request["uri"]) for request in requests]
        events = [
            origin_event(request["method"], request["uri"], *bucket_response(*found))
            for request, found in zip(requests, objects, strict=True)
        ]
        return [
            Answer(
                status=int(result["status"]),
                headers=shown_headers(result),
                body=result["body"].encode() if "body" in result else found[1] or b"<Error/>",
            )
            for result, found in zip(self.origin_responses(events), objects, strict=True)
        ]

    def _read(self, uri: str) -> tuple[str, bytes | None]:
        key = uri.removeprefix(self.root)
        assert key != uri, f"{uri} is outside the prefix"
        path = self.output / unquote(key)
        return key, path.read_bytes() if path.is_file() else None

    def _run(self, program: str, code: str, runner: str, tasks: Sequence[Event]) -> list[Event]:
        path = require(program, reason="CloudFront's functions are not run in it")
        given, returned, file = (self.folder / name for name in ("given.json", "returned.json", "script.js"))
        given.write_text(json.dumps(tasks), "utf-8")
        file.write_text(code + runner % (json.dumps(str(given)), json.dumps(str(returned))), "utf-8")
        returned.unlink(missing_ok=True)
        command, environ = [path, file], self._environment()
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S)
        if done.returncode:
            raise RefusedError(f"{program}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        results: list[Event] = json.loads(returned.read_text("utf-8"))
        return results

    def _environment(self) -> Mapping[str, str]:
        """The environment in Lambda: credentials; here with another S3."""
        own = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL_S3": self.store}
        return {**os.environ, "NODE_PATH": str(NODE_FOLDER / "node_modules"), **own}


def distribution(config: Config, output: Path, folder: Path, store: S3Server | None = None) -> CloudFront:
    """A distribution before a bucket that holds what the folder does; where pages are cut, that is put into a store."""
    made, root = rendered(config), cloudfront.function_values(config)["root"]
    edge = CloudFront(made["function.js"], made["origin-response.js"], root, output, folder)
    if store is None:
        return edge
    prefix = cloudfront.origin_request_values(config)["prefix"]
    for key, body in files(output).items():
        store.bucket.put(prefix + key, body, {})
    return replace(edge, origin_request=made["origin-request.js"], store=store.url)


def viewer_event(method: str, path: str, query: str) -> Event:
    """The event of a viewer's request. Values are as sent; a repeated name has `multiValue`."""
    given: dict[str, list[str]] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if part:
            given.setdefault(name, []).append(value)
    querystring = {
        name: {"value": values[0]} | ({"multiValue": [{"value": value} for value in values]} if len(values) > 1 else {})
        for name, values in given.items()
    }
    headers = {"host": {"value": "d111111abcdef8.cloudfront.net"}, "accept": {"value": "*/*"}}
    request = {"method": method, "uri": path, "querystring": querystring, "headers": headers, "cookies": {}}
    context = {"distributionId": "EDFDVBD6EXAMPLE", "eventType": "viewer-request", "requestId": "EXAMPLE"}
    return {"version": "1.0", "context": context, "viewer": {"ip": "198.51.100.11"}, "request": request}


def origin_event(method: str, uri: str, status: int, phrase: str, headers: Mapping[str, str]) -> Event:
    """The event of an origin's response."""
    shown = {name.lower(): [{"key": name, "value": value}] for name, value in headers.items()}
    request = {"clientIp": "198.51.100.11", "method": method, "uri": uri, "querystring": "", "headers": {}}
    response = {"status": str(status), "statusDescription": phrase, "headers": shown}
    config = {"distributionId": "EDFDVBD6EXAMPLE", "eventType": "origin-response", "requestId": "EXAMPLE"}
    return {"Records": [{"cf": {"config": config, "request": request | {"origin": ORIGIN}, "response": response}}]}


def bucket_response(key: str, body: bytes | None) -> tuple[int, str, Mapping[str, str]]:
    """The response of a bucket that may be listed, with S3's headers."""
    own = {"x-amz-request-id": "EXAMPLE", "x-amz-id-2": "EXAMPLE=", "Server": "AmazonS3"}
    if body is None:
        return 404, "Not Found", {**own, "Content-Type": "application/xml", "Transfer-Encoding": "chunked"}
    etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
    stored = {"ETag": etag, "Content-Length": str(len(body)), **keys.headers(key)}
    return 200, "OK", {**own, **stored, "x-amz-server-side-encryption": "AES256", "x-amz-version-id": "null"}


def check_viewer_result(request: Event, result: Event) -> None:
    """Refuse what CloudFront would of a function on viewer requests: an answer, or the request to go on with."""
    if "statusCode" in result:
        _check_answer(result)
        return
    uri = result["uri"]
    if not isinstance(uri, str) or not re.fullmatch(r"/[!-\"$-~]*", uri) or len(uri) >= _LONGEST_URI:
        raise RefusedError(f"uri: {uri!r}")
    if {**result, "uri": None, "querystring": None} != {**request, "uri": None, "querystring": None}:
        raise RefusedError(f"method, headers or cookies were changed: {result}")
    if result["querystring"] != {}:
        raise RefusedError("the query would reach the cache")


def _check_answer(result: Event) -> None:
    if unknown := result.keys() - {"statusCode", "statusDescription", "headers", "cookies", "body"}:
        raise RefusedError(f"no field of a response: {unknown}")
    if type(result["statusCode"]) is not int or not 100 <= result["statusCode"] <= 599:
        raise RefusedError(f"statusCode: {result['statusCode']!r}")
    for name, header in result.get("headers", {}).items():
        if not isinstance(header, dict) or header.keys() != {"value"}:
            raise RefusedError(f"{name}: {header!r}")
        _check_header(name, header["value"])
        if name in _READ_ONLY:
            raise RefusedError(f"{name} is read-only")
    body = result.get("body", "")
    if not isinstance(body, str) or len(json.dumps(result)) > _LARGEST_ANSWER:
        raise RefusedError("the body is no text, or the answer larger than 40 KB")


def check_origin_result(before: Event, result: Event) -> None:
    """Refuse what CloudFront would of a Lambda@Edge function on an origin's response."""
    if not str(result["status"]).isdigit() or not 200 <= int(result["status"]) <= 599:
        raise RefusedError(f"status: {result['status']!r}")
    for name, values in result["headers"].items():
        if not isinstance(values, list) or any(value.get("key", name).lower() != name for value in values):
            raise RefusedError(f"{name}: {values!r}")
        for value in values:
            _check_header(name, value["value"])
    for name in _READ_ONLY_AT_ORIGIN:
        if result["headers"].get(name) != before["headers"].get(name):
            raise RefusedError(f"{name} is read-only: it may be neither added, changed nor deleted")
    if "body" in result:
        is_text = isinstance(result["body"], str) and result.get("bodyEncoding", "text") == "text"
        if not is_text or len(json.dumps(result)) > _LARGEST_ORIGIN_ANSWER:
            raise RefusedError("the body is no text, or the answer larger than 1 MB")
        if "content-length" in result["headers"] or "etag" in result["headers"]:
            raise RefusedError("headers of the body that was replaced")


def check_origin_request_result(request: Event, result: Event) -> None:
    """Refuse what CloudFront would of a Lambda@Edge function on a request to the origin, which may not change here."""
    if "status" not in result:
        if result != request:
            raise RefusedError(f"the request was changed: {result}")
        return
    if result.keys() - {"status", "statusDescription", "headers", "body", "bodyEncoding"}:
        raise RefusedError(f"no field of a response: {result.keys()}")
    check_origin_result({"headers": {}}, {name: value for name, value in result.items() if name != "body"})
    if len(json.dumps(result, ensure_ascii=False).encode()) > _LARGEST_ORIGIN_ANSWER:
        raise RefusedError("an answer larger than 1 MB")


def _check_header(name: str, value: object) -> None:
    if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
        raise RefusedError(f"no header: {name}: {value!r}")
    if _DISALLOWED.fullmatch(name):
        raise RefusedError(f"{name} is CloudFront's own")


def shown_headers(result: Event) -> dict[str, str]:
    """The headers of a result of Lambda@Edge."""
    return {name: values[0]["value"] for name, values in result["headers"].items()}


def _generated(result: Event) -> Answer:
    return Answer(int(result["status"]), shown_headers(result), result["body"].encode())


def _viewer_answer(result: Event) -> Answer:
    headers = {name: header["value"] for name, header in result["headers"].items()}
    return Answer(result["statusCode"], headers, result.get("body", "").encode())


def _leave_body(case: Case, answer: Answer) -> Answer:
    return Answer(answer.status, answer.headers, b"") if case.method == "HEAD" else answer
