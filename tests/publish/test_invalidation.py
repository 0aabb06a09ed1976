"""CDN invalidation: twice after each withdrawal, only then, and retried until it succeeds."""

import json
import os
import shlex
import sys
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import boto3
import pytest

from generator.errors import StoreError
from generator.publish import invalidation
from tests.support.builds import make_config
from tests.support.publishing import FX, Site, hour
from tests.support.rows import market_id
from tests.support.s3.servers import Endpoint
from tests.support.stores import use_credentials

if TYPE_CHECKING:
    from types_boto3_cloudfront.type_defs import DistributionConfigTypeDef, OriginTypeDef

NO_CDN = "no CDN is configured, so cached copies of withdrawn markets may remain; set publish.cloudfront_distribution"


@pytest.fixture
def command(tmp_path: Path) -> tuple[str, Path]:
    """A command that logs its arguments with the time, and its log file."""
    notes = tmp_path / "notes"
    program = f"import sys, time; print(time.monotonic(), *sys.argv[1:], file=open({str(notes)!r}, 'a'))"
    return shlex.join([sys.executable, "-c", program, "purge"]), notes


def noted(notes: Path) -> list[str]:
    return [line.partition(" ")[2] for line in notes.read_text("utf-8").splitlines()] if notes.exists() else []


def test_the_purge_command_is_called_twice_with_the_base_url(site: Site, command: tuple[str, Path]) -> None:
    line, notes = command
    result = site.done("takedown", market_id(FX), publish__purge_command=line)
    assert noted(notes) == ["purge http://127.0.0.1:8000/v1/"] * 2
    assert NO_CDN not in result.stderr
    assert not site.record().are_caches_stale
    site.check()


def test_the_second_call_comes_after_the_longest_fill_time(site: Site, command: tuple[str, Path]) -> None:
    line, notes = command
    site.edit(FX, is_listed=0)
    site.done("rebuild", "--as-of", hour(1), publish__purge_command=line, publish__cache_fill="1 s")
    first, second = (float(line.split()[0]) for line in notes.read_text("utf-8").splitlines())
    assert second - first >= 1


@pytest.mark.parametrize("option", [(), ("--verify",)])
def test_nothing_is_invalidated_unless_something_is_withdrawn(
    site: Site, command: tuple[str, Path], option: tuple[str, ...]
) -> None:
    site.edit(FX, question="Else?")
    result = site.done("rebuild", "--as-of", hour(1), *option, publish__purge_command=command[0])
    assert noted(command[1]) == []
    assert result.stderr == ""


def test_a_purge_of_retired_generations_invalidates_too(site: Site, command: tuple[str, Path]) -> None:
    site.done("publish", "--purge-retired", publish__purge_command=command[0])
    assert len(noted(command[1])) == 2


def test_a_dry_run_invalidates_nothing(site: Site, command: tuple[str, Path]) -> None:
    site.edit(FX, is_listed=0)
    site.done("rebuild", "--dry-run", "--as-of", hour(1), publish__purge_command=command[0])
    assert noted(command[1]) == []


def test_without_a_cdn_the_operator_is_warned(site: Site) -> None:
    assert NO_CDN in site.done("takedown", market_id(FX)).stderr


def test_a_failing_command_ends_with_1_and_the_next_publish_tries_again(site: Site, command: tuple[str, Path]) -> None:
    failing = shlex.join([sys.executable, "-c", "import sys; print('first'); sys.exit('token refused')"])
    result = site.run("takedown", market_id(FX), publish__purge_command=failing)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == (
        f"error: publish.purge_command: {sys.executable} ended with 1 (token refused); copies of withdrawn markets "
        "may remain in the CDN; fix the command, then run publish again"
    )
    assert site.record().are_caches_stale
    assert [key for key in site.traces(FX) if key.startswith("store")] == []
    assert site.record().work is None
    assert site.run("publish", publish__purge_command=failing).exit_code == 1
    site.done("publish", publish__purge_command=command[0])
    assert len(noted(command[1])) == 2
    assert not site.record().are_caches_stale
    site.done("publish", publish__purge_command=command[0])
    assert len(noted(command[1])) == 2
    site.check()


