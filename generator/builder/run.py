"""One build: it ends where it finds nothing to do, and else goes through all stages."""

from dataclasses import replace

from generator import garbage
from generator.builder import unchanged
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.last_details import Sample
from generator.builder.report import Report, Tell
from generator.config.settings import Config
from generator.progress import Progress
from generator.tree import blocklist
from generator.tree.blocklist import HeldError
from generator.tree.folder import Output, locked


def _untold(_: Report) -> None:
    """Nobody is told."""


def build(
    config: Config, clock: Clock, *, overrides: BuildOverrides, progress: Progress, tell: Tell = _untold
) -> Report:
    """Bring `output/` to the state of the database; a refused build leaves it unchanged."""
    with locked(config.output) as folder:
        return build_into(folder, config, clock, overrides=overrides, progress=progress, tell=tell)


def build_into(  # noqa: PLR0913 - all that a build is given
    folder: Output,
    config: Config,
    clock: Clock,
    *,
    overrides: BuildOverrides,
    progress: Progress,
    tell: Tell = _untold,
) -> Report:
    """Build in a folder that is locked already; raise HeldError if it is on hold, and no target's hold counts.

    Once everything is in place, it can `tell` of the report, which is saved then: bad rows and remarks that
    a killed build did not tell are news in the next one, but its line about withdrawn markets is lost.
    """
    hold = blocklist.settle(folder).hold
    if hold and not config.publish.target:
        raise HeldError(str(config.output), hold, has_target=False)
    with garbage.uncollected():
        # One sample: what the first look finds, the build with work must find, too.
        sample = Sample.chosen(config.source.audit)
        if report := unchanged.ended(folder, config, clock, overrides, sample):
            tell(report)  # no news, which could be lost
            return report
        # Of a build without work, imports are half the time.
        from generator.builder import ordinary  # noqa: PLC0415
        from generator.builder.preparation import Preparation  # noqa: PLC0415

        preparation = Preparation.of(folder, config, clock, overrides, progress)
        return ordinary.build(replace(preparation, sample=sample), tell)
