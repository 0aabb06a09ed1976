"""What an operator reads who made a mistake with the store, or whose address is not an S3 store's, and the remedy."""

import socket
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError, SSLError

from generator.errors import StoreError
from generator.stores.requests import explaining_outage, with_retries
from generator.stores.s3 import Bucket
from generator.stores.s3_errors import Asked, foreign, of_answer, of_boto3
from generator.stores.store import If, UnavailableError, UnreachableError
from tests.stores.test_s3 import CALLS, EXPLAINED, KEY, PUTS, operations
from tests.support.edges.servers import free_port
from tests.support.stores.places import CLIENTS, Client, open_bucket
from tests.support.stores.s3.behaviour import DROPPED, Fault
from tests.support.stores.s3.server import S3Server

#: The operation that each call begins with, and the permissions that it needs.
NEEDED = {
    "put": ("PutObject", "s3:PutObject on markets/api/*"),
    "create": ("PutObject", "s3:PutObject on markets/api/*"),
    "replace": ("PutObject", "s3:PutObject on markets/api/*"),
    "get": ("GetObject", "s3:GetObject on markets/api/* and s3:ListBucket on the bucket markets"),
    "head": ("GetObject", "s3:GetObject on markets/api/* and s3:ListBucket on the bucket markets"),
    "delete": ("DeleteObjects", "s3:DeleteObject on markets/api/*"),
    "list": ("ListObjectsV2", "s3:ListBucket on the bucket markets"),
}


#: S3's permanent errors, and what the message must say.
REFUSALS = {
    "AccessDenied": (403, "allow these credentials s3:"),
    "AuthorizationHeaderMalformed": (400, "set AWS_DEFAULT_REGION"),
    "ExpiredToken": (400, "the credentials have expired; renew them"),
    "InvalidAccessKeyId": (403, "the store does not know the access key; set the credentials"),
    "InvalidRegionName": (400, "the bucket is in another region; set AWS_DEFAULT_REGION to its own"),
    "InvalidToken": (400, "the session token does not belong to the access key; renew both, or unset"),
    "NoSuchBucket": (404, "create it, or correct publish.target"),
    "RequestTimeTooSkewed": (403, "this machine's clock differs from the store's; set it"),
    "SignatureDoesNotMatch": (403, "the secret key does not belong to the access key"),
    "NobodyKnowsThisCode": (400, "Requested by the test."),
    "NotImplemented": (501, "NotImplemented"),
    "QuotaExceeded": (403, "the store is full, or its quota is used up; free some space there, or raise"),
    "XMinioStorageFull": (507, "the store is full, or its quota is used up; free some space there, or raise"),
}

HTML = {"Content-Type": "text/html; charset=utf-8"}
JSON = {"Content-Type": "application/json"}

#: What answers at a wrong address, and how the message describes it.
FOREIGN = {
    "web-site": (Fault(200, page="<!doctype html><html>", headers=HTML), "200 and text/html"),
    "file-server": (Fault(200, page="{}", headers=JSON), "200 and application/json"),
    "web-server": (Fault(404, page="<html><h1>Not Found", headers=HTML), "404 and text/html"),
    "api": (Fault(404, page='{"error": "no such market"}', headers=JSON), "404 and application/json"),
    "forbidden": (Fault(403, page="<html>Forbidden", headers=HTML), "403 and text/html"),
    "redirect": (Fault(301, headers={"Location": "https://example.org/"}), "301, a redirect to https://example.org/"),
    "tls-nginx": (
        Fault(400, page="<html>The plain HTTP request was sent to HTTPS port", headers=HTML),
        "400 and text/html, and wants https://",
    ),
    "tls-go": (
        Fault(400, page="Client sent an HTTP request to an HTTPS server.\n", headers={"Content-Type": "text/plain"}),
        "400 and text/plain, and wants https://",
    ),
}


@pytest.fixture(params=CLIENTS)
def bucket(request: pytest.FixtureRequest, s3: S3Server) -> Bucket:
    return open_bucket(s3, request.param, "api/")


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        call()
    return str(caught.value)


# Permissions


