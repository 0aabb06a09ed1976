"""A build that ends before anything is moved into place: what it would make, what of that is new, what changes cost."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from generator import garbage
from generator.api import keys
from generator.builder import guards
from generator.builder.collecting import Collected
from generator.builder.guards import BuildOverrides, Clock
from generator.builder.preparation import NO_QUESTIONS, Preparation
from generator.builder.prepared import Prepared
from generator.config.settings import Config
from generator.cost import estimate, sizes
from generator.cost.estimate import ChangeCost
from generator.cost.prices import PriceList
from generator.cost.sizes import Change, Site
from generator.errors import BUILD_GUARDS
from generator.findings import Finding, error, in_order, refused
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.models import replaced
from generator.progress import Progress
from generator.search.generation import MOST_OBJECTS, SearchIndex
from generator.site import families
from generator.site.catalog import Catalog
from generator.source.reader import Reader
from generator.tree import layouts, membership, shrink
from generator.tree.dry_folder import DryFolder
from generator.tree.membership import Membership
from generator.wording import counted

#: Guards refuse nothing, as the caller tells what they would say. All details are read, and so all bad rows named.
#: Of what is in place, a trial reads no more than the next build.
_OVERRIDES: Final = BuildOverrides(accepted=frozenset(BUILD_GUARDS), full=True, compares=False)
#: About how many chunks of a list change with a market that moves in it.
_CHUNKS: Final = 2


@dataclass(frozen=True)
class DryRun:
    """The result: what was `collected` and `prepared`.

    `empty` are the relations in which a first build finds no row. `has_lost_questions`: the last build had some, and
    the database no longer has their relations.
    """

    preparation: Preparation
    collected: Collected
    prepared: Prepared
    empty: list[str]
    has_lost_questions: bool = False

    @property
    def remarks(self) -> list[Finding]:
        """Remarks about what was prepared."""
        return in_order(self.preparation.remarks)

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long all processes took together to read the `survey`, `markets` and `details`."""
        read = {"survey": self.preparation.stopwatch.spans["read"], **self.collected.reading.stopwatch.spans}
        return {name: span.seconds for name, span in read.items()}

    @property
    def row_versions(self) -> int:
        """The number of markets whose rows need not be read again unless a version changes."""
        return sum(bool(made.row) for made in self.collected.fingerprints.details.values())

    @property
    def catalog(self) -> Catalog:
        """The markets that would be published."""
        return self.prepared.catalog

    @property
    def site(self) -> Site:
        """The size of everything."""
        return self.prepared.site

    @property
    def index(self) -> SearchIndex | None:
        """The search index, if there is one."""
        return self.prepared.made.index

    @property
    def reads_per_search(self) -> int:
        """The most objects that a search reads; 0 without an index."""
        return MOST_OBJECTS if self.index else 0

    def refusals(self, *, names_faults: bool = True) -> Iterator[Finding]:
        """Why a build would be refused; `names_faults` adds those of bad markets."""
        build, limits = self.preparation, self.preparation.config.guards
        yield from refused(
            partial(
                guards.refuse_invalid, self.catalog, build.quarantine, build.blocked, limits.max_invalid,
                names_faults=names_faults,
            )
        )  # fmt: skip
        yield from refused(
            partial(shrink.refuse, build.before() - build.blocked, self.catalog.ids(), limits.max_shrink)
        )
        if self.has_lost_questions:
            yield error(NO_QUESTIONS)
        else:
            yield from refused(partial(build.refuse_fewer_questions, self.prepared.made))
        yield from refused(partial(build.refuse_growth, self.catalog))
        yield from map(error, self.prepared.guards.refusals())

    def details(self) -> Iterator[bytes]:
        """The detail of every market."""
        return (self.preparation.folder.newest_body(keys.detail(market.id)) for market in self.prepared.catalog.markets)

    def cost_of(self, markets: Collection[Market], known: PriceList) -> ChangeCost:
        """What a build costs that changes these markets, by trades or as time passes, and nothing else.

        Where lists are pages, no such build has more objects; chunks are as many as on average.
        """
        config, rendered = self.preparation.config, self.prepared.made.rendered
        held = Counter(name for market in markets for name in membership.lists_of(rendered.memberships[market.id]))
        lists = held.keys() & rendered.manifest.lists().keys()  # without search index and downloads, and those left out
        details = [*(keys.details(market.id, market.slug) for market in markets), *self._questions_with(markets)]
        chunks = {name: min(_CHUNKS * held[name], len(rendered.families[name].current.chunks)) for name in lists}
        change = Change(
            new_generations=frozenset(lists),
            new_first_pages=frozenset(lists),
            objects=sum(map(len, details)) + len(rendered.staged.objects.keys() & families.changing()),
            minutes=0,
            chunks=chunks if layouts.is_cut(config.layout) else {},
            index=self.index.of_places() if self.index and lists else sizes.NOTHING,
            downloads=self.site.next_downloads(has_step=config.has_changes) if lists else sizes.NOTHING,
        )
        return estimate.of_change(config.layout, self.site, change, known)

    def _questions_with(self, markets: Collection[Market]) -> Iterator[Sequence[str]]:
        """The keys of each question that shows one of these markets."""
        ids = {market.id for market in markets}
        for question in self.catalog.questions or ():
            if not ids.isdisjoint(member.market_id for member in question.members):
                yield keys.questions(question.id, question.slug)

    def of_one_market(self, known: PriceList) -> tuple[str, ChangeCost] | None:
        """What one changed market costs, in a sentence and in figures; None if no market is traded."""
        if (market := self._dearest()) is None:
            return None
        layout, cost = self.preparation.config.layout, self.cost_of([market], known)
        are_chunks = "two chunks, an index and a head of each of its lists are"
        new = are_chunks if layouts.is_cut(layout) else "every page of its lists is"
        usd = ", ".join(f"{price:,.4f} USD at {place}" for place, price in cost.usd.items())
        sentence = f"one changed market costs {in_words(cost, layout)}, whose PUT requests cost {usd}: {new} new"
        return f"layout {layout}: {sentence}", cost

    def _dearest(self) -> Market | None:
        """Of the markets that are traded (open, or with recent fills), one whose lists are the most to write."""
        layout, memberships = self.preparation.config.layout, self.prepared.made.rendered.memberships
        weights = self.site.weights(layout)

        def objects(of_market: tuple[Membership, ...]) -> int:
            lists = membership.lists_of(of_market) & weights.keys()
            return len(lists) if layouts.is_cut(layout) else sum(weights[name].objects for name in lists)

        traded = [market for market in self.catalog.markets if market.status == "open" or market.fills24h]
        found = {memberships[market.id]: market for market in traded}
        return found[max(found, key=objects)] if found else None


