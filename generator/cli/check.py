"""`check`: lists every problem, in the order to fix it; or tells whether publishing has stalled."""

from collections.abc import Iterator
from typing import Any

import click

from generator import documentation
from generator.builder.preflight import BuildCheck
from generator.cli import logs
from generator.cli.command import Subcommand, env_files, now
from generator.cli.parameters import accepted, accepting
from generator.cli.progress_bar import progress_bar
from generator.config import env_file
from generator.config.settings import Config
from generator.errors import CheckError
from generator.findings import Finding, Severity, tried, warning
from generator.publish import preflight
from generator.wording import counted


@click.command(cls=Subcommand, name="check")
@click.option("--published", is_flag=True, help="Only check that the published build is fresh; for monitors.")
@click.option("--all", "names_all", is_flag=True, help="Name every bad row, not only one of each kind.")
@accepting("demo")
def check_command(settings: Config, *, published: bool, names_all: bool, **options: Any) -> None:
    """List every problem that would keep a build or a publish from working."""
    if published:
        logs.result(preflight.require_fresh(settings, now))
        return
    with progress_bar("checking") as bar:
        check = BuildCheck(settings, now(), bar, accepts_demo="demo" in accepted(options), names_all=names_all)
        findings = list(_findings(settings, check))
    for finding in findings:
        text = finding.sentence() if logs.are_json() else str(finding)
        logs.result(documentation.located(text), finding.severity)
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if errors or check.measured is None:
        which = "this error" if errors == 1 else f"these {errors} errors"
        raise CheckError(f"fix {which}, then run `check` again")
    measured = check.measured
    objects, _ = measured.site.total(settings.layout)
    target = f", `public-markets publish` them to {settings.publish.target}" if settings.publish.target else ""
    logs.result(
        f"`public-markets build` will make {counted(objects, 'object', ',')} of "
        f"{counted(len(measured.catalog.markets), 'market', ',')} in "
        f"{settings.output}{target}"
    )


def _findings(settings: Config, check: BuildCheck) -> Iterator[Finding]:
    yield from (warning(sentence) for file in env_files() if (sentence := env_file.exposure(file)))
    yield from tried(check.settings())
    yield from tried(check.database())
    if settings.publish.target:
        yield from tried(preflight.findings(settings, now))
    yield from tried(check.folder())
