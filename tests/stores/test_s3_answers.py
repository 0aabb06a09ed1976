"""An address that is not an S3 store's is recognized by its answers, before anything is concluded from them."""

import pytest

from generator.errors import StoreError
from generator.stores.s3 import Bucket
from generator.stores.s3_answers import foreign
from generator.stores.store import UnavailableError
from tests.stores.test_s3 import CALLS, operations
from tests.support.stores.places import open_bucket, use_credentials
from tests.support.stores.s3.behaviour import Fault
from tests.support.stores.s3.server import S3Server

HTML = {"Content-Type": "text/html; charset=utf-8"}
JSON = {"Content-Type": "application/json"}

#: What answers at a wrong address, and how the message describes it.
FOREIGN = {
    "web-site": (Fault(200, page="<!doctype html><html>", headers=HTML), "200 and text/html"),
    "file-server": (Fault(200, page="{}", headers=JSON), "200 and application/json"),
    "web-server": (Fault(404, page="<html><h1>Not Found", headers=HTML), "404 and text/html"),
    "api": (Fault(404, page='{"error": "no such market"}', headers=JSON), "404 and application/json"),
    "forbidden": (Fault(403, page="<html>Forbidden", headers=HTML), "403 and text/html"),
    "redirect": (
        Fault(301, headers={"Location": "https://example.org/"}),
        "301, a redirect to https://example.org/",
    ),
    "tls-nginx": (
        Fault(400, page="<html>The plain HTTP request was sent to HTTPS port", headers=HTML),
        "400 and text/html, and wants https://",
    ),
    "tls-go": (
        Fault(400, page="Client sent an HTTP request to an HTTPS server.\n", headers={"Content-Type": "text/plain"}),
        "400 and text/plain, and wants https://",
    ),
}


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    use_credentials(monkeypatch)
    return open_bucket(s3, "boto3", "api/")


@pytest.mark.parametrize("kind", FOREIGN)
def test_an_address_that_does_not_speak_s3_is_named_with_its_answer(kind: str, s3: S3Server, bucket: Bucket) -> None:
    fault, found = FOREIGN[kind]
    s3.before = lambda _: fault
    with pytest.raises(StoreError) as caught:
        CALLS["get"](bucket)
    assert str(caught.value) == (
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
