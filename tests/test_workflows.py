"""Unattended runs: GitHub's workflows, and the schedules of docs/scheduling.md."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from generator.config import loader
from generator.errors import BUILD_GUARDS, PUBLISH_GUARDS, BusyError, OutcomeUnknownError
from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.sites.builds import all_commands

Node = dict[str, Any]
PROGRAM: Final = "public-markets"
COMMANDS: Final = all_commands()
PAGE: Final = (ROOT / "docs" / "scheduling.md").read_text("utf-8")
#: Scalars are text here, `on` included.
WORKFLOWS: Final[dict[str, Node]] = {
    path.name: yaml.load(path.read_text("utf-8"), yaml.BaseLoader)  # noqa: S506 - it makes nothing but text
    for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}
REBUILD: Final = WORKFLOWS["rebuild.yml"]
ACTION: Final[Node] = yaml.load((ROOT / ".github/actions/rebuild/action.yml").read_text("utf-8"), yaml.BaseLoader)  # noqa: S506
INSTALL: Final[Node] = REBUILD["jobs"]["install"]
JOB: Final[Node] = REBUILD["jobs"]["rebuild"]
(CALL,) = JOB["steps"]
#: What the job runs: the steps of the action.
STEPS: Final[list[Node]] = ACTION["runs"]["steps"]
SCHEDULE: Final = loader.load(ROOT / "config.yaml", environ={}).schedule


def jobs() -> list[Node]:
    return [job for workflow in WORKFLOWS.values() for job in workflow["jobs"].values()]


def steps() -> list[Node]:
    return [step for job in jobs() for step in job.get("steps", [])] + STEPS


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page that are written in the language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def the_block(language: str, beginning: str) -> str:
    (found,) = (block for block in blocks(language) if block.startswith(beginning))
    return found


def commands(script: str) -> Iterator[list[str]]:
    """The words that follow the program's name, in every line of a script that runs it."""
    for line in script.splitlines():
        if re.search(rf"(^|[ /]){PROGRAM} +[a-z]", line):
            words = shlex.split(line.strip(), comments=True)
            last = max(place for place, word in enumerate(words) if Path(word).name == PROGRAM)
            yield words[last + 1 :]


def parse(words: list[str]) -> click.Context:
    """Parse the words as a command line, without running it."""
    name, *arguments = words
    return COMMANDS[name].make_context(name, arguments)


# ── GitHub ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_workflows_may_do_no_more_than_they_need() -> None:
    granted = {
        name: [workflow["permissions"], *(job.get("permissions") for job in workflow["jobs"].values())]
        for name, workflow in WORKFLOWS.items()
    }
    reads = {"contents": "read"}
    assert granted == {
        "ci.yml": [reads, None],
        "rebuild.yml": [{}, reads, {"id-token": "write"}],
        "release.yml": [
            {},
            *(reads, reads, reads | {"packages": "write"}, {"packages": "write"}),
            {"attestations": "write", "id-token": "write"},
            {"id-token": "write"},
            {"contents": "write"},
        ],
    }


def test_no_checkout_leaves_its_token_behind() -> None:
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == ["false"] * 4


def test_every_job_has_an_end() -> None:
    assert all(0 < int(job["timeout-minutes"]) <= 60 for job in jobs() if "uses" not in job)
    (credentials,) = (step["with"] for step in STEPS if "role-to-assume" in step.get("with", {}))
    assert int(JOB["timeout-minutes"]) * 60 < int(credentials["role-duration-seconds"])


def test_one_run_publishes_at_a_time_and_none_is_cancelled() -> None:
    assert REBUILD["concurrency"] == {"group": "rebuild", "cancel-in-progress": "false"}


def test_nothing_is_published_before_the_site_is_set_up_or_from_a_fork() -> None:
    (role,) = (step["with"]["role-to-assume"] for step in STEPS if "role-to-assume" in step.get("with", {}))
    assert (role, CALL["with"]["role"]) == ("${{ inputs.role }}", "${{ vars.PUBLISHER_ROLE }}")  # no fork inherits it
    assert INSTALL["if"] == "vars.PUBLISHER_ROLE != ''"
    assert JOB["needs"] == "install"  # and is skipped with it


