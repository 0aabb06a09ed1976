"""Nothing that a command writes shows the password of the database, whatever the driver says."""

import json
from typing import NoReturn

import psycopg
import pytest

from tests.support.sites.publishing import PublishedSite

VARIABLE = "PUBLIC_MARKETS_SOURCE__URL"
#: The password `S3cr@t  Part'/x`, as it must be written in a URL.
ENCODED = "S3cr%40t%20%20Part'%2Fx"
#: What may show of it: nothing.
TRACES = ("S3cr", "Part", "%40t")


@pytest.fixture
def talkative_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver whose message repeats the password in every form that one may have it in."""

    def connect(*_: object, password: str, **__: object) -> NoReturn:
        escaped = password.replace("'", "\\'")
        raise psycopg.OperationalError(f"bad '{password}', {password!r}, '{escaped}', {ENCODED}: no host 't  Part'")

    monkeypatch.setattr(psycopg, "connect", connect)


@pytest.mark.usefixtures("talkative_driver")
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("command", ["build", "check", "plan", "rebuild"])
def test_no_command_repeats_the_password_with_the_driver(
    published_site: PublishedSite, command: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"postgresql://reader:{ENCODED}@db.example/site")
    (published_site.folder / "config.yaml").write_text("metrics: metrics.prom\n")
    result = published_site.run(command, "-v", "--log-format", form)
    assert result.exit_code == 1
    assert "bad" in result.output
    metrics = published_site.folder / "metrics.prom"
    written = result.output + (metrics.read_text("utf-8") if metrics.exists() else "")
    assert [trace for trace in TRACES if trace in written] == []


@pytest.mark.parametrize("verbose", [(), ("-v",)])
def test_an_unexpected_error_does_not_show_the_password_either(
    published_site: PublishedSite, verbose: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("never seen: S3cr@t  Part'/x")

    monkeypatch.setattr(psycopg, "connect", broken)
    monkeypatch.setenv(VARIABLE, f"postgresql://reader:{ENCODED}@db.example/site")
    (published_site.folder / "config.yaml").touch()
    result = published_site.run("plan", *verbose)
    assert result.exit_code == 1
    assert "never seen: ***; this is a bug" in result.stderr
    assert ("Traceback" in result.stderr) is bool(verbose)
    assert [trace for trace in TRACES if trace in result.output] == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:S3cr@tPart@db.example/site",
        "postgresql://u:S3cr@t/Part@db.example/site",
        "postgres://u:S3cr@t?Part@db.example/site",
        "postgresql+psycopg://u:@S3crPart@db.example",
        "postgresql://u:x@db.example/S3cr@Part",
    ],
)
@pytest.mark.parametrize("command", ["check", "takedown"])
def test_an_at_sign_in_the_password_must_be_percent_encoded(
    published_site: PublishedSite, command: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    result = published_site.run(command)
    assert result.exit_code == 1
    assert result.output == (
        f"error: {VARIABLE}: has an `@` in user, password, database or options; percent-encode it: write %40 there\n"
    )


@pytest.mark.parametrize("url", ["postgresql://me@tenant:pw@db.example/x", "sqlite:///a:b@c@d.db"])
def test_an_at_sign_that_is_understood_may_stay(
    published_site: PublishedSite, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, url)
    assert "percent-encode" not in published_site.run("takedown").output


@pytest.mark.parametrize("option", ["://u:hunter2@127.0.0.1:1/d", "://u@127.0.0.1:1/d?password=hunter2"])
def test_a_password_on_the_command_line_is_warned_of(published_site: PublishedSite, option: str) -> None:
    result = published_site.run("plan", "--log-format", "json", source__url=f"postgresql{option}")
    (warning,) = [line for line in map(json.loads, result.stderr.splitlines()) if line["level"] == "warning"]
    assert warning["message"] == (
        f"--set source.url holds a password, which everybody on this machine can see in `ps`; set {VARIABLE} instead"
    )
    assert "hunter2" not in result.output
    assert "`ps`" not in published_site.run("plan", source__url="postgresql://u@127.0.0.1:1/d").output
