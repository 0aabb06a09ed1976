"""`publish.notify_command`: run after whatever readers can see, with the newest change step; never a reason to fail."""

import json
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from generator.api import keys
from generator.publish import commands, record
from tests.support.deaths import dying_before
from tests.support.sites.builds import make_config
from tests.support.sites.publishing import FX, PublishedSite, hour
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Request
from tests.support.waiting import wait_until

FEED = "http://127.0.0.1:8000/v1/changes/head.json"
COMPLETE = "the publish is complete, but followers may not have been notified; fix the command"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file into which the command of `told` writes."""
    return tmp_path / "notes"


@pytest.fixture
def command(notes: Path) -> str:
    """A command that notes a line of JSON: its last two arguments."""
    program = f"import json, sys; print(json.dumps(sys.argv[-2:]), file=open({str(notes)!r}, 'a'))"
    return shlex.join([sys.executable, "-S", "-c", program, "told"])


def told(notes: Path) -> list[list[str]]:
    return [json.loads(line) for line in notes.read_text("utf-8").splitlines()] if notes.exists() else []


def published(site: PublishedSite) -> list[str]:
    """What the command must be told of what is published."""
    feed = site.record().built.current.get(keys.CHANGES)
    return ["", ""] if feed is None else [feed.chunks[-1] if feed.chunks else "", FEED]


def test_followers_are_told_of_the_newest_step_and_of_where_the_feed_is(
    published_site: PublishedSite, command: str, notes: Path
) -> None:
    published_site.edit(1, question="Else?")
    result = published_site.done("rebuild", "--as-of", hour(1), publish__notify_command=command)
    assert told(notes) == [published(published_site)]
    assert result.stderr == ""


def test_nobody_is_told_when_nothing_changed(published_site: PublishedSite, command: str, notes: Path) -> None:
    published_site.done("publish", publish__notify_command=command)
    published_site.done("rebuild", "--as-of", hour(1), publish__notify_command=command)
    assert told(notes) == [], "only build.json differs"
    published_site.done("publish", "--purge-retired", publish__notify_command=command)
    assert told(notes) == [], "only what was retired is gone"


def test_a_takedown_tells_followers_of_the_new_session(
    published_site: PublishedSite, command: str, notes: Path
) -> None:
    published_site.edit(1, question="Else?")
    published_site.done("rebuild", "--as-of", hour(1))
    published_site.done("takedown", market_id(1), publish__notify_command=command)
    assert told(notes) == [published(published_site)]
    published_site.done("takedown", market_id(1), publish__notify_command=command)
    assert len(told(notes)) == 1


def test_the_command_runs_when_the_lease_is_released_and_the_cdn_invalidated(published_site: PublishedSite) -> None:
    published_site.target = "./www"
    published_site.done("publish")
    published_site.edit(FX, is_listed=0)
    published_site.done(
        "rebuild", "--as-of", hour(1), publish__purge_command="sh -c 'touch purged'",
        publish__notify_command="sh -c 'test -e purged && cp www/manifest.json seen.json'",
    )  # fmt: skip
    assert json.loads(Path("seen.json").read_bytes())["work"] is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sh -c 'echo first; echo no route >&2; exit 7'", "sh ended with 7 (no route)"),
        ("no-such-command --all", "no-such-command: no such file or directory"),
    ],
)
def test_a_failure_is_a_warning_and_no_failure_of_the_publish(
    published_site: PublishedSite, line: str, reason: str
) -> None:
    published_site.edit(1, question="Else?")
    result = published_site.done("rebuild", "--as-of", hour(1), publish__notify_command=line)
    assert f"WARNING: publish.notify_command: {reason}; {COMPLETE}" in result.stderr
    published_site.check()


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    child = f"sleep {3600 + os.getpid()}"  # no other process of this machine has this command line
    config = make_config(tmp_path, publish__notify_command=f"sh -c '{child} & {child}'")
    (warning,) = commands.notify(config, None, patience_s=0.2)
    assert warning == f"publish.notify_command: sh did not end within 0.2 seconds; {COMPLETE}"
    wait_until(lambda: not is_running(child))


def is_running(command: str) -> bool:
    """Whether a process of this machine has these words as its command line."""
    wanted = b"".join(word.encode() + b"\0" for word in command.split())
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if (process / "cmdline").read_bytes() == wanted:
                return True
    return False


def test_the_publish_that_finishes_the_work_of_a_killed_one_tells_followers(
    published_site: PublishedSite, command: str, notes: Path
) -> None:
    def is_release(request: Request) -> bool:
        is_put = request.operation == "PutObject" and request.key.endswith(record.KEY)
        return is_put and published_site.record().built.complete and published_site.record().work is not None

    published_site.edit(1, question="Else?")
    with dying_before(published_site.server, is_release):
        published_site.run("rebuild", "--as-of", hour(1), publish__notify_command=command)
    assert published_site.record().built.complete
    notes.unlink(missing_ok=True)
    published_site.server.behaviour.clock_offset_s += 600
    published_site.done("publish", publish__notify_command=command)
    assert told(notes) == [published(published_site)]


def test_followers_are_told_although_the_cdn_could_not_be_invalidated(
    published_site: PublishedSite, command: str, notes: Path
) -> None:
    published_site.edit(FX, is_listed=0)
    result = published_site.run(
        "rebuild", "--as-of", hour(1), publish__notify_command=command, publish__purge_command="false"
    )
    assert result.exit_code == 1
    assert len(told(notes)) == 1
