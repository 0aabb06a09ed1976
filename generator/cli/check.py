"""`check`: lists every problem, in the order to fix it; or tells whether publishing has stalled."""

from collections.abc import Iterator

import click

from generator.builder.preflight import BuildCheck
from generator.cli.command import Command, now
from generator.cli.progress_bar import progress_bar
from generator.config.settings import Config
from generator.cost import estimate
from generator.errors import CheckError
from generator.findings import Finding, Weight, tried
from generator.publish import preflight


@click.command(cls=Command, name="check")
@click.option("--published", is_flag=True, help="Only tell whether what is published is fresh: for a monitor.")
def check_command(settings: Config, *, published: bool) -> None:
    """Tell whether a build and a publish can work, and everything that keeps them from working."""
    if published:
        click.echo(preflight.require_fresh(settings))
        return
    with progress_bar("checking") as bar:
        check = BuildCheck(settings, now(), bar)
        findings = list(_findings(settings, check))
    for finding in findings:
        click.echo(str(finding))
    errors = sum(finding.weight is Weight.ERROR for finding in findings)
    if errors or check.measured is None:
        raise CheckError(f"{errors} of these must be mended before a build or a publish can work; then check again")
    measured = check.measured
    objects = estimate.objects(measured.site, settings.layout)
    target = f", `public-markets publish` them to {settings.publish.target}" if settings.publish.target else ""
    click.echo(
        f"`public-markets build` will make {objects:,} objects of {len(measured.catalog.markets):,} markets in "
        f"{settings.output}{target}"
    )


def _findings(settings: Config, check: BuildCheck) -> Iterator[Finding]:
    yield from tried(check.settings())
    yield from tried(check.database())
    if settings.publish.target:
        yield from tried(preflight.findings(settings, now))
    yield from tried(check.folder())
