"""Collects the staged parts of a build into its catalog, all staged details, and what these were made of."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from generator.builder.comparison import Comparison
from generator.builder.last_details import DetailCounts, LastDetails
from generator.builder.part_rendering import Reading
from generator.builder.part_staging import StagedPart
from generator.downloads.histories import NewHistories
from generator.findings import Finding
from generator.markets import columns
from generator.markets.columns import Columns
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.site.catalog import Catalog, Naming
from generator.source.survey import Survey
from generator.tree.fingerprints import Fingerprints, MadeOf
from generator.tree.staging import Staged


@dataclass(frozen=True)
class Collected:
    """All parts together: also their findings about rows, and what became of the details.

    `catalog` includes blocked markets. `false_versions` are the markets (ids) that an audit found to have one.
    `comparison`, `histories` and `reading` add up those of the parts, and `altered` their markets (ids). `always` are
    the markets (ids) whose rows the next build reads whatever it finds, and whether it reads their details. `digests`
    are those of the survey; `questions` is one of what questions are made of, empty without such. `shown_questions` are
    those (references) that the database shows, bad ones aside.
    """

    catalog: Catalog
    staged: Staged
    fingerprints: Fingerprints
    quarantine: Quarantine
    remarks: list[Finding]
    counts: DetailCounts
    false_versions: list[str]
    comparison: Comparison
    histories: NewHistories | None
    reading: Reading
    altered: frozenset[str]
    always: Mapping[str, bool]
    digests: tuple[str, ...]
    questions: str = ""
    shown_questions: frozenset[str] = frozenset()


def collect(parts: Iterable[StagedPart], survey: Survey, last: LastDetails, as_of: str) -> Collected:
    """Collect parts that come in any order."""
    one, arrived = dict[str, str](), list[tuple[StagedPart, list[Market]]]()
    for part in parts:
        arrived.append((part, part.rendered.markets.markets(one)))
        part.rendered.markets = Columns()
    arrived.sort(key=lambda pair: pair[0].part.first, reverse=True)
    markets, staged, false_versions = [*survey.kept.values()], Staged(), list[str]()
    made = {market.id: last.keep(market, staged) for market in markets}
    quarantine, remarks, counts = Quarantine(), list[Finding](), DetailCounts(kept=len(markets))
    comparison, reading, histories = Comparison(), Reading(), None
    altered = {*survey.doubled}
    while arrived:
        part, found = arrived.pop()  # frees each part as it is merged
        rendered = part.rendered
        markets += found
        staged.add(part.staged)
        kept = {*rendered.kept}
        made |= part.made | {market.id: last.keep(market, staged) for market in found if market.id in kept}
        altered.update(rendered.altered)
        false_versions += rendered.false_versions
        quarantine.add(rendered.quarantine)
        remarks += rendered.remarks
        counts.add(part.counts)
        comparison.add(part.comparison)
        histories = rendered.histories.beside(histories) if rendered.histories else histories
        reading.add(rendered.reading)
    read = markets[len(survey.kept) :]
    false_versions += _false_rows(survey, last, {market.id: market for market in read}, made, altered)
    made |= dict(_with_rows(survey, read, made, altered))
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
        histories,
        reading,
        frozenset(altered),
        {key: key not in made for key in survey.versions if key not in made or not made[key].row},
        survey.digests,
    )


def _with_rows(
    survey: Survey, read: Iterable[Market], made: Mapping[str, MadeOf], altered: Container[str]
) -> Iterator[tuple[str, MadeOf]]:
    """What details were made of, with what the next build may keep of the rows that this one `read`."""
    for market in read:
        if market.id in made:
            versions = survey.versions.get(market.id)
            row = versions.market if versions and market.id not in altered else None
            if row is not None or made[market.id].item:
                item = () if row is None else columns.plain(market)
                yield market.id, made[market.id]._replace(row=row or "", item=item)


def _false_rows(
    survey: Survey, last: LastDetails, read: Mapping[str, Market], made: Mapping[str, MadeOf], altered: Container[str]
) -> Iterator[str]:
    """The audited markets (ids) whose rows changed although their versions did not: also if they are bad now."""
    for market_id, before in survey.audited.items():
        now, known = read.get(market_id), last.known[market_id]
        if (
            now is None
            or market_id in altered
            or columns.plain(now) != columns.plain(before)
            or made.get(market_id, known).market != known.market
        ):
            yield market_id


def catalog_of(survey: Survey, markets: Iterable[Market], as_of: str) -> Catalog:
    """The catalog of these markets: all those of the survey that keep the contract."""
    return Catalog(
        markets,
        as_of=as_of,
        hidden=survey.hidden,
        naming=Naming(survey.refused_slugs, survey.facts.spellings, survey.site_keys),
    )
