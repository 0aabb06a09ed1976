"""Collects the staged parts of a build into its catalog, all staged details, and what these were made of."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator.builder.last_details import LastDetails
from generator.builder.notices import Remark
from generator.builder.part_staging import DetailCounts, StagedPart
from generator.errors import FalseVersionsError
from generator.markets.catalog import Catalog, Market
from generator.markets.columns import Columns
from generator.markets.quarantine import Quarantine
from generator.source.survey import Survey
from generator.tree.fingerprints import Fingerprints, Made
from generator.tree.staging import Staged


@dataclass(frozen=True)
class Collected:
    """All parts together. `catalog` includes blocked markets."""

    catalog: Catalog
    staged: Staged
    fingerprints: Fingerprints


@dataclass(frozen=True)
class Collector:
    """Adds findings about rows to `quarantine` and `remarks`, and counts what became of the details in `counts`."""

    survey: Survey
    last: LastDetails
    quarantine: Quarantine
    remarks: list[Remark]
    counts: DetailCounts

    def collect(self, parts: Iterable[StagedPart], as_of: str) -> Collected:
        """Collect parts that come in any order. Raises FalseVersionsError if an audit found false versions."""
        one, arrived = dict[str, str](), list[tuple[StagedPart, list[Market]]]()
        for part in parts:
            arrived.append((part, part.markets.markets(one)))
            part.markets = Columns()
        arrived.sort(key=lambda pair: pair[0].part.first, reverse=True)
        markets, staged, made, false_versions = list[Market](), Staged(), dict[str, Made](), list[str]()
        while arrived:
            part, found = arrived.pop()  # frees each part as it is merged
            markets += found
            staged.add(part.staged)
            made |= part.made | self._kept(part, found, staged)
            false_versions += part.false_versions
            self.quarantine.add(part.quarantine)
            self.remarks.extend(part.remarks)
            self.counts.add(part.counts)
        if false_versions:
            raise FalseVersionsError([*dict.fromkeys(false_versions)])
        return Collected(catalog_of(self.survey, markets, as_of), staged, self._fingerprints(made, as_of))

    def _kept(self, part: StagedPart, markets: Iterable[Market], staged: Staged) -> dict[str, Made]:
        kept = {*part.kept}
        return {market.id: self.last.keep(market, staged) for market in markets if market.id in kept}

    def _fingerprints(self, made: dict[str, Made], as_of: str) -> Fingerprints:
        return Fingerprints(as_of=as_of, shape=self.last.shape, details=dict(sorted(made.items())))


def catalog_of(survey: Survey, markets: Iterable[Market], as_of: str) -> Catalog:
    """The catalog of these markets: all those of the survey that keep the contract."""
    return Catalog(
        markets, as_of=as_of, hidden=survey.hidden, refused_slugs=survey.refused_slugs,
        spellings=survey.facts.spellings,
    )  # fmt: skip
