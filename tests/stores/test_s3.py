"""How S3 errors are reported, and compatibility with stores other than Amazon's."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from generator.errors import BusyError, StoreError
from generator.publish.lease import LEASE
from generator.stores.factory import open_store
from generator.stores.s3 import Bucket, RequestOptions
from generator.stores.store import ConditionFailedError, If, UnavailableError
from tests.support.project import ROOT
from tests.support.sites.builds import make_config
from tests.support.stores.places import CLIENTS, Client, open_bucket, use_credentials
from tests.support.stores.s3.behaviour import (
    APPLIED_BUT_DROPPED,
    APPLIED_BUT_FAILED,
    CONFLICT,
    CUT_SHORT,
    DROPPED,
    SLOW_DOWN,
    Fault,
)
from tests.support.stores.s3.server import S3Server
from tests.support.stores.s3.servers import Endpoint
from tests.support.stores.s3.wire import Answer, Request

KEY = "v1/build.json"
ETAG = "0" * 32

#: Gives credentials of a name and an expiry.
Renew = Callable[[str, str], None]
#: Every operation on a store, by name.
CALLS: dict[str, Callable[[Bucket], object]] = {
    "put": lambda bucket: bucket.put(KEY, b"{}", If.ALWAYS),
    "create": lambda bucket: bucket.put(KEY, b"{}", If.ABSENT),
    "replace": lambda bucket: bucket.put(KEY, b"{}", ETAG),
    "get": lambda bucket: bucket.get(KEY),
    "head": lambda bucket: bucket.head(KEY),
    "delete": lambda bucket: bucket.delete([KEY]),
    "list": lambda bucket: list(bucket.list("v1/")),
    "versions": lambda bucket: bucket.purge_versions("v1/"),
}
PUTS = ("put", "create", "replace")
#: Statuses without a body (of HEAD), for which a second request gets the reason.
EXPLAINED = (400, 403)

#: Failures that are transient, or leave it unknown whether the request took effect.
FAILURES = {
    "503": SLOW_DOWN,
    "500": APPLIED_BUT_FAILED,
    "502": Fault(502, ""),
    "504": Fault(504, "GatewayTimeout"),
    "429": Fault(429, "TooManyRequests"),
    "aborted": Fault(409, "OperationAborted"),
    "dropped": DROPPED,
    "applied-but-dropped": APPLIED_BUT_DROPPED,
    "conflict": CONFLICT,
    **{code: Fault(400, code) for code in ("RequestTimeout", "IncompleteBody", "BadDigest", "SlowDown")},
}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.param
    return chosen


@pytest.fixture
def bucket(s3: S3Server, client: Client) -> Bucket:
    return open_bucket(s3, client)


def operations(server: S3Server) -> list[str]:
    return [entry.operation for entry in server.log]


def bodies(server: S3Server) -> dict[str, bytes]:
    return {key: body for key, (body, _) in server.objects().items()}


class Limit:
    """Called before each request; refuses all after the first few."""

    def __init__(self, allowed: int) -> None:
        self.calls = 0
        self._allowed = allowed

    def __call__(self) -> None:
        self.calls += 1
        if self.calls > self._allowed:
            raise BusyError("overtaken")


# Under a lease


def test_single_deletions_end_when_the_lease_is_lost(s3: S3Server, bucket: Bucket) -> None:
    s3.before = lambda request: Fault(501, "NotImplemented") if request.operation == "DeleteObjects" else None
    with pytest.raises(BusyError):
        bucket.delete([f"v1/{number}.json" for number in range(100)], Limit(4))
    assert s3.count("DeleteObjects") == 1
    assert s3.count("DeleteObject") <= 3


def test_the_lease_is_looked_at_before_each_page_of_old_versions(s3: S3Server, bucket: Bucket) -> None:
    versioned(s3, bucket, "Enabled")
    s3.behaviour.page_size = 2
    s3.log.clear()
    limit = Limit(1000)
    bucket.purge_versions("v1/", limit)
    requests = s3.count("ListObjectVersions") + s3.count("DeleteObjects")
    assert requests >= 8
    assert limit.calls >= requests
    versioned(s3, bucket, "Enabled")
    with pytest.raises(BusyError):
        bucket.purge_versions("v1/", Limit(2))


@pytest.mark.parametrize("name", ["put", "get", "delete"])
def test_a_request_ends_in_time_for_the_lease(name: str, s3: S3Server, client: Client) -> None:
    options = RequestOptions(longest=timedelta(seconds=0.2))
    bucket = Bucket(s3.name, "", endpoint_url=s3.url, client=client, options=options)
    with suppress(UnavailableError):  # on a busy machine; it only opens the connection
        bucket.head(KEY)
    s3.behaviour.latency_s = 20
    began = time.monotonic()
    with pytest.raises(UnavailableError):
        CALLS[name](bucket)
    assert time.monotonic() - began < 15


def test_the_longest_request_is_shorter_than_a_quarter_of_the_lease(s3: S3Server, tmp_path: Path) -> None:
    config = make_config(tmp_path, publish__target=f"s3://{s3.name}/", publish__endpoint_url=s3.url)
    opened = open_store(config)
    assert isinstance(opened, Bucket)
    connection = opened._connection  # noqa: SLF001 - boto3 does not show the timeouts it was given otherwise
    assert connection.timeout_s == 70, "as docs/publishing.md says"
    assert connection.timeout_s < LEASE.total_seconds() / 4
    assert connection.connect_timeout_s + connection.read_timeout_s == connection.timeout_s


# Refusals and failures


@pytest.mark.parametrize("failure", FAILURES)
def test_a_transient_failure_is_distinguished_and_left_to_the_caller(
    failure: str, s3: S3Server, bucket: Bucket
) -> None:
    s3.before = lambda _: FAILURES[failure]
    for asked, call in enumerate(CALLS.values(), start=1):
        with pytest.raises(UnavailableError, match=rf"^s3://{s3.name}"):
            call(bucket)
        if FAILURES[failure].status not in EXPLAINED:
            assert (len(s3.log), bucket.requests) == (asked, asked)


def test_a_truncated_response_is_a_failure(s3: S3Server, bucket: Bucket) -> None:
    bucket.put(KEY, b"something", If.ALWAYS)
    s3.before = lambda _: CUT_SHORT
    for name in ("get", "list", "delete"):
        with pytest.raises(UnavailableError):
            CALLS[name](bucket)


DEAD: Final = "http://user:hidden-secret@127.0.0.1:9"


@pytest.mark.parametrize("variable", ["ALL_PROXY", "http_proxy", "HTTP_PROXY"])
def test_both_libraries_ask_through_the_proxy_that_boto3_finds_or_through_none(
    s3: S3Server, client: Client, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, DEAD)
    calls = [CALLS["get"], CALLS["put"]]
    if variable == "ALL_PROXY":
        for call in calls:
            call(open_bucket(s3, client))
        return
    for call in calls:
        with pytest.raises(UnavailableError) as told:
            call(open_bucket(s3, client))
        assert "hidden" not in str(told.value)
    assert operations(s3) == []
    with pytest.raises(UnavailableError, match=f", through the proxy that {variable} sets$"):
        calls[0](open_bucket(s3, client))
    monkeypatch.setenv("no_proxy", s3.url.removeprefix("http://"))
    for call in calls:
        call(open_bucket(s3, client))


def test_no_password_of_a_proxy_is_told(s3: S3Server, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("socks5://u:hidden@127.0.0.1:9", "http://u:hid/den@127.0.0.1:9", "http://u:hidden@127.0.0.1:9"):
        monkeypatch.setenv("http_proxy", address)
        with pytest.raises((UnavailableError, StoreError)) as told:
            CALLS["get"](open_bucket(s3, client))
        assert "hid" not in str(told.value)
        assert "http_proxy" in str(told.value)


@pytest.mark.parametrize("variable", ["AWS_S3_EXPRESS", "AWS_REQUEST_PAYER", "AWS_SKIP_SIGNATURE"])
def test_the_environment_changes_nothing_that_boto3_does_not_read(
    s3: S3Server, client: Client, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "true")
    names = set[str]()
    s3.before = lambda request: names.update(map(str.lower, request.headers))
    CALLS["put"](open_bucket(s3, client))
    assert "authorization" in names
    assert "x-amz-request-payer" not in names


def test_every_kind_of_failed_condition_is_recognized(s3: S3Server, bucket: Bucket) -> None:
    for fault in (Fault(412, "PreconditionFailed"), Fault(404, "NoSuchKey"), Fault(412), Fault(304)):
        s3.before = lambda request, fault=fault: fault if request.method == "PUT" else None
        for name in ("create", "replace"):
            with pytest.raises(ConditionFailedError):
                CALLS[name](bucket)


def test_no_message_contains_a_secret(s3: S3Server, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch, "AKIAHIDDEN", "hidden-secret")
    bucket = open_bucket(s3, client)
    for fault in (Fault(403, "SignatureDoesNotMatch"), Fault(500, "InternalError"), DROPPED):
        s3.before = lambda _, fault=fault: fault
        for call in CALLS.values():
            with pytest.raises((StoreError, UnavailableError)) as caught:
                call(bucket)
            assert "hidden" not in str(caught.value).lower()


# Credentials


def test_without_credentials_no_request_is_made(s3: S3Server, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    bucket = open_bucket(s3, client)
    for call in CALLS.values():
        with pytest.raises(StoreError, match="set the credentials where boto3 finds them"):
            call(bucket)
    assert s3.log == []


def test_a_missing_certificate_bundle_is_named(
    s3: S3Server, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    with pytest.raises(StoreError, match=rf"^AWS_CA_BUNDLE: {tmp_path}/ca.pem is not a file"):
        open_bucket(s3, client)


@pytest.fixture
def renew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Renew:
    """By a program, as with single sign-on."""
    settings, kept = tmp_path / "aws", tmp_path / "credentials.json"
    settings.write_text(f"[default]\ncredential_process = cat {kept}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(settings))

    def write(key_id: str, expires: str) -> None:
        given = f'"AccessKeyId": "{key_id}", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": "{expires}"'
        kept.write_text(f'{{"Version": 1, {given}}}')

    return write


def soon() -> str:
    """An expiry so near that boto3 refreshes the credentials before using them."""
    return (datetime.now(UTC) + timedelta(minutes=5)).isoformat()


def test_renewed_credentials_are_used_at_once(s3: S3Server, client: Client, renew: Renew) -> None:
    s3.behaviour.expire_after = 3
    renew("FIRST", soon())
    bucket = open_bucket(s3, client)
    for key_id in ("FIRST", "SECOND", "THIRD"):
        renew(key_id, soon())
        for number in range(3):
            bucket.put(f"v1/{key_id}-{number}.json", b"{}", If.ABSENT)
    assert len(s3.objects()) == 9
    with pytest.raises(StoreError, match="the credentials have expired; renew them"):
        bucket.put(KEY, b"{}", If.ABSENT)


def test_credentials_that_have_already_expired_are_refused(s3: S3Server, client: Client, renew: Renew) -> None:
    renew("OLD", "2020-01-01T00:00:00Z")
    for call in CALLS.values():
        with pytest.raises(StoreError, match="the credentials have expired; renew them"):
            call(open_bucket(s3, client))
    assert s3.log == []


# ETags


def test_the_form_of_etags_is_detected_once(s3: S3Server, bucket: Bucket) -> None:
    s3.behaviour.bare_etags = True
    etag = bucket.put(KEY, b"0", If.ABSENT)
    for number in range(3):
        etag = bucket.put(KEY, b"%d" % number, etag)
    assert operations(s3) == ["PutObject", "PutObject", "HeadObject", "PutObject", "PutObject", "PutObject"]


@pytest.mark.parametrize("opaque", [False, True])
def test_etags_are_predicted_once_a_put_has_shown_that_they_are_digests(
    *, opaque: bool, s3: S3Server, bucket: Bucket
) -> None:
    s3.behaviour.opaque_etags = opaque
    assert bucket.etag_of(b"1") is None
    bucket.put(KEY, b"0", If.ALWAYS)
    foretold = bucket.etag_of(b"1")
    assert foretold == (None if opaque else bucket.put(KEY, b"1", If.ALWAYS))


# Deletions and versions


@pytest.mark.parametrize("client", ["obstore"], indirect=True)
def test_listings_and_deletions_take_a_thousand_objects_per_request(s3: S3Server, bucket: Bucket) -> None:
    keys = [f"v1/{number:04}.json" for number in range(2_001)]
    for key in keys:
        s3.bucket.put(key, b"{}", {})
    assert [listed.key for listed in bucket.list("v1/")] == keys
    bucket.delete(keys)
    assert operations(s3) == ["ListObjectsV2"] * 3 + ["DeleteObjects"] * 3
    assert s3.objects() == {}


def test_deletions_that_failed_are_reported(s3: S3Server, bucket: Bucket) -> None:
    bucket.put(KEY, b"{}", If.ALWAYS)
    s3.behaviour.delete_errors = 1.0
    with pytest.raises(UnavailableError, match=rf"^s3://{s3.name}/{KEY}: .*InternalError"):
        bucket.delete([KEY])
    s3.behaviour.delete_errors = 0.0
    bucket.delete([KEY])
    assert s3.objects() == {}


@pytest.mark.parametrize("fault", [Fault(400, "MissingContentMD5"), Fault(501, "NotImplemented"), Fault(405)])
def test_a_store_without_bulk_deletion_gets_single_deletions(fault: Fault, s3: S3Server, bucket: Bucket) -> None:
    s3.before = lambda request: fault if request.operation == "DeleteObjects" else None
    keys = [f"v1/{number}.json" for number in range(3)]
    for key in keys:
        bucket.put(key, b"{}", If.ALWAYS)
    bucket.delete(keys)
    assert s3.objects() == {}
    s3.log.clear()
    bucket.delete(keys)
    assert operations(s3) == ["DeleteObject"] * 3
    s3.before = lambda request: SLOW_DOWN if request.operation == "DeleteObject" else fault
    with pytest.raises(UnavailableError):
        bucket.delete(keys)


def versioned(server: S3Server, bucket: Bucket, status: str) -> None:
    server.bucket.versioning = status
    write_versions(bucket)


def write_versions(bucket: Bucket) -> None:
    """Write objects with old versions, one of them deleted, and an object outside the prefix."""
    for key in ("v1/kept.json", "v1/deleted.json", "other.json"):
        for body in (b"1", b"2", b"3"):
            bucket.put(key, body, If.ALWAYS)
    bucket.delete(["v1/deleted.json"])


def versions(server: S3Server) -> list[tuple[str, bytes]]:
    found, _ = server.bucket.list_versions("", ("", ""), 1000)
    return [(version.key, version.body) for version in found]


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("page_size", [1000, 1, 2, 3, 4])
def test_old_versions_are_purged_and_current_objects_stay(page_size: int, s3: S3Server, bucket: Bucket) -> None:
    versioned(s3, bucket, "Enabled")
    s3.behaviour.page_size = page_size
    assert bucket.purge_versions("v1/") == 2 + 3 + 1
    s3.behaviour.page_size = 1000
    assert versions(s3) == [("other.json", b"3"), ("other.json", b"2"), ("other.json", b"1"), ("v1/kept.json", b"3")]


@pytest.mark.campaign(short=0)
def test_old_versions_are_purged_from_ceph_too(radosgw: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch, radosgw.key_id, radosgw.secret)
    name = radosgw.new_bucket()
    bucket = Bucket(name, "", endpoint_url=radosgw.url, client="obstore")
    with closing(radosgw.client()) as client:
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        write_versions(bucket)
        assert bucket.purge_versions("v1/") == 2 + 3 + 1
        found = client.list_object_versions(Bucket=name)
    assert [version["Key"] for version in found["Versions"]] == ["other.json"] * 3 + ["v1/kept.json"]
    assert "DeleteMarkers" not in found


def test_old_versions_are_purged_after_versioning_was_suspended(s3: S3Server, bucket: Bucket) -> None:
    versioned(s3, bucket, "Enabled")
    s3.bucket.versioning = "Suspended"
    bucket.put("v1/kept.json", b"4", If.ALWAYS)
    assert bucket.purge_versions("v1/") == 3 + 3 + 1
    assert versions(s3)[3:] == [("v1/kept.json", b"4")]


def test_no_old_version_reappears_during_a_purge(s3: S3Server, bucket: Bucket) -> None:
    versioned(s3, bucket, "Enabled")
    seen: list[dict[str, bytes]] = []

    def look(_: Request, __: Answer) -> None:
        seen.append(bodies(s3))

    s3.after = look
    bucket.purge_versions("v1/")
    assert len(seen) > 3
    assert all(current == {"other.json": b"3", "v1/kept.json": b"3"} for current in seen)


@pytest.mark.parametrize("status", [501, 405, 400])
def test_a_store_without_versions_gets_one_request(status: int, s3: S3Server, bucket: Bucket) -> None:
    s3.before = lambda _: Fault(status, "NotImplemented")
    assert bucket.purge_versions("v1/") == 0
    assert bucket.purge_versions("v1/") == 0
    assert operations(s3) == ["GetBucketVersioning"]


@pytest.mark.parametrize("operation", ["GetBucketVersioning", "ListObjectVersions", "DeleteObjects"])
def test_a_missing_permission_to_purge_versions_is_named(operation: str, s3: S3Server, bucket: Bucket) -> None:
    versioned(s3, bucket, "Enabled")
    s3.before = lambda request: Fault(403, "AccessDenied") if request.operation == operation else None
    rights = "s3:GetBucketVersioning, s3:ListBucketVersions and s3:DeleteObjectVersion"
    with pytest.raises(StoreError, match=rf"^s3://{s3.name}: .*{rights}$"):
        bucket.purge_versions("v1/")


# The clock and public access


def test_the_clock_is_that_of_the_last_response_even_of_a_refusal(s3: S3Server, bucket: Bucket) -> None:
    s3.clock = lambda: 1_000_000.0
    assert 1_000_000 <= bucket.now().timestamp() < 1_010_000
    assert operations(s3) == ["HeadBucket"]
    s3.clock = lambda: 2_000_000.0
    bucket.get(KEY)
    assert 2_000_000 <= bucket.now().timestamp() < 2_010_000
    s3.clock = lambda: 1_500_000.0
    s3.before = lambda _: SLOW_DOWN
    with pytest.raises(UnavailableError):
        bucket.head(KEY)
    assert 1_500_000 <= bucket.now().timestamp() < 1_510_000
    assert operations(s3) == ["HeadBucket", "GetObject", "HeadObject"]
    s3.before = lambda _: Fault(403, "AccessDenied")
    assert 1_500_000 <= open_bucket(s3, "boto3").now().timestamp() < 1_510_000


@pytest.mark.parametrize("is_open", [True, False])
def test_a_publicly_writable_bucket_is_detected(*, is_open: bool, s3: S3Server, bucket: Bucket) -> None:
    s3.behaviour.open_to_everyone = is_open
    assert bucket.is_open_to_everyone() is is_open
    assert s3.objects() == {}


def test_public_write_access_is_not_guessed(s3: S3Server, bucket: Bucket) -> None:
    s3.before = lambda _: SLOW_DOWN
    with pytest.raises(UnavailableError):
        bucket.is_open_to_everyone()


# Keys, clients, and lazy imports


@pytest.mark.parametrize("prefix", ["", "a/", "with space/ünï/100%/+&?#/"])
def test_a_prefix_may_hold_any_character(prefix: str, s3: S3Server, client: Client) -> None:
    bucket = open_bucket(s3, client, prefix)
    etag = bucket.put(KEY, b"1", If.ABSENT)
    bucket.put(KEY, b"2", etag)
    assert bodies(s3) == {f"{prefix}{KEY}": b"2"}
    assert [listed.key for listed in bucket.list("v1/")] == [KEY]
    bucket.delete([KEY])
    assert s3.objects() == {}


def test_a_prefix_that_obstore_cannot_encode_is_refused(s3: S3Server) -> None:
    bucket = open_bucket(s3, "obstore", "a//b/")
    with pytest.raises(StoreError, match=rf"^s3://{s3.name}/a//b/{KEY}: .*choose another prefix in publish.target"):
        bucket.put(KEY, b"1", If.ALWAYS)


def test_every_request_is_counted(s3: S3Server, bucket: Bucket) -> None:
    bucket.now()
    for call in CALLS.values():
        with suppress(ConditionFailedError):
            call(bucket)
    bucket.is_open_to_everyone()
    assert bucket.requests == len(s3.log) > len(CALLS)


def test_where_obstore_cannot_be_imported_boto3_uploads(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "generator.stores.s3_uploads", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    bucket = open_bucket(s3, "obstore")
    bucket.put(KEY, b"1", If.ABSENT)
    assert bodies(s3) == {KEY: b"1"}
    assert bucket.parallel == 16
    assert "obstore cannot be imported" in caplog.text


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_command_without_a_bucket_does_not_import_its_libraries() -> None:
    bucket = {"boto3", "botocore", "obstore"}
    code = f"import sys, generator.cli.build, generator.cli.publish; print({bucket} & set(sys.modules))"
    assert python(code) == "set()\n"


def test_threads_that_a_fork_would_lose_start_with_the_first_put(s3: S3Server) -> None:
    code = f"""
import os
from generator.stores.store import If
from tests.support.stores.places import Bucket
threads = lambda: len(os.listdir("/proc/self/task"))
bucket = Bucket({s3.name!r}, "", endpoint_url={s3.url!r}, client="obstore")
bucket.head("v1/build.json")
print(threads())
bucket.put("v1/build.json", b"", If.ALWAYS)
print(threads() > 1)
"""
    assert python(code) == "1\nTrue\n"
