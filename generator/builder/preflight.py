"""Lists every problem that would fail a build, in the order to fix it. Changes nothing."""

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from generator import filesystem
from generator.api.contract import API_VERSION, PRICE_MAX, PRICE_MIN
from generator.builder import disk_space, dry_run, executors, notices
from generator.builder.counts import QuestionCounts
from generator.builder.dry_run import DryRun
from generator.builder.guards import Clock
from generator.builder.preparation import Preparation
from generator.builder.remote_result import RemoteCheck, shared
from generator.cluster import engine
from generator.config import demo
from generator.config.settings import Config
from generator.cost import prices
from generator.downloads import parquet
from generator.errors import PublicMarketsError, ReadError
from generator.findings import CHECK_NAMES_EACH, Finding, clocks, error, fine, refused, warning
from generator.markets.quarantine import Quarantine
from generator.progress import Progress
from generator.site.catalog import Catalog
from generator.source.address import display_url
from generator.source.reader import Reader, open_reader
from generator.source.survey import SITE_KEY
from generator.tree import blocklist, dry_folder, layouts
from generator.tree.dry_folder import DryFolder
from generator.tree.folder import read_only
from generator.wording import are, counted

#: The number of markets from which on builds without `detail_version` take long enough to mention it.
WORTH_VERSIONS: Final = 5_000
_ELSEWHERE: Final = "choose another folder with --set output=…"