def test_a_missing_permission_is_named_with_the_operation_and_the_place(s3: S3Server, bucket: Bucket) -> None:
    s3.before = lambda _: Fault(403, "AccessDenied")
    for name, (operation, needed) in NEEDED.items():
        assert refused(partial(CALLS[name], bucket)).endswith(
            f": {operation} was refused (403 AccessDenied: Requested by the test.); allow these credentials {needed}"
        )


def test_a_deletion_that_is_refused_in_a_successful_answer_is_named_without_its_status(
    s3: S3Server, bucket: Bucket
) -> None:
    bucket.put(KEY, b"{}", If.ALWAYS)
    s3.behaviour.delete_errors, s3.behaviour.delete_code = 1.0, "AccessDenied"
    assert refused(lambda: bucket.delete([KEY])) == (
        f"s3://markets/api/{KEY}: DeleteObject was refused (AccessDenied: We failed.); allow these credentials "
        "s3:DeleteObject on markets/api/*"
    )


@pytest.mark.campaign(short=4)
@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_names_what_was_refused_why_and_the_remedy(code: str, s3: S3Server, bucket: Bucket) -> None:
    status, said = REFUSALS[code]
    s3.before = lambda _: Fault(status, code)
    for name in (*PUTS, "get", "list", *(["head"] if status in EXPLAINED else [])):
        text = refused(partial(CALLS[name], bucket))
        assert text.startswith(f"s3://{s3.name}/api/v1/"), name
        assert said in text, name
        assert f"{status} {code}: Requested by the test." in text, name
        assert "\n" not in text


def test_an_answer_that_says_nothing_is_translated_by_its_status() -> None:
    answer: Any = {"Error": {"Code": "UnknownError", "Message": None}, "ResponseMetadata": {"HTTPStatusCode": 500}}
    error = of_boto3(Asked("s3://markets/v1", "s3://markets"), ClientError(answer, "PutObject"))
    assert isinstance(error, UnavailableError)


def test_a_bucket_with_object_lock_is_told_by_the_message_alone() -> None:
    said = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters"
    error = of_answer(Asked("s3://markets/v1", "s3://markets"), 400, "InvalidRequest", said)
    assert str(error).partition(f"{said}; ")[2] == (
        "name a bucket without object lock in publish.target, as this one would keep what is withdrawn"
    )
    kept = "Access Denied because object protected by object lock."
    error = of_answer(Asked("s3://markets/v1", "s3://markets", "DeleteObject"), 403, "AccessDenied", kept)
    assert "name a bucket without object lock" in str(error)
    assert "allow these credentials" not in str(error)


def test_a_line_break_in_a_session_token_is_named_without_the_token(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "hidden-token\n")
    assert refused(partial(open_bucket(s3, "boto3").get, KEY)) == (
        f"s3://markets/{KEY}: the access key or the session token holds a line break; set it without one"
    )


# Addresses


def fail_to_resolve(*_: object, **__: object) -> NoReturn:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def outage(store: Bucket, *, is_published: bool = False) -> str:
    """The sentence for a store of which every attempt fails."""

    def ask() -> None:
        with explaining_outage(store, is_published=is_published):
            with_retries(lambda: store.get(KEY))

    return refused(ask)


