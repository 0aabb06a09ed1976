"""Collects the staged parts of a build into its catalog, all staged details, and what these were made of."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator.builder.comparison import Comparison
from generator.builder.last_details import LastDetails
from generator.builder.part_rendering import Reading
from generator.builder.part_staging import DetailCounts, StagedPart
from generator.findings import Finding
from generator.markets.columns import Columns
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.site.catalog import Catalog, Naming
from generator.source.survey import Survey
from generator.tree.fingerprints import Fingerprints, Made
from generator.tree.staging import Staged


@dataclass(frozen=True)
class Collected:
    """All parts together: also their findings about rows, and what became of the details.

    `catalog` includes blocked markets. `false_versions` are the markets (ids) that an audit found to have one.
    `comparison` and `reading` add up those of the parts.
    """

    catalog: Catalog
    staged: Staged
    fingerprints: Fingerprints
    quarantine: Quarantine
    remarks: list[Finding]
    counts: DetailCounts
    false_versions: list[str]
    comparison: Comparison
    reading: Reading


def collect(parts: Iterable[StagedPart], survey: Survey, last: LastDetails, as_of: str) -> Collected:
    """Collect parts that come in any order."""
    one, arrived = dict[str, str](), list[tuple[StagedPart, list[Market]]]()
    for part in parts:
        arrived.append((part, part.markets.markets(one)))
        part.markets = Columns()
    arrived.sort(key=lambda pair: pair[0].part.first, reverse=True)
    markets, staged, made, false_versions = list[Market](), Staged(), dict[str, Made](), list[str]()
    quarantine, remarks, counts = Quarantine(), list[Finding](), DetailCounts()
    comparison, reading = Comparison(), Reading()
    while arrived:
        part, found = arrived.pop()  # frees each part as it is merged
        markets += found
        staged.add(part.staged)
        kept = {*part.kept}
        made |= part.made | {
            market.id: last.keep(market, staged, part.touched.get(market.id, ()))
            for market in found
            if market.id in kept
        }
        false_versions += part.false_versions
        quarantine.add(part.quarantine)
        remarks += part.remarks
        counts.add(part.counts)
        comparison.add(part.comparison)
        reading.add(part.reading)
    fingerprints = Fingerprints(as_of=as_of, shape=last.shape, details=dict(sorted(made.items())))
    return Collected(
        catalog_of(survey, markets, as_of),
        staged,
        fingerprints,
        quarantine,
        remarks,
        counts,
        [*dict.fromkeys(false_versions)],
        comparison,
        reading,
    )


def catalog_of(survey: Survey, markets: Iterable[Market], as_of: str) -> Catalog:
    """The catalog of these markets: all those of the survey that keep the contract."""
    return Catalog(
        markets,
        as_of=as_of,
        hidden=survey.hidden,
        naming=Naming(survey.refused_slugs, survey.facts.spellings, survey.site_keys),
    )
