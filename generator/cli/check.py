"""`check`: everything that is wrong, in the order in which a person would mend it; and whether cron has stalled."""

from collections.abc import Iterator

import click

from generator.builder.preflight import BuildCheck
from generator.cli.command import Job, now, shown
from generator.config.settings import Config
from generator.cost import estimate
from generator.errors import CheckError
from generator.findings import Finding, Weight, tried
from generator.publish import preflight


@click.command(cls=Job, name="check")
@click.option("--published", is_flag=True, help="Only tell whether what is published is fresh: for a monitor.")
def check_command(settings: Config, *, published: bool) -> None:
    """Tell whether a build and a publish can work, and everything that keeps them from working."""
    if published:
        click.echo(preflight.require_fresh(settings))
        return
    with shown("checking") as bar:
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
