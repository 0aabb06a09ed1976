"""The S3 server of the tests fails on demand, and only then."""

import http.client
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError

from tests.support.stores.s3.behaviour import APPLIED_BUT_FAILED, FAULTS, SLOW_DOWN, Fault
from tests.support.stores.s3.server import BUCKET, Entry, S3Server
from tests.support.stores.s3.servers import Endpoint, separate_s3_server
from tests.support.stores.s3.wire import Answer, Request

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

#: The timeout of a test.
PATIENCE_S = 30


@pytest.fixture
def client(s3: S3Server) -> Iterator["S3Client"]:
    with closing(Endpoint(s3.url).client()) as client:
        yield client


def put(client: "S3Client", key: str = "a", body: bytes = b"1", bucket: str = BUCKET, **options: Any) -> str:
    """Put an object; returns its ETag."""
    return client.put_object(Bucket=bucket, Key=key, Body=body, **options)["ETag"]


def refusal(ask: Callable[[], Any]) -> str:
    """The status and code with which a request is refused."""
    with pytest.raises(ClientError) as refused:
        ask()
    answer = refused.value.response
    return f"{answer['ResponseMetadata']['HTTPStatusCode']} {answer['Error']['Code']}"


# ── a well-behaved store ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_object_comes_back_with_its_headers(s3: S3Server, client: "S3Client") -> None:
    put(client, "ü/&.json", b"{}", ContentType="application/json", CacheControl="no-cache", Metadata={"made": "here"})
    got = client.get_object(Bucket=BUCKET, Key="ü/&.json")
    assert got["Body"].read() == b"{}"
    assert (got["ContentType"], got["CacheControl"], got["Metadata"]) == (
        "application/json",
        "no-cache",
        {"made": "here"},
    )
    body, headers = s3.objects()["ü/&.json"]
    assert (body, headers["cache-control"]) == (b"{}", "no-cache")


def test_of_many_concurrent_creations_one_succeeds(s3: S3Server, client: "S3Client") -> None:
    def create(number: int) -> bool:
        try:
            return bool(put(client, body=str(number).encode(), IfNoneMatch="*"))
        except ClientError:
            return False

    with ThreadPoolExecutor(16) as threads:
        created = list(threads.map(create, range(64)))
    assert sum(created) == 1
    assert s3.objects()["a"][0] == str(created.index(True)).encode()


def test_a_body_with_a_wrong_checksum_is_refused(s3: S3Server, client: "S3Client") -> None:
    assert refusal(lambda: put(client, ContentMD5="AAAAAAAAAAAAAAAAAAAAAA==")) == "400 BadDigest"
    assert not s3.objects()


