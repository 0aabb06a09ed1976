"""CDN invalidation: twice after each withdrawal, only then, and retried until it succeeds."""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from generator.errors import BusyError, StoreError
from generator.publish import copies
from generator.publish.copies import Cdn
from generator.stores.store import nothing
from tests.support.edges.servers import Answer, QuietHandler, serving
from tests.support.sites.builds import make_config
from tests.support.sites.publishing import FX, PublishedSite, hour, wait_for_fills
from tests.support.sites.rows import market_id
from tests.support.stores.places import use_credentials
from tests.support.stores.s3.behaviour import DENIED

#: Before any test shortens it.
LONGEST_FILL_S: Final = copies.FILL_S
NO_CDN = "no CDN is configured, so cached copies of withdrawn markets may remain; set publish.cloudfront_distribution"


@pytest.fixture
def command(tmp_path: Path) -> tuple[str, Path]:
    """A command that logs its arguments with the time, and its log file."""
    notes = tmp_path / "notes"
    program = f"import sys, time; print(time.monotonic(), *sys.argv[1:], file=open({str(notes)!r}, 'a'))"
    return shlex.join([sys.executable, "-c", program, "purge"]), notes


def noted(notes: Path) -> list[str]:
    return [line.partition(" ")[2] for line in notes.read_text("utf-8").splitlines()] if notes.exists() else []


@pytest.mark.parametrize("files", ["", "https://files.example.org/site"])
def test_the_purge_command_is_called_twice_with_each_base_url(
    published_site: PublishedSite, command: tuple[str, Path], files: str
) -> None:
    line, notes = command
    result = published_site.done("takedown", market_id(FX), publish__purge_command=line, dumps__base_url=files)
    assert noted(notes) == [f"purge {base}/v1/" for base in ("http://127.0.0.1:8000", files) if base] * 2
    assert NO_CDN not in result.stderr
    assert not published_site.record().are_caches_stale
    published_site.check()


