"""Logs and results: as text or JSON, logs on stderr, never mixed with results on stdout."""

import json
from datetime import datetime
from typing import Any

import pytest

from tests.support.commands import on_terminal
from tests.support.sites.publishing import PublishedSite, hour
from tests.support.sites.rows import market_id


def lines(stderr: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stderr.splitlines()]


def test_json_logs_are_a_line_per_stage_with_its_duration_and_counts(published_site: PublishedSite) -> None:
    published_site.edit(1, question="Another question?")
    result = published_site.done("rebuild", "--as-of", hour(1), "--log-format", "json")
    stages = {line["stage"]: line for line in lines(result.stderr) if "stage" in line}
    assert list(stages) == ["read", "render", "place", "upload"]
    assert all(line["level"] == "info" and line["duration_ms"] >= 0 for line in stages.values())
    assert (stages["read"]["markets"], stages["read"]["hidden"]) == (11, 1)
    assert (stages["render"]["lists"], stages["render"]["quarantined"]) == (30, 0)
    assert stages["place"]["written"] == stages["upload"]["uploaded"] > 50
    assert all(datetime.fromisoformat(line["time"]).tzinfo for line in stages.values())
    times = [datetime.fromisoformat(line["time"]) for line in stages.values()]
    assert times == sorted(times)
    built, published = lines(result.stdout)
    assert built["message"].startswith("built 11 markets")
    assert published["message"].startswith("published 11 markets")
    assert {line["level"] for line in (built, published)} == {"result"}
    assert (built["markets"], built["written"]) == (11, stages["place"]["written"])
    assert (published["markets"], published["uploaded"]) == (11, stages["upload"]["uploaded"])


def test_warnings_and_errors_are_json_too(published_site: PublishedSite) -> None:
    published_site.edit(1, prob=7.5)
    result = published_site.run("build", "--as-of", hour(1), "--log-format", "json")
    assert result.exit_code == 3
    (failure,) = [line for line in lines(result.stderr) if line["level"] == "error"]
    assert failure["exit_code"] == 3
    assert failure["message"].startswith("1 of 11 markets break the contract")
    result = published_site.run("build", "--as-of", hour(1), "--log-format", "json", "--accept=invalid")
    assert any(
        line["level"] == "warning" and line["message"].startswith("markets: 1 row quarantined: prob: ")
        for line in lines(result.stderr)
    )


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    "words",
    [
        ("build",), ("demo",), ("plan", "--reads", "5"), ("check",), ("check", "--published"),
        ("rebuild", "--dry-run"), ("publish",), ("takedown", market_id(1)), ("takedown", "--undo", market_id(1)),
        ("plan", "--reads", "many"), ("build", "--no-such-option"), ("build", "--set", "nonsense"),
    ],
)  # fmt: skip
def test_every_line_of_every_command_is_json(published_site: PublishedSite, words: tuple[str, ...]) -> None:
    result = published_site.run(*words, "--log-format", "json")
    found = lines(result.stdout) + lines(result.stderr)
    assert found
    assert all(isinstance(line["message"], str) and line["level"] and line["time"].endswith("Z") for line in found)
    assert ("error" in {line["level"] for line in lines(result.stderr)}) is (result.exit_code != 0)
    assert result.exit_code == 0 or found[-1]["exit_code"] == result.exit_code


def test_a_traceback_stays_within_its_line(published_site: PublishedSite) -> None:
    result = published_site.run("build", "--log-format", "json", "-v", "--set", "source.url=sqlite:///nowhere.db")
    failures = [line for line in lines(result.stderr) if line["level"] == "error"]
    assert "Traceback" in failures[0]["trace"]
    assert "\n" in failures[0]["trace"]


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_terminal_shows_progress_unless_logs_are_json(published_site: PublishedSite, form: str) -> None:
    code, printed, shown = on_terminal("plan", "--log-format", form, cwd=published_site.folder)
    assert "sqlite:///" in printed.splitlines()[-1]
    assert code == 0
    assert (b"reading" in shown) is (form == "text")