class BuildCheck:
    """Checks one configuration as of one instant. `database` sets `measured`, unless it finds errors.

    `names_all` names every bad row, not only one of each kind.
    """

    def __init__(
        self,
        config: Config,
        as_of: datetime,
        progress: Progress,
        *,
        accepts_demo: bool = False,
        names_all: bool = False,
    ) -> None:
        self._config = config
        self._accepts_demo = accepts_demo
        self._as_of = as_of
        self._progress = progress
        self._names_all = names_all
        self._quarantine = Quarantine()
        self.measured: DryRun | None = None

    def settings(self) -> Iterator[Finding]:
        """Problems of the configuration."""
        if self._config.has_parquet:
            yield from refused(parquet.require)
        if self._config.dumps.base_url and self._config.publish.purge_command is None:
            yield warning(
                "dumps.base_url: nothing purges copies of files there, so they would outlive a takedown; set "
                "publish.purge_command"
            )
        yield from executors.findings(self._config, os.environ)
        if self._config.publish.bucket() and self._config.is_local:
            yield warning(
                f"base_url: is {self._config.base_url}; set it to the public URL of the API, which the OpenAPI "
                "document names"
            )
        is_unread = not layouts.is_cut(self._config.layout) and self._config.publish.cloudfront_distribution
        if self._config.can_search and is_unread:
            yield warning(
                f"search: the CloudFront stack refuses `q` with `layout: {self._config.layout}`; if readers come "
                f"through it, set `layout: {layouts.COMPACT}`, or `search: off` to publish no index"
            )

    def database(self) -> Iterator[Finding]:
        """Whether the database can be reached and fits, then what a build would make of its rows."""
        try:
            yield from self._database()
        except ReadError as failure:
            yield from self._failures(failure)

    def _database(self) -> Iterator[Finding]:
        name = display_url(self._config)
        with open_reader(self._config, self._quarantine) as reader:
            if self._config.publish.target and not self._accepts_demo:
                yield from refused(partial(demo.refuse, self._config, is_marked=reader.is_demo()))
            found = reader.schema_problems()
            yield from map(error, found)
            if not found:
                yield fine(f"{name}: all relations and columns found")
                yield from (warning(f"{name}: {sentence}") for sentence in (*reader.excess(), *reader.row_security()))
                if (clock := reader.clock()) is not None:
                    yield from clocks(name, "database", self._as_of - clock)
                yield from _without_zone(reader.without_zone())
                yield from self._cluster(reader)
                yield from self._rows(reader)

    def _cluster(self, reader: Reader) -> Iterator[Finding]:
        """Whether the workers of the cluster, if one is set, can read the same snapshot as the build."""
        if (address := self._config.cluster) is None:
            return
        try:
            call = RemoteCheck(shared(self._config), executors.shared_instant(reader))
            with engine.connected(address) as cluster:
                found = cluster.everywhere(call)
        except PublicMarketsError as failure:
            yield error(str(failure))
            return
        failures = [failure for failure in found.values() if failure]
        yield from (error(str(failure)) for failure in failures)
        if not failures:
            yield fine(f"cluster: {counted(len(found), 'worker')} at {address} can read the database as it is now")

    def _failures(self, failure: ReadError) -> Iterator[Finding]:
        """Why a query failed; a failure that does not recur is reported as it is."""
        with open_reader(self._config, Quarantine()) as reader:
            found = reader.failures()
        yield from map(error, found or [f"{failure.failed}; no column fails by itself: look at the database's log"])

    def _rows(self, reader: Reader) -> Iterator[Finding]:
        with dry_folder.brief(self._config.output) as folder:
            try:
                trial = self._trial(folder)
            except PublicMarketsError:
                trial = self._trial(folder.emptied())  # `folder` reports what is wrong
            measured = dry_run.dry_run(trial, reader)
            yield from self._of_build(reader, measured)
        self.measured = measured

    def _of_build(self, reader: Reader, measured: DryRun) -> Iterator[Finding]:
        """What a build would make, and whether guards would refuse it."""
        catalog = measured.catalog
        yield _public(len(catalog.markets), catalog.hidden, self._quarantine.total("markets"))
        if found := QuestionCounts.of(catalog):
            yield fine(f"questions: {found.sentence()}")
        yield from _of_search(self._config, measured)
        yield from self._of_one_market(measured)
        has_versions = reader.offers("detail_version")
        yield from of_detail_versions(measured, has_versions=has_versions)
        if reader.offers("market_version"):
            yield from _of_row_versions(measured, has_both=has_versions)
        yield from notices.of_links(self._config, catalog, has_keys=reader.offers(SITE_KEY))
        counts = reader.row_counts()
        yield fine(f"rows: {', '.join(f'{count:,} {name}' for name, count in counts.items())}")
        yield from self._suspicious(counts, measured)
        yield from self._empty(counts, catalog)
        if measured.empty:
            yield fine(notices.empty_relations(measured.empty))
        yield from self._of_rows(measured.remarks)
        yield from measured.refusals(names_faults=False)

    def _of_one_market(self, measured: DryRun) -> Iterator[Finding]:
        if found := measured.of_one_market(prices.load()):
            yield fine(found[0])

    def _empty(self, counts: Mapping[str, int], catalog: Catalog) -> Iterator[Finding]:
        """Fills or points that are missing, although there was trading; and what that means for the guards."""
        has_trading = any(market.volume or market.trader_count for market in catalog.markets)
        wanted = self._config.detail.shows()
        for name in ("fills", "probabilities"):
            if has_trading and wanted[name] and not counts[name]:
                yield warning(
                    f"{name}: has no row, although markets have volume or traders; if your site records them, correct "
                    "the view, or the policy (row level security) that hides them"
                )
        if catalog.markets and not (wanted["fills"] and counts["fills"]):
            yield fine("fills: none are read, so no trade explains a jump, and guards.max_jumps counts every one")

    def _suspicious(self, counts: Mapping[str, int], measured: DryRun) -> Iterator[Finding]:
        """What is valid, but probably a mistake."""
        is_any = bool(measured.catalog.markets)
        wanted = self._config.detail.shows()
        unseen = _Unseen({name for name, is_wanted in wanted.items() if is_any and is_wanted and counts[name]})
        for body in measured.details():
            if not unseen.relations and True in unseen.priced:
                break
            unseen.look(body)
        for name in wanted:
            if name in unseen.relations and not self._quarantine.total(name):
                yield warning(
                    f"{name}: has rows, but none belongs to a public market; if some should, spell market_id exactly "
                    "like markets.id, case included"
                )
        if unseen.priced == {False}:
            yield warning(
                f"fills: no recent fill has a price from {PRICE_MIN} to {PRICE_MAX}; others are published as null; if "
                "the prices are percentages, divide them by 100 in a view"
            )

    def _of_rows(self, remarks: Sequence[Finding]) -> Iterator[Finding]:
        """Rows that a build leaves out, and odd ones that it publishes."""
        kinds = [*self._quarantine.lines(), *notices.lines(remarks)]
        yield from map(warning, kinds)
        if self._names_all:
            yield from map(warning, self._quarantine.named_lines())
            yield from remarks
        elif self._quarantine.faults().total() + len(remarks) > len(kinds):
            yield warning(
                f"rows: {self._quarantine.total():,} quarantined in all, {counted(len(remarks), 'remark', ',')}; "
                f"{CHECK_NAMES_EACH}"
            )

    def _trial(self, folder: DryFolder) -> Preparation:
        clock = Clock(self._as_of, is_set=False)
        return dry_run.trial(folder, self._config, clock, self._quarantine, self._progress)

    def folder(self) -> Iterator[Finding]:
        """Whether the output folder is writable and has room."""
        root = self._config.output
        existing = root
        try:
            existing = next(path for path in (root, *root.parents) if path.exists())
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as problem:
            yield error(f"{existing}: {filesystem.sentence(problem, _ELSEWHERE)}")
            return
        with read_only(root) as found:
            found.manifest()
            hold = blocklist.load(found).hold
        if hold and not self._config.publish.target:
            yield warning(f"{root}: {blocklist.sentence(hold, has_target=False)}")
        yield from self._closed()
        yield from self._room(existing)

    def _closed(self) -> Iterator[Finding]:
        """Whether a web server here, which runs as another user, can reach what it has to serve."""
        if self._config.is_local or self._config.publish.bucket():
            return
        served = Path(self._config.publish.target or self._config.output)
        for folder in filesystem.closed_folders(served / API_VERSION):
            yield warning(
                f"{folder}: only its owner may enter (mode {stat.S_IMODE(folder.stat().st_mode):04o}), so a web server "
                f"of another user cannot serve {served}; run `chmod o+x {folder}`, or choose another folder"
            )

    def _room(self, place: Path) -> Iterator[Finding]:
        files, size = self.measured.prepared.made.rendered.written() if self.measured else (0, 0)
        lacking = disk_space.lacking(place, files, size)
        yield (
            error(f"{lacking}; {disk_space.remedy(self._config)}")
            if lacking
            else fine(f"{self._config.output}: writable")
        )