def test_the_second_call_comes_after_the_longest_fill_time(
    published_site: PublishedSite, command: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LONGEST_FILL_S == 60, "as docs/takedown.md says"
    line, notes = command
    wait_for_fills(monkeypatch, 1)
    published_site.edit(FX, is_listed=0)
    published_site.done("rebuild", "--as-of", hour(1), publish__purge_command=line)
    first, second = (float(line.split()[0]) for line in notes.read_text("utf-8").splitlines())
    assert second - first >= 1


@pytest.mark.parametrize("option", [(), ("--verify",)])
def test_nothing_is_invalidated_unless_something_is_withdrawn(
    published_site: PublishedSite, command: tuple[str, Path], option: tuple[str, ...]
) -> None:
    published_site.edit(FX, question="Else?")
    result = published_site.done("rebuild", "--as-of", hour(1), *option, publish__purge_command=command[0])
    assert noted(command[1]) == []
    assert result.stderr == ""
    published_site.edit(FX, is_listed=0)
    published_site.done("rebuild", "--dry-run", "--as-of", hour(2), publish__purge_command=command[0])
    assert noted(command[1]) == []


def test_a_purge_of_retired_generations_invalidates_too(
    published_site: PublishedSite, command: tuple[str, Path]
) -> None:
    published_site.done("publish", "--purge-retired", publish__purge_command=command[0])
    assert len(noted(command[1])) == 2


def test_a_failing_command_ends_with_1_and_the_next_publish_tries_again(
    published_site: PublishedSite, command: tuple[str, Path]
) -> None:
    failing = shlex.join([sys.executable, "-c", "import sys; print('first'); sys.exit('token refused')"])
    result = published_site.run("takedown", market_id(FX), publish__purge_command=failing)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == (
        f"error: publish.purge_command: {sys.executable} ended with 1 (token refused); copies of withdrawn markets "
        "may remain in the CDN; fix the command, then run publish again"
    )
    assert published_site.record().are_caches_stale
    assert [key for key in published_site.traces(FX) if key.startswith("store")] == []
    assert published_site.record().work is None
    assert published_site.run("publish", publish__purge_command=failing).exit_code == 1
    published_site.done("publish", publish__purge_command=command[0])
    assert len(noted(command[1])) == 2
    assert not published_site.record().are_caches_stale
    published_site.done("publish", publish__purge_command=command[0])
    assert len(noted(command[1])) == 2
    published_site.check()


def test_the_cdn_is_invalidated_although_old_versions_cannot_be_listed(
    published_site: PublishedSite, command: tuple[str, Path]
) -> None:
    published_site.server.bucket.versioning = "Enabled"
    published_site.server.before = lambda request: DENIED if request.operation == "ListObjectVersions" else None
    result = published_site.run("takedown", market_id(FX), publish__purge_command=command[0])
    assert result.exit_code == 1
    assert len(noted(command[1])) == 2
    assert result.stderr.splitlines()[-1] == (
        "error: s3://markets/api: cannot delete old versions; allow these credentials s3:GetBucketVersioning, "
        "s3:ListBucketVersions and s3:DeleteObjectVersion, then run publish again"
    )
    assert (published_site.record().are_caches_stale, published_site.record().are_versions_kept) == (False, True)
    assert published_site.record().work is None
    assert published_site.run("publish").exit_code == 1
    published_site.server.before = None
    published_site.done("publish")
    assert not published_site.record().are_versions_kept
    versions, _ = published_site.server.bucket.list_versions("", ("", ""), 10_000)
    assert not [version.key for version in versions if market_id(FX) in version.key]


def test_whichever_run_first_knows_a_cdn_invalidates_it(
    published_site: PublishedSite, command: tuple[str, Path]
) -> None:
    result = published_site.done("takedown", market_id(FX))
    assert NO_CDN in result.stderr
    assert "the first run that knows a CDN invalidates it" in result.stderr
    assert published_site.record().are_caches_stale
    published_site.done("publish")
    for run in (("publish",), ("takedown", market_id(FX))):
        result = published_site.done(*run)
        assert NO_CDN not in result.stderr, "nothing was withdrawn by this run"
    requests = published_site.requests("publish")
    assert not [request for request in requests if request.startswith("Put")], "a site without a CDN stays cheap"
    assert published_site.record().are_caches_stale
    published_site.done("takedown", market_id(FX), publish__purge_command=command[0])
    assert len(noted(command[1])) == 2
    assert not published_site.record().are_caches_stale
    published_site.done("publish", publish__purge_command=command[0])
    assert len(noted(command[1])) == 2


def test_a_command_is_ended_when_the_lease_is_lost(tmp_path: Path) -> None:
    def lost() -> None:
        raise BusyError("overtaken")

    may_go_on, notes = tmp_path / "may go on", tmp_path / "notes"
    waiting = f"[*iter(lambda: os.path.exists({str(may_go_on)!r}) or time.sleep(0.01), True)]"
    program = f"import os, time; {waiting}; open({str(notes)!r}, 'w')"
    config = make_config(tmp_path, publish__purge_command=shlex.join([sys.executable, "-c", program]))
    with pytest.raises(BusyError):
        Cdn(config, lost, step_s=0.02).invalidate()
    may_go_on.touch()
    time.sleep(0.3)
    assert not notes.exists()


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
    Cdn(make_config(tmp_path, publish__purge_command=command), nothing).invalidate()
    given = json.loads(notes.read_text("utf-8"))
    assert kept.items() <= given.items()
    assert given["PATH"] == os.environ["PATH"]
    assert "secret" not in notes.read_text("utf-8")


class CloudFront:
    """Answers for the distribution E1 as CloudFront does, which completes what it is asked after a number of questions.

    `invalidated` has the paths of each invalidation, `asked` counts the questions.
    """

    def __init__(self) -> None:
        self.questions, self.asked, self.denied = 0, 0, ""
        self.invalidated = list[list[str]]()

    def answer(self, path: str, body: str) -> tuple[int, str]:
        if not path.startswith("/2020-05-31/distribution/E1/invalidation"):
            return 404, _refusal("NoSuchDistribution", "The specified distribution does not exist.")
        if body:
            self.invalidated.append(re.findall("<Path>(.*?)</Path>", body))
        elif self.denied:
            return 403, _refusal("AccessDenied", self.denied)
        else:
            self.asked += 1
        status = "Completed" if self.asked > self.questions else "InProgress"
        return 201 if body else 200, f"<Invalidation><Id>I1</Id><Status>{status}</Status></Invalidation>"


def _refusal(code: str, message: str) -> str:
    return f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"


@pytest.fixture
def cloudfront(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFront]:
    """A CloudFront where boto3 is configured to look."""
    use_credentials(monkeypatch)
    found = CloudFront()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name is the library's
            body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
            status, answer = found.answer(self.path, body)
            self.reply(Answer(status, {}, answer.encode()))

        do_GET = do_POST  # noqa: N815 - the name is the library's

    with serving(Handler) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFRONT", f"http://127.0.0.1:{port}")
        # With a custom endpoint, boto3 does not infer CloudFront's region.
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield found


def test_cloudfront_invalidates_everything_with_one_path_each_time(
    published_site: PublishedSite, cloudfront: CloudFront
) -> None:
    published_site.done("takedown", market_id(FX), publish__cloudfront_distribution="E1")
    assert cloudfront.invalidated == [["/*"]] * 2
    published_site.check()


def test_a_takedown_waits_until_cloudfront_has_invalidated_every_copy(tmp_path: Path, cloudfront: CloudFront) -> None:
    cloudfront.questions, renewals = 3, list[int]()
    cdn = Cdn(make_config(tmp_path, publish__cloudfront_distribution="E1"), lambda: renewals.append(1), step_s=0.01)
    cdn.invalidate()
    cdn.wait()
    assert cloudfront.asked == 4
    assert len(renewals) == 3


def test_an_invalidation_that_does_not_complete_is_an_error(tmp_path: Path, cloudfront: CloudFront) -> None:
    cloudfront.questions = 10**9
    config = make_config(tmp_path, publish__cloudfront_distribution="E1")
    cdn = Cdn(config, nothing, patience_s=0.05, step_s=0.01)
    cdn.invalidate()
    with pytest.raises(StoreError, match=r"distribution E1: invalidation I1 is not complete after 0 minutes; copies"):
        cdn.wait()


def test_the_missing_permission_to_ask_about_an_invalidation_is_named(tmp_path: Path, cloudfront: CloudFront) -> None:
    cloudfront.denied = "not authorized"
    cdn = Cdn(make_config(tmp_path, publish__cloudfront_distribution="E1"), nothing)
    cdn.invalidate()
    with pytest.raises(StoreError, match=r"not authorized; copies .* allow cloudfront:GetInvalidation, then"):
        cdn.wait()


def test_a_missing_distribution_is_reported(cloudfront: CloudFront, tmp_path: Path) -> None:
    config = make_config(tmp_path, publish__cloudfront_distribution="E0000000000000")
    with pytest.raises(StoreError, match=r"publish\.cloudfront_distribution E0000000000000: .* run publish again"):
        Cdn(config, nothing).invalidate()