def test_a_secret_is_known_to_the_step_that_needs_it_and_to_no_other() -> None:
    assert [step for step in steps() if "secrets." in str(step)] == [CALL]
    assert [key for key, value in CALL["with"].items() if "secrets." in value] == ["source-url"]
    assert "secrets." not in str([*WORKFLOWS.values()]).replace(str(CALL), "")
    (holder,) = [step for step in STEPS if "inputs.source-url" in str(step)]
    assert [key for key, value in holder["env"].items() if "source-url" in value] == ["PUBLIC_MARKETS_SOURCE__URL"]
    assert [*commands(holder["run"])]
    tokens = [step for step in steps() if "github.token" in str(step)]
    assert [step["name"] for step in tokens] == ["Log in to the registry"] * 2 + ["Make the release"]


def test_scripts_hold_no_expressions_and_show_no_environment() -> None:
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) == 19
    # GitHub inserts the value of an expression into the script as code.
    assert [script for script in scripts if "${{" in script] == []
    assert [script for script in scripts if re.search(r"\b(echo|printf|printenv|env|set -x)\b", script)] == []


def test_the_job_that_can_take_the_role_installs_nothing_and_runs_what_the_other_one_packed() -> None:
    names = [[step.get("uses", step.get("run", "")) for step in found] for found in (INSTALL["steps"], STEPS)]
    assert [[re.split(r"[@ ]", name)[0] for name in found] for found in names] == [
        ["actions/checkout", "make", "tar", "actions/upload-artifact"],
        ["actions/download-artifact", "tar", "aws-actions/configure-aws-credentials", f".venv/bin/{PROGRAM}"],
    ]
    assert names[0][1] == "make .venv/run"
    assert re.search(r"^\.venv/run:.* requirements/run\.txt$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert "id-token" not in INSTALL["permissions"]
    sent, received = INSTALL["steps"][-1]["with"], STEPS[0]["with"]
    assert sent["name"] == received["name"]
    assert sent["path"] == f"{received['path']}/program.tar.gz"


def test_every_option_that_a_run_offers_exists() -> None:
    offered = REBUILD["on"]["workflow_dispatch"]["inputs"]["option"]["options"]
    known = {name for option in COMMANDS["rebuild"].params for name in option.opts}
    guards = {f"--accept={name}" for name in {*BUILD_GUARDS, *PUBLISH_GUARDS} - {"demo"}}
    assert {*offered} == {"", "--dry-run", "--verify", "--purge-retired"} | guards
    assert {option.partition("=")[0] for option in offered} - {""} <= known


@pytest.mark.parametrize("option", ["", "--accept=shrink"])
def test_the_script_runs_rebuild_with_the_option_that_was_chosen(option: str, tmp_path: Path) -> None:
    installed, used = tmp_path / "installed", tmp_path / "used"
    used.mkdir()
    show = installed / ".venv" / "bin" / PROGRAM
    show.parent.mkdir(parents=True)
    show.with_name("real").write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    show.with_name("real").chmod(0o755)
    show.symlink_to("real")
    (installed / ".git").mkdir()
    environ = {**os.environ, "OPTION": option, "RUNNER_TEMP": str(tmp_path)}
    for folder, found in ((installed, INSTALL["steps"]), (used, STEPS)):
        scripts = [step["run"] for step in found if not step.get("run", "make").startswith("make")]
        script = "\n".join(scripts)
        shown = subprocess.run(["bash", "-ec", script], cwd=folder, env=environ, capture_output=True, check=True)
    assert shown.stdout.decode().split() == ["rebuild", *option.split()]
    assert [path.name for path in used.iterdir()] == [".venv"]


def test_what_the_workflow_sets_are_settings_and_all_that_it_needs() -> None:
    values = {
        "OPTION": "",
        "PUBLIC_MARKETS_BASE_URL": "https://api.example.com",
        "PUBLIC_MARKETS_PUBLISH__TARGET": "s3://markets",
        "PUBLIC_MARKETS_PUBLISH__CLOUDFRONT_DISTRIBUTION": "",  # a variable that is not set
        "PUBLIC_MARKETS_SOURCE__SCHEMA": "",
        "PUBLIC_MARKETS_SOURCE__URL": "postgresql://reader:secret@db.example.com/site",
    }
    inputs = STEPS[-1]["env"]
    assert inputs.keys() == values.keys()
    for name, value in inputs.items():
        source = "secrets" if name.endswith("SOURCE__URL") else "vars"
        given = CALL["with"][value.removeprefix("${{ inputs.").removesuffix(" }}")]
        assert given == (f"${{{{ {source}.{name} }}}}" if name != "OPTION" else "${{ inputs.option }}")
    loaded = loader.load(ROOT / "config.yaml", environ=values)
    assert loaded.publish.target == "s3://markets"
    assert (loaded.publish.cloudfront_distribution, loaded.source.schema_) == (None, None)


# ── schedules ─────────────────────────────────────────────────────────────────────────────────────────────────────


def minutes_between(cron: str) -> set[int]:
    """The minutes between the runs of a cron line that runs every day."""
    minute, hour, *rest = cron.split()
    assert rest == ["*", "*", "*"]
    times = sorted(60 * h + m for h in _values(hour, 24) for m in _values(minute, 60))
    return {later - earlier for earlier, later in zip(times, [*times[1:], times[0] + 24 * 60], strict=True)}


def _values(field: str, end: int) -> list[int]:
    if field.startswith("*"):
        return [*range(0, end, int(field.removeprefix("*").removeprefix("/") or 1))]
    return [int(value) for value in field.split(",")]


def test_every_schedule_is_that_of_the_settings() -> None:
    (workflow,) = (entry["cron"] for entry in REBUILD["on"]["schedule"])
    crontab = " ".join(the_block("crontab", "").split()[:5])
    kubernetes = yaml.safe_load(the_block("yaml", "apiVersion: batch/v1"))["spec"]["schedule"]
    assert [minutes_between(cron) for cron in (workflow, crontab, kubernetes)] == [{SCHEDULE}] * 3


# ── docs/scheduling.md ────────────────────────────────────────────────────────────────────────────────────────────


def test_every_schedule_runs_a_command_that_exists() -> None:
    shown = [*commands("\n".join([*blocks("crontab"), *blocks("ini")]))]
    assert [words[0] for words in shown] == ["rebuild", "rebuild"]
    assert all(parse(words).params for words in shown)


UNITS: Final = (f"{PROGRAM}.service", f"{PROGRAM}.timer", f"{PROGRAM}-failed.service")


def test_a_unit_that_fails_sends_its_log_unless_the_next_run_does_the_work(tmp_path: Path) -> None:
    service, failed = (the_block("ini", f"# /etc/systemd/system/{name}\n") for name in (UNITS[0], UNITS[2]))
    assert re.findall(r"^OnFailure=(.*)$", service, re.MULTILINE) == [UNITS[2]]
    harmless = {str(error.exit_code) for error in (BusyError, OutcomeUnknownError)}
    assert {*re.findall(r"^SuccessExitStatus=(.*)$", service, re.MULTILINE)[0].split()} == harmless
    for name, script in {"systemctl": 'echo "log: $*"; exit 3', "mail": '(echo "to: $*"; cat) > mailed'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (command,) = re.findall(r"^ExecStart=(.*)$", failed, re.MULTILINE)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(shlex.split(command.replace("%H", "this host")), cwd=tmp_path, env=environ, check=True)
    assert (tmp_path / "mailed").read_text().splitlines() == [
        f"to: -s {PROGRAM} failed on this host ops@example.com", f"log: status --lines=20 {PROGRAM}"
    ]  # fmt: skip


def test_the_systemd_timer_keeps_the_schedule() -> None:
    analyze = require("systemd-analyze", reason="the timer in docs/scheduling.md is not verified")
    unit = the_block("ini", f"# /etc/systemd/system/{PROGRAM}.timer\n")
    (calendar,) = re.findall(r"^OnCalendar=(.*)$", unit, re.MULTILINE)
    printed = subprocess.run(
        [analyze, "calendar", "--iterations=3", "--base-time=2026-01-31 12:00:00 UTC", calendar],
        env={**os.environ, "TZ": "UTC"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    times = [
        60 * int(hour) + int(minute) for hour, minute in re.findall(r": \w+ [\d-]+ (\d\d):(\d\d):00", printed.stdout)
    ]
    assert [later - earlier for earlier, later in pairwise(times)] == [SCHEDULE, SCHEDULE]


def test_the_cron_job_never_overlaps_ends_and_can_write_what_it_writes() -> None:
    spec = yaml.safe_load(the_block("yaml", "apiVersion: batch/v1"))["spec"]
    job = spec["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    assert (spec["concurrencyPolicy"], pod["restartPolicy"]) == ("Forbid", "Never")
    assert 0 < job["activeDeadlineSeconds"] <= SCHEDULE * 60
    containers = [*pod["initContainers"], *pod["containers"]]
    assert [container["command"][:2] for container in containers] == [[PROGRAM, "build"], [PROGRAM, "publish"]]
    mounted = {mount["name"] for container in containers for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    for container in containers:
        given = parse(container["command"][1:]).params
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts == {str(given["config_path"].parent), "/output", "/tmp"}  # noqa: S108 - a mount
        assert given["overrides"] == ("output=/output/site",)