def test_a_chunked_body_is_reassembled(s3: S3Server) -> None:
    chunks = b"3;chunk-signature=0\r\nabc\r\n2\r\nde\r\n0\r\nx-amz-checksum-crc32:hYfYZQ==\r\n\r\n"
    headers = {"Authorization": "Credential=me/", "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
    with closing(http.client.HTTPConnection("127.0.0.1", s3.port)) as connection:
        connection.request("PUT", f"/{BUCKET}/a", chunks, headers | {"Content-Encoding": "aws-chunked"})
        assert connection.getresponse().status == 200
    assert s3.objects() == {"a": (b"abcde", {})}


def test_unsigned_requests_are_refused_unless_the_store_is_open_to_everyone(s3: S3Server, client: "S3Client") -> None:
    put(client)
    with closing(http.client.HTTPConnection("127.0.0.1", s3.port)) as connection:
        statuses = []
        for is_open in (False, True):
            s3.behaviour.open_to_everyone = is_open
            connection.request("GET", f"/{BUCKET}/a")
            answer = connection.getresponse()
            statuses.append((answer.status, answer.read()[-1:]))
    assert statuses == [(403, b">"), (200, b"1")]


# ── quirks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_conditions_can_be_ignored(s3: S3Server, client: "S3Client") -> None:
    s3.behaviour.ignores_conditions = True
    put(client)
    put(client, body=b"2", IfNoneMatch="*")
    put(client, body=b"3", IfMatch="stale")
    assert s3.objects()["a"][0] == b"3"


def test_an_etag_in_quotes_can_be_refused(s3: S3Server, client: "S3Client") -> None:
    etag = put(client)
    put(client, body=b"1", IfMatch=etag)
    s3.behaviour.bare_etags = True
    assert refusal(lambda: put(client, IfMatch=etag)) == "412 PreconditionFailed"
    put(client, body=b"2", IfMatch=etag.strip('"'))


def test_etags_can_be_opaque(s3: S3Server, client: "S3Client") -> None:
    s3.behaviour.opaque_etags = True
    assert put(client) != put(client)


def test_the_clock_can_be_set(s3: S3Server, client: "S3Client") -> None:
    s3.clock = lambda: 1_000_000_000.0
    s3.behaviour.clock_offset_s = 5
    got = client.put_object(Bucket=BUCKET, Key="a")["ResponseMetadata"]["HTTPHeaders"]["date"]
    assert got == "Sun, 09 Sep 2001 01:46:45 GMT"
    assert client.head_object(Bucket=BUCKET, Key="a")["LastModified"].timestamp() == 1_000_000_005


def test_deletions_without_content_md5_can_be_refused(s3: S3Server, client: "S3Client") -> None:
    s3.behaviour.wants_content_md5 = True
    assert (
        refusal(lambda: client.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": "a"}]}))
        == "400 MissingContentMD5"
    )


def test_lists_are_counted_and_can_be_refused(s3: S3Server, client: "S3Client") -> None:
    client.list_objects_v2(Bucket=BUCKET)
    s3.behaviour.refuses_lists = True
    assert refusal(lambda: client.list_objects_v2(Bucket=BUCKET)) == "403 AccessDenied"
    assert refusal(lambda: client.list_object_versions(Bucket=BUCKET)) == "403 AccessDenied"
    assert (s3.count("ListObjectsV2"), s3.count("ListObjectVersions"), s3.count("PutObject")) == (2, 1, 0)


def test_pages_can_be_short(s3: S3Server, client: "S3Client") -> None:
    for key in "abc":
        put(client, key)
    s3.behaviour.page_size = 2
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    assert [[found["Key"] for found in page["Contents"]] for page in pages] == [["a", "b"], ["c"]]


def test_a_key_id_expires_until_another_is_used(s3: S3Server, client: "S3Client") -> None:
    s3.behaviour.expire_after = 2
    put(client)
    put(client)
    assert refusal(lambda: put(client, body=b"2")) == "400 ExpiredToken"
    with closing(Endpoint(s3.url, key_id="renewed").client()) as renewed:
        put(renewed, body=b"3")
    assert s3.objects()["a"][0] == b"3"


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "answer", "applied"),
    [
        ("slow_down", "503 SlowDown", False),
        ("conflict", "409 ConditionalRequestConflict", False),
        ("applied_but_failed", "500 InternalError", True),
        ("dropped", None, False),
        ("applied_but_dropped", None, True),
        ("cut_short", None, True),
    ],
)
def test_every_fault_happens(s3: S3Server, client: "S3Client", name: str, answer: str | None, *, applied: bool) -> None:
    s3.behaviour.shares = {name: 1.0}
    if answer:
        assert refusal(lambda: put(client, IfNoneMatch="*")) == answer
    else:
        with pytest.raises((ConnectionClosedError, HTTPClientError)):
            put(client, IfNoneMatch="*")
    assert bool(s3.objects()) == applied
    assert s3.log == [Entry("PutObject", "a", "if-none-match: *", FAULTS[name].status)]


def test_only_conditional_puts_conflict(s3: S3Server, client: "S3Client") -> None:
    s3.behaviour.shares = {"conflict": 1.0}
    put(client)


def test_an_answer_is_cut_short(s3: S3Server, client: "S3Client") -> None:
    put(client, body=b"12345")
    s3.before = lambda _: FAULTS["cut_short"]
    with closing(client.get_object(Bucket=BUCKET, Key="a")["Body"]) as body, pytest.raises(HTTPClientError):
        body.read()


def test_single_deletions_can_fail_in_a_200_answer(s3: S3Server, client: "S3Client") -> None:
    keys = [f"{number}" for number in range(40)]
    for key in keys:
        put(client, key)
    s3.behaviour.delete_errors = 0.5
    answer = client.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
    failed = {error["Key"] for error in answer["Errors"]}
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert s3.objects().keys() == failed
    assert 0 < len(failed) < 40


