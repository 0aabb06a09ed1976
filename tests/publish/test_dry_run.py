"""A dry run lists every step of a publish, and changes nothing."""

import re
from typing import Final

import pytest

from generator.api import keys
from generator.tree.folder import Output
from tests.support.builds import files
from tests.support.publishing import FX, OPEN, Site, hour
from tests.support.rows import market_id

DRY: Final = "dry run, nothing was changed; it would have "


@pytest.mark.parametrize("options", [(), ("--verify", "--purge-retired")])
def test_a_dry_run_changes_nothing_and_lists_every_step_with_its_reason(site: Site, options: tuple[str, ...]) -> None:
    site.edit(1, question="Else?")
    site.done("rebuild", "--as-of", hour(1))
    site.edit(FX, question="Again?")
    site.edit(9, approval="rejected")
    site.done("build", "--as-of", hour(2))
    stored, output = site.stored(), files(site.folder / "output", "")
    site.server.log.clear()
    result = site.done("publish", "--dry-run", *options)
    assert site.stored() == stored
    assert files(site.folder / "output", "") == output | {".lock": (site.folder / "output/.lock").read_bytes()}
    assert {entry.operation for entry in site.server.log} <= {"GetObject", "HeadObject", "ListObjectsV2"}
    *steps, summary = result.stdout.splitlines()
    detail = keys.detail(market_id(9))
    assert steps[0] == f"delete {detail}: its market is no longer public"
    assert f"upload {keys.first_page('all/new', 20)}: changed" in steps
    assert any(re.fullmatch(r"upload v1/\S+/all/new/p\w+/ \(\d+ objects?\): new", step) for step in steps)
    assert any(re.fullmatch(r"delete v1/\S+/all/new/p\w+/ \(\d+ objects?\): its market is .*", step) for step in steps)
    assert all(re.fullmatch(r"(upload|delete) v1/\S+( \(\d+ objects?\))?: [a-z].*", step) for step in steps)
    assert summary.startswith("dry run, nothing was changed; it would have published 10 markets as of ")
    done = site.done("publish", *options)
    assert re.sub(r"\d+ requests", "", summary.partition("would have ")[2]) == re.sub(
        r"\d+ requests", "", done.stdout.strip()
    )
    site.check()


def test_a_dry_run_lists_what_a_first_publish_would_do(empty: Site) -> None:
    *steps, summary = empty.done("publish", "--dry-run").stdout.splitlines()
    assert empty.stored() == {}
    assert len(empty.server.log) == 2
    assert {step.rpartition(": ")[2] for step in steps} == {"new"}
    assert f"{len(empty.built())} objects uploaded" in summary


def test_a_dry_run_of_a_rebuild_leaves_the_folder_alone(site: Site) -> None:
    site.edit(10, question="Else?")
    stored, output = site.stored(), files(site.folder / "output")
    result = site.done("rebuild", "--dry-run", "--as-of", hour(1))
    assert site.stored() == stored
    assert files(site.folder / "output") == output
    assert f"upload {keys.detail(market_id(10))}: changed" in result.stdout


def test_a_dry_run_that_takes_longer_than_a_lease_succeeds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generator.publish.lease._RENEW", 0.3 / 20)  # of a second
    monkeypatch.setattr("generator.publish.lease._STOP", 0.75 / 20)
    for number in OPEN:
        site.edit(number, question=f"Else {number}?")
    site.done("build", "--as-of", hour(1))
    result = site.done("publish", "--dry-run", publish__lease="20 s")
    assert "dry run, nothing was changed" in result.stdout


def test_a_dry_run_of_a_rebuild_omits_markets_blocked_on_another_machine(site: Site) -> None:
    site.done("takedown", market_id(FX), output="elsewhere")
    before = site.stored()
    result = site.done("rebuild", "--dry-run", "--as-of", hour(1))
    assert keys.detail(market_id(FX)) not in result.stdout
    assert "published 10 markets" in result.stdout
    assert site.stored() == before
    assert result.stderr == ""


def test_a_dry_run_of_a_publish_warns_of_markets_blocked_on_another_machine(site: Site) -> None:
    site.done("takedown", market_id(FX), output="elsewhere")
    before = site.stored()
    result = site.done("publish", "--dry-run")
    assert "the build holds markets that were taken down since" in result.stderr
    assert site.stored() == before
    assert "taken down" not in site.done("publish").stderr


def test_a_dry_run_says_what_names_each_row_as_its_own_report_is_gone(site: Site) -> None:
    for number in (1, 2):
        site.edit(number, question="")
    said = site.done("rebuild", "--dry-run", "--as-of", hour(1)).stderr.splitlines()
    assert [line.partition(" (such as ")[0] for line in said] == [
        "WARNING: markets: 2 remarks: question is empty",
        "`public-markets check --all` names each",
    ]


def test_a_dry_run_reads_no_file_that_nobody_changed_and_counts_as_publish_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.edit(1, question="Else?")
    site.done("build", "--as-of", hour(1))
    files: list[str] = []
    read = Output.read

    def noted(self: Output, name: str) -> bytes | None:
        files.append(name)
        return read(self, name)

    monkeypatch.setattr(Output, "read", noted)
    *_, said = site.done("publish", "--dry-run").stdout.splitlines()
    assert not [name for name in files if name.startswith("v1/")]
    *_, done = site.done("publish").stdout.splitlines()
    assert [name for name in files if name.startswith("v1/")]
    # All but the number of requests.
    assert said.removeprefix(DRY).rpartition(",")[0] == done.rpartition(",")[0]