def test_a_host_that_does_not_resolve_fails_fast_and_says_what_to_check(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket("markets", "", endpoint_url="http://s3.example.invalid", client="boto3")
    monkeypatch.setattr(socket, "getaddrinfo", fail_to_resolve)
    sentence = outage(bucket, is_published=True)
    assert sentence.startswith(
        f"s3://markets: does not answer (s3://markets/{KEY}: the host s3.example.invalid does not resolve); "
    )
    assert sentence.endswith("; check publish.endpoint_url and the network, then run again")
    assert (bucket.requests, sum(waits) < 1) == (3, True)


def test_a_region_that_does_not_exist_is_named(waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-wset-1")
    bucket = Bucket("markets", "", endpoint_url=None, client="boto3")
    monkeypatch.setattr(socket, "getaddrinfo", fail_to_resolve)
    assert ": Amazon S3 in region eu-wset-1, which AWS_DEFAULT_REGION sets); check " in outage(bucket)
    assert len(waits) == 2


def test_an_answer_without_a_code_of_s3_is_named_by_its_status_once() -> None:
    asked = Asked("s3://markets/api/a", "s3://markets/api")
    assert (
        str(of_answer(asked, 500, "500", "Internal Server Error")) == "s3://markets/api/a: 500: Internal Server Error"
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_connection_fails_fast(client: Client, waits: list[float]) -> None:
    bucket = Bucket("markets", "", endpoint_url=f"http://127.0.0.1:{free_port()}", client=client)
    assert outage(bucket).endswith("; check publish.endpoint_url and the network, then run again")
    assert (bucket.requests, sum(waits) < 1) == (3, True)


def test_a_store_that_answered_before_is_tried_for_long(
    s3: S3Server, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = open_bucket(s3, "boto3")
    bucket.head(KEY)
    s3.before = lambda _: DROPPED
    with pytest.raises(UnavailableError):
        bucket.head(KEY)
    monkeypatch.setattr(socket, "getaddrinfo", fail_to_resolve)
    with pytest.raises(UnavailableError) as caught:
        bucket.head(KEY)
    assert not isinstance(caught.value, UnreachableError)
    sentence = outage(bucket, is_published=True)
    assert sentence.endswith("; what is published stays whole, the next run finishes the work")
    assert len(waits) == 11


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "write http:// in publish.endpoint_url, or correct its"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] Hostname mismatch", "correct the host in publish.endpoint_url"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] IP address mismatch", "correct the host in publish.endpoint_url"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired", "set this machine's clock, or renew the"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate", "set AWS_CA_BUNDLE to the certificate of its"),
    ],
)
def test_what_is_wrong_with_tls_is_told_apart(reason: str, remedy: str) -> None:
    error = of_boto3(
        Asked("s3://markets/v1", "s3://markets"), SSLError(endpoint_url="https://s3.example.org", error=OSError(reason))
    )
    assert type(error) is StoreError
    assert str(error).startswith("s3://markets/v1: the store")
    assert f"; {remedy}" in str(error)


# Other servers


@pytest.mark.parametrize("kind", FOREIGN)
def test_an_address_that_does_not_speak_s3_is_named_with_its_answer(kind: str, s3: S3Server, bucket: Bucket) -> None:
    fault, found = FOREIGN[kind]
    s3.before = lambda _: fault
    assert refused(partial(CALLS["get"], bucket)) == (
        f"s3://{s3.name}/api: {s3.url} does not speak S3: it answers GetObject with {found}; correct "
        "publish.endpoint_url, or let the proxy in between pass requests on"
    )
    assert operations(s3) == ["GetObject"]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_the_error_page_of_a_proxy_in_front_of_a_busy_store_is_a_transient_failure(
    status: int, s3: S3Server, bucket: Bucket
) -> None:
    s3.before = lambda _: Fault(status, page="<html>Try again", headers=HTML)
    with pytest.raises(UnavailableError):
        CALLS["get"](bucket)


def test_what_stores_answer_is_never_mistaken() -> None:
    error = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code></Error>'
    xml, redirect = {"Content-Type": "application/xml"}, {"Location": "https://s3.example.org"}
    assert foreign("GetObject", 200, {"ETag": '"1"', "Content-Type": "application/json"}, None) is None
    assert foreign("ListObjectsV2", 200, xml, b"<ListBucketResult") is None
    assert foreign("GetObject", 404, xml, error) is None
    assert foreign("GetObject", 404, {}, error.removeprefix(b'<?xml version="1.0" encoding="UTF-8"?>\n')) is None
    assert foreign("HeadObject", 404, {"Content-Type": "text/html"}, b"") is None
    assert foreign("HeadBucket", 301, {**redirect, "x-amz-bucket-region": "eu-west-1"}, b"") is None
    assert foreign("GetObject", 307, {**redirect, **xml}, error) is None
    assert foreign("DeleteObject", 204, {}, b"") is None
    assert foreign("PutObject", 200, {"Content-Type": "text/html"}, b"") is None
