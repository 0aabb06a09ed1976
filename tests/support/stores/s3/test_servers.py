"""Our S3 server answers as moto and Ceph's radosgw do, and fails on demand, and only then."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from tests.support.stores.s3.behaviour import FAULTS, Fault
from tests.support.stores.s3.server import BUCKET, Entry, S3Server
from tests.support.stores.s3.servers import Endpoint
from tests.support.stores.s3.wire import Request
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


def outcome(ask: Callable[[], Any]) -> str:
    try:
        answer = ask()["ResponseMetadata"]
    except ClientError as error:
        answer = error.response["ResponseMetadata"]
    return str(answer["HTTPStatusCode"])


def conversation(client: "S3Client", bucket: str) -> Iterator[Any]:
    """A server's answers to every kind of request of publishing; they should be the same everywhere."""
    keys = [f"b/{number}" for number in range(5)]
    for key in ("b/3", "b/1", "b/4", "b/0", "b/2", "c"):
        yield client.put_object(Bucket=bucket, Key=key, Body=key.encode())["ETag"]
    etag = client.put_object(Bucket=bucket, Key="a", Body=b"1")["ETag"]
    conditions: list[Any] = [{"IfNoneMatch": "*"}, {"IfMatch": "0" * 32}, {"IfMatch": etag.strip('"')}]
    for condition in conditions:
        yield outcome(partial(client.put_object, Bucket=bucket, Key="a", Body=b"2", **condition))
    yield client.get_object(Bucket=bucket, Key="a")["Body"].read()
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix="b/", PaginationConfig={"PageSize": 2}
    )
    yield [[(found["Key"], found["Size"], found["ETag"]) for found in page["Contents"]] for page in pages]
    many = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in (*keys[1:], "never")]})
    yield sorted(deleted["Key"] for deleted in many["Deleted"])
    yield outcome(lambda: client.delete_object(Bucket=bucket, Key="never"))
    yield outcome(lambda: client.head_object(Bucket=bucket, Key="b/1"))
    yield client.get_bucket_versioning(Bucket=bucket).get("Status")
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    yield client.get_bucket_versioning(Bucket=bucket).get("Status")
    client.put_object(Bucket=bucket, Key="b/0", Body=b"again")
    yield client.delete_object(Bucket=bucket, Key="b/0")["DeleteMarker"]
    yield versions(client, bucket, "b/0")
    delete_versions(client, bucket, [*version_pages(client, bucket, "b/")])
    yield versions(client, bucket, "")


def versions(client: "S3Client", bucket: str, prefix: str) -> list[Any]:
    found = client.list_object_versions(Bucket=bucket, Prefix=prefix)
    listed = [(version["Key"], version["IsLatest"], version["Size"]) for version in found.get("Versions", [])]
    return [*listed, *((marker["Key"], marker["IsLatest"]) for marker in found.get("DeleteMarkers", []))]


def version_pages(client: "S3Client", bucket: str, prefix: str = "") -> Iterator[Any]:
    paginator = client.get_paginator("list_object_versions")
    return iter(paginator.paginate(Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": 2}))


def delete_versions(client: "S3Client", bucket: str, pages: Iterable[Any]) -> None:
    for page in pages:
        for version in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            client.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("name", ["moto", "s3", "radosgw"])
def test_deleting_versions_while_listing_them_misses_some(name: str, request: pytest.FixtureRequest) -> None:
    server: S3Server | Endpoint = request.getfixturevalue(name)
    endpoint, bucket = (Endpoint(server.url), BUCKET) if isinstance(server, S3Server) else (server, server.new_bucket())
    with closing(endpoint.client()) as client:
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for _ in range(4):
            client.put_object(Bucket=bucket, Key="a")
        delete_versions(client, bucket, version_pages(client, bucket))
        assert len(versions(client, bucket, "")) == 2


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("name", ["moto", "radosgw"])
def test_it_answers_as_others_do(name: str, s3: S3Server, request: pytest.FixtureRequest) -> None:
    server: Endpoint = request.getfixturevalue(name)
    with closing(Endpoint(s3.url).client()) as client, closing(server.client()) as other:
        assert [*conversation(client, BUCKET)] == [*conversation(other, server.new_bucket())]


def put(server: S3Server, *keys: str, **options: Any) -> None:
    with closing(Endpoint(server.url).client()) as client:
        for key in keys:
            with suppress(ClientError, HTTPClientError):
                client.put_object(Bucket=BUCKET, Key=key, Body=b"1", **options)


@pytest.mark.parametrize(("name", "fault"), FAULTS.items())
def test_every_fault_happens(s3: S3Server, name: str, fault: Fault) -> None:
    s3.behaviour.shares = {name: 1.0}
    put(s3, "a", IfNoneMatch="*")
    assert bool(s3.objects()) == fault.applied
    assert s3.log == [Entry("PutObject", "a", "if-none-match: *", fault.status)]


def test_failures_depend_on_the_seed_and_not_on_the_order() -> None:
    def failed(seed: int, order: int) -> set[str]:
        with S3Server(seed=seed) as server:
            server.behaviour.shares = {"slow_down": 0.2, "applied_but_failed": 0.2}
            put(server, *map(str, range(60)[::order]))
            return {entry.key for entry in server.log if entry.status != 200}

    first = failed(1, 1)
    assert 0 < len(first) < 60
    assert failed(1, -1) == first
    assert failed(2, 1) != first


def test_a_request_can_be_held_while_others_are_served(s3: S3Server) -> None:
    arrived, released = threading.Event(), threading.Event()

    def hold(request: Request) -> Fault | None:
        if request.key == "late":
            arrived.set()
            released.wait(PATIENCE_S)
        return None

    s3.before = hold
    with ThreadPoolExecutor(1) as other:
        late = other.submit(put, s3, "late")
        assert arrived.wait(PATIENCE_S)
        put(s3, "early")
        assert s3.objects().keys() == {"early"}
        released.set()
        late.result()
    assert [entry.key for entry in s3.log] == ["early", "late"]


def test_an_error_in_a_hook_fails_its_test() -> None:
    def fail(_: Request) -> Fault | None:
        pytest.fail("as the test expected")

    with pytest.raises(pytest.fail.Exception, match="as the test expected"), S3Server() as server:  # noqa: PT012
        server.before = fail
        put(server, "a")