def test_failures_depend_on_the_seed_and_not_on_the_order() -> None:
    def failed(seed: int, order: int) -> set[str]:
        with S3Server(seed=seed) as server, closing(Endpoint(server.url).client()) as client:
            server.behaviour.shares = {"slow_down": 0.2, "applied_but_failed": 0.2}
            for number in list(range(60))[::order]:
                with suppress(ClientError):
                    put(client, str(number))
            return {entry.key for entry in server.log if entry.status != 200}

    first = failed(1, 1)
    assert 0 < len(first) < 60
    assert failed(1, -1) == first
    assert failed(2, 1) != first


def test_a_retry_draws_again(s3: S3Server, client: "S3Client") -> None:
    s3.behaviour.shares = {"slow_down": 0.5}
    for _ in range(40):
        with suppress(ClientError):
            put(client)
    assert {entry.status for entry in s3.log} == {200, 503}


def test_an_unknown_behaviour_is_refused(s3: S3Server) -> None:
    with pytest.raises(ValueError, match="no such behaviour: latency"):
        s3.behaviour.change({"latency": 1})


# ── hooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_can_be_held_while_others_are_served(s3: S3Server, client: "S3Client") -> None:
    arrived, released = threading.Event(), threading.Event()

    def hold(request: Request) -> Fault | None:
        if request.key == "late":
            arrived.set()
            released.wait(PATIENCE_S)
        return None

    s3.before = hold
    with ThreadPoolExecutor(1) as other:
        late = other.submit(put, client, "late")
        assert arrived.wait(PATIENCE_S)
        put(client, "early")
        assert s3.objects().keys() == {"early"}
        released.set()
        late.result()
    assert [entry.key for entry in s3.log] == ["early", "late"]


def test_a_held_request_takes_effect_after_its_client_has_gone(s3: S3Server) -> None:
    arrived, released, applied = threading.Event(), threading.Event(), threading.Event()

    def hold(_: Request) -> None:
        arrived.set()
        released.wait(PATIENCE_S)

    s3.before = hold
    s3.after = lambda _, __: applied.set()
    with closing(http.client.HTTPConnection("127.0.0.1", s3.port)) as connection:
        connection.request("PUT", f"/{BUCKET}/a", b"1", {"Authorization": "Credential=me/"})
        assert arrived.wait(PATIENCE_S)
    assert not s3.objects()
    released.set()
    assert applied.wait(PATIENCE_S)
    assert s3.objects() == {"a": (b"1", {})}


def test_a_hook_can_send_requests_to_its_server(s3: S3Server, client: "S3Client") -> None:
    seen = []

    def look(request: Request, answer: Answer) -> None:
        if request.operation == "PutObject":
            seen.append((client.get_object(Bucket=BUCKET, Key="a")["Body"].read(), answer.status))

    s3.after = look
    put(client, body=b"1")
    put(client, body=b"2")
    assert seen == [(b"1", 200), (b"2", 200)]


def test_a_hook_can_choose_the_request_that_fails(s3: S3Server, client: "S3Client") -> None:
    faults = iter([None, SLOW_DOWN, APPLIED_BUT_FAILED])
    s3.before = lambda _: next(faults)
    put(client)
    assert refusal(lambda: put(client, body=b"2")) == "503 SlowDown"
    assert s3.objects()["a"][0] == b"1"
    assert refusal(lambda: put(client, body=b"3")) == "500 InternalError"
    assert s3.objects()["a"][0] == b"3"


def test_an_error_in_a_hook_fails_its_test() -> None:
    def fail(_: Request) -> Fault | None:
        pytest.fail("as the test expected")

    with pytest.raises(pytest.fail.Exception, match="as the test expected"), S3Server() as server:  # noqa: PT012
        server.before = fail
        with closing(Endpoint(server.url).client()) as client, pytest.raises(ConnectionClosedError):
            put(client)


# ── a process of its own ──────────────────────────────────────────────────────────────────────────────────────────


def test_it_runs_as_a_separate_process() -> None:
    with separate_s3_server() as server, closing(Endpoint(server.url).client()) as client:
        put(client)
        server.behave(refuses_lists=True)
        assert refusal(lambda: client.list_objects_v2(Bucket=BUCKET)) == "403 AccessDenied"
        assert [(entry["operation"], entry["status"]) for entry in server.log()] == [
            ("PutObject", 200),
            ("ListObjectsV2", 403),
        ]