def in_words(cost: ChangeCost, layout: str) -> str:
    """Objects and bytes, such as `at most 2,345 objects of some 23,456,789 bytes`."""
    most = "up to about" if layouts.is_cut(layout) else "at most"
    return f"{most} {counted(cost.objects, 'object', ',')} of some {counted(cost.bytes, 'byte', ',')}"


def trial(folder: DryFolder, config: Config, clock: Clock, quarantine: Quarantine, progress: Progress) -> Preparation:
    """Prepare to make what a build would make now, on this machine.

    Raises OutputError if what the last build left in the folder cannot be read.
    """
    here = replaced(config, cluster=None)
    return replace(Preparation.of(folder, here, clock, _OVERRIDES, progress), quarantine=quarantine)


def dry_run(preparation: Preparation, reader: Reader) -> DryRun:
    """Make it in the folder of a trial; the reader reports to the same quarantine."""
    with garbage.uncollected():
        has_lost = preparation.has_lost_questions(reader)
        preparation = preparation.knowing(reader)
        collected = preparation.collect(reader)
        empty = preparation.empty_relations(reader, collected)
        is_demo = preparation.config.source.is_default or reader.is_demo()
        prepared = preparation.finish(collected, is_demo=is_demo)
    return DryRun(preparation, collected, prepared, empty, has_lost_questions=has_lost)