def test_a_repeated_takedown_tries_again_too(site: Site, command: tuple[str, Path]) -> None:
    assert site.run("takedown", market_id(FX), publish__purge_command="false").exit_code == 1
    assert site.run("takedown", market_id(FX), publish__purge_command="false").exit_code == 1
    site.done("takedown", market_id(FX), publish__purge_command=command[0])
    assert len(noted(command[1])) == 2
    assert not site.record().are_caches_stale


def test_a_missing_command_is_reported(site: Site) -> None:
    site.edit(FX, is_listed=0)
    result = site.run("rebuild", "--as-of", hour(1), publish__purge_command="no-such-command --all")
    assert result.exit_code == 1
    assert "publish.purge_command: no-such-command: no such file or directory; copies of withdrawn" in result.stderr


def test_the_purge_command_gets_no_secrets_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"HOME": "/home/public-markets", "LC_ALL": "C.UTF-8", "https_proxy": "proxy:8080", "PURGE_TOKEN": "its own"}
    secret = (
        "PUBLIC_MARKETS_SOURCE__URL", "PUBLIC_MARKETS_OUTPUT", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD_X"
    )  # fmt: skip
    for name, value in {**kept, **dict.fromkeys(secret, "postgresql://reader:secret@db.example.com/site")}.items():
        monkeypatch.setenv(name, value)
    notes = tmp_path / "environment"
    program = f"import os, json; json.dump(dict(os.environ), open({str(notes)!r}, 'w'))"
    command = shlex.join([sys.executable, "-c", program])
    invalidation.invalidate(make_config(tmp_path, publish__purge_command=command))
    given = json.loads(notes.read_text("utf-8"))
    assert kept.items() <= given.items()
    assert given["PATH"] == os.environ["PATH"]
    assert "secret" not in notes.read_text("utf-8")


@pytest.fixture
def cloudfront(moto: Endpoint, monkeypatch: pytest.MonkeyPatch) -> str:
    """A distribution in moto, where boto3 is configured to look."""
    use_credentials(monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFRONT", moto.url)
    # With a custom endpoint, boto3 does not infer CloudFront's region.
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    bucket: OriginTypeDef = {
        "Id": "bucket",
        "DomainName": "bucket.s3.amazonaws.com",
        "S3OriginConfig": {"OriginAccessIdentity": ""},
    }
    config: DistributionConfigTypeDef = {
        "CallerReference": token_hex(8),
        "Comment": "",
        "Enabled": True,
        "Origins": {"Quantity": 1, "Items": [bucket]},
        "DefaultCacheBehavior": {"TargetOriginId": "bucket", "ViewerProtocolPolicy": "allow-all"},
    }
    return boto3.client("cloudfront").create_distribution(DistributionConfig=config)["Distribution"]["Id"]


def invalidations(distribution: str) -> list[list[str]]:
    client = boto3.client("cloudfront")
    found = client.list_invalidations(DistributionId=distribution)["InvalidationList"].get("Items", [])
    return [
        client.get_invalidation(DistributionId=distribution, Id=entry["Id"])["Invalidation"]["InvalidationBatch"][
            "Paths"
        ]["Items"]
        for entry in found
    ]


def test_cloudfront_invalidates_everything_with_one_path_each_time(site: Site, cloudfront: str) -> None:
    site.done("takedown", market_id(FX), publish__cloudfront_distribution=cloudfront)
    assert invalidations(cloudfront) == [["/*"]] * 2
    site.check()


def test_a_missing_distribution_is_reported(cloudfront: str, tmp_path: Path) -> None:
    config = make_config(tmp_path, publish__cloudfront_distribution="E0000000000000")
    with pytest.raises(StoreError, match=r"publish\.cloudfront_distribution E0000000000000: .* run publish again"):
        invalidation.invalidate(config)


def test_missing_credentials_are_reported(cloudfront: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)  # it caches credentials
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    config = make_config(tmp_path, publish__cloudfront_distribution=cloudfront)
    with pytest.raises(StoreError, match="allow cloudfront:CreateInvalidation"):
        invalidation.invalidate(config)


def test_a_distribution_and_a_command_can_be_combined(
    cloudfront: str, command: tuple[str, Path], tmp_path: Path
) -> None:
    config = make_config(tmp_path, publish__cloudfront_distribution=cloudfront, publish__purge_command=command[0])
    assert invalidation.is_configured(config)
    assert not invalidation.is_configured(make_config(tmp_path))
    invalidation.invalidate(config)
    assert len(noted(command[1])) == 1
    assert invalidations(cloudfront) == [["/*"]]
