"""Publishing through the real command line, in subprocesses: output, exit codes, terminals, secrets."""

import re
import subprocess
from collections.abc import Mapping

import pytest

from tests.support import commands
from tests.support.commands import run
from tests.support.sites.builds import files
from tests.support.sites.publishing import FX, PublishedSite, hour
from tests.support.sites.rows import market_id

KEY_ID, SECRET, TOKEN = "AKIAEXAMPLE0000000", "s3cret/KEY+that=nobody+may+see", "session-token-nobody-may-see"
CREDENTIALS: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN,
}  # fmt: skip


def command(site: PublishedSite, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = ("--set", f"publish.target={site.target}", "--set", f"publish.endpoint_url={site.server.url}")
    return run(*arguments, *where, cwd=site.folder, **CREDENTIALS)


def test_a_rebuild_ends_with_two_lines(published_site: PublishedSite) -> None:
    published_site.edit(FX, question="Else?")
    result = command(published_site, "rebuild", "--as-of", hour(1))
    assert (result.returncode, result.stderr) == (0, "")
    objects = len(published_site.built())
    size = sum(
        len(published_site.objects()[key])
        for key in (f"v1/public/markets/detail/00/{market_id(FX)}.json", "v1/build.json")
    )
    assert re.sub(r"[\d.]+ s$", "TIME", result.stdout, flags=re.MULTILINE) == (
        f"built 11 markets as of 2024-02-01T01:00:00.000Z: 2 files written ({size} bytes), {objects - 2} unchanged, "
        "0 deleted, 0 rows quarantined, TIME\n"
        f"published 11 markets as of 2024-02-01T01:00:00.000Z to s3://markets/api: 2 objects uploaded ({size} bytes), "
        f"{objects - 2} unchanged, 0 deleted, 0 retained, 9 requests\n"
    )
    published_site.check()


@pytest.mark.parametrize(
    "arguments", [("publish", "-v"), ("publish", "-v", "--verify"), ("publish", "-v", "--dry-run")]
)
def test_secrets_are_never_printed(published_site: PublishedSite, arguments: tuple[str, ...]) -> None:
    published_site.edit(FX, question="Else?")
    assert command(published_site, "build", "--as-of", hour(1), "-v").returncode == 0
    results = [command(published_site, *arguments)]
    published_site.server.behaviour.expire_after = 0
    results.append(command(published_site, *arguments))
    assert [result.returncode for result in results] == [0, 1]
    printed = "".join(result.stdout + result.stderr for result in results)
    everything = [
        *published_site.stored().values(),
        *files(published_site.folder / "output", "").values(),
        printed.encode(),
    ]
    assert "Traceback" in printed, "with -v"
    for secret in (SECRET, TOKEN):
        assert not [content for content in everything if secret.encode() in content]


def on_terminal(site: PublishedSite, *words: str, answer: str = "") -> tuple[int, str, bytes]:
    """The exit code of a command, what it printed, and what a terminal showed of its errors; it reads the answer."""
    where = ("--set", f"publish.target={site.target}", "--set", f"publish.endpoint_url={site.server.url}")
    return commands.on_terminal(*words, *where, cwd=site.folder, answer=answer, **CREDENTIALS)


@pytest.mark.campaign(short=0)
def test_on_a_terminal_a_takedown_asks_before_it_removes(published_site: PublishedSite) -> None:
    code, printed, shown = on_terminal(published_site, "takedown", market_id(FX)[:8], answer="n\n")
    assert (code, printed) == (1, "")
    asked = shown.decode().replace("\r\n", "\n")
    assert f'{market_id(FX)}: "Question 11?", open\nRemove from everything that is published? [y/N]: ' in asked
    assert published_site.traces(FX)
    assert published_site.done("takedown").stdout == "0 markets are blocked\n"

    code, printed, _ = on_terminal(published_site, "takedown", market_id(FX)[:8], answer="y\n")
    assert (code, published_site.traces(FX)) == (0, [])
    assert "gone from " in printed.splitlines()[-1]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("words", [("--yes", market_id(FX)), ("--undo", market_id(FX)), ()])
def test_on_a_terminal_nobody_who_is_sure_is_asked(published_site: PublishedSite, words: tuple[str, ...]) -> None:
    code, _, shown = on_terminal(published_site, "takedown", *words)
    assert code == 0
    assert b"Remove" not in shown