class _Unseen:
    """What no detail has shown so far: `relations` with rows, and fills that have a price."""

    def __init__(self, relations: set[str]) -> None:
        self.relations = relations
        #: Whether fills with shares had a price. A site without shares has no prices, either.
        self.priced = set() if "fills" in relations else {True}

    def look(self, body: bytes) -> None:
        """Look at another detail."""
        found = json.loads(body)
        book, fills = found.get("orderBook", {}), found.get("recentFills", [])
        has = {"orders": any(book.values()), "fills": bool(fills), "probabilities": bool(found.get("probHistory"))}
        self.relations -= {name for name, is_shown in has.items() if is_shown}
        self.priced |= {fill["price"] is not None for fill in fills if fill["shares"]}


def _public(published: int, hidden: int, bad: int) -> Finding:
    # Views may leave hidden markets out; the number would then say nothing.
    also_hidden = f", {hidden} {are(hidden)} hidden" if hidden else ""
    if published:
        return fine(f"rows: {counted(published, 'market')} can be published{also_hidden}")
    if bad:
        cause = "all others break the contract"
    elif hidden:
        cause = "a market is public if its approval is exactly 'approved' and its is_listed is true"
    else:
        cause = "the relation markets is empty"
    return warning(f"rows: no market can be published{also_hidden}; {cause}")


def _of_search(config: Config, measured: DryRun) -> Iterator[Finding]:
    size, index = measured.site.index, measured.index
    if index is None or not measured.catalog.markets:
        return
    if index.words:
        made = f"{counted(size.objects, 'object', ',')} of {counted(size.bytes, 'byte', ',')}"
        yield fine(f"search: {counted(index.words, 'word', ',')} can be found, in {made}")
    else:
        texts = " or ".join(config.search_texts)
        yield warning(f"search: no public market has a word in its {texts}, so `q` finds nothing; set `search: off`")


def of_detail_versions(measured: DryRun, *, has_versions: bool, worth: int = WORTH_VERSIONS) -> Iterator[Finding]:
    """What there is to say of `detail_version`, which is worth mentioning from so many markets on."""
    count = len(measured.catalog.markets)
    known = measured.collected.reading.versions
    if known:
        others = ", and the others every time" if known < count else ""
        yield fine(
            f"detail_version: {known:,} of {counted(count, 'market', ',')} have one; builds read their details only "
            f"when it changes{others}"
        )
    elif count and has_versions:
        yield warning(
            "detail_version: is NULL in every market, so each build reads all details; set it, or leave the column out"
        )
    elif count >= worth:
        yield fine(
            "detail_version: markets has no such column, so each build reads the orders, fills and points of all "
            f"{counted(count, 'market', ',')} ({measured.seconds['details']:.1f} of the "
            f"{sum(measured.seconds.values()):.1f} s that reading took here); with it, only those of markets "
            "that changed"
        )


def _of_row_versions(measured: DryRun, *, has_both: bool) -> Iterator[Finding]:
    count, known = len(measured.catalog.markets), measured.row_versions
    if known:
        others = ", and those of the others every time" if known < count else ""
        yield fine(
            f"market_version: builds read the rows of {known:,} of {counted(count, 'market', ',')} only when it changes"
            f"{others}"
        )
    elif not has_both:
        yield warning(
            "market_version: has no effect, as markets has no detail_version; add that column, or leave this one out"
        )
    elif count:
        yield warning(
            "market_version: no market has both this and detail_version, so each build reads all rows; set them, or "
            "leave the column out"
        )


def _without_zone(columns: list[str]) -> Iterator[Finding]:
    if columns:
        example = columns[0].partition(".")[2]
        yield warning(
            f"{', '.join(columns)}: their type has no time zone, so they are read as UTC; state their zone in a view, "
            f"such as {example} AT TIME ZONE 'UTC' or 'Europe/Berlin'"
        )
