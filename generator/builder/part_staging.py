"""Makes the task of each part from what the folder has, and stages what was rendered: the details that are new."""

import secrets
import shutil
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO

from generator.api import forms, keys
from generator.builder import last_details, part_rendering
from generator.builder.comparison import NOT_READ, Comparison, Interval, RowsRead
from generator.builder.last_details import DetailCounts, LastDetails, Sample
from generator.builder.part_rendering import NewMarketObject, OpenReader, ReadDetail, RenderedPart, Task
from generator.config.settings import Config
from generator.downloads.histories import LastHistories
from generator.markets import detail
from generator.source.earlier import lower
from generator.source.survey import Part, Survey
from generator.tree import manifest
from generator.tree.fingerprints import MadeOf
from generator.tree.folder import Output
from generator.tree.generation import Artifact
from generator.tree.staging import Staged


@dataclass
class StagedPart:
    """What was `rendered` of a part, without its details, and these as they were staged.

    `made` says what each detail is made of, if that is known. `comparison` is that of the new details with those in
    place.
    """

    part: Part
    rendered: RenderedPart
    counts: DetailCounts
    staged: Staged = field(default_factory=Staged)
    made: dict[str, MadeOf] = field(default_factory=dict)
    comparison: Comparison = field(default_factory=Comparison)


@dataclass(frozen=True)
class PartWork:
    """Makes the tasks of one build and stages their results.

    Times after `latest` count as in the future. `histories` are those in place, if new ones are to be made. `since` is
    a wire timestamp shortly before the last build, if there was one.
    """

    config: Config
    folder: Output
    survey: Survey
    last: LastDetails
    sample: Sample
    blocked: frozenset[str]
    as_of: datetime
    latest: str
    histories: LastHistories | None = None
    since: str = ""

    def task(self, part: Part, *, is_remote: bool = False) -> Task:
        """What to render of a part. A remote task says what is in place, so that those bytes are not sent back."""
        facts = self.survey.facts_of(part)
        wanted = self.slugs(part)
        return Task(
            config=self.config,
            within=part.within,
            facts=facts,
            as_of=self.as_of,
            latest=self.latest,
            sample=self.sample,
            blocked=self.blocked.intersection(wanted),
            known=self.last.of(wanted),
            in_place=self.last.in_place(wanted) if is_remote else {},
            histories=self.histories and self.histories.of(wanted),
            since=self.since,
        )

    def slugs(self, part: Part) -> dict[str, str | None]:
        """The slug of each market of a part, by id; None where it has none."""
        known = {lower(key): slug for key, slug in self.survey.facts_of(part).slugs.items()}
        return {market_id: known.get(market_id) for market_id in self.survey.ids(part)}

    def stage(self, part: Part, task: Task, rendered: RenderedPart, open_reader: OpenReader) -> StagedPart:
        """Stage what was rendered; render details again if the bytes that they rely on turn out to be damaged."""
        before = {update.market.id: self.last.body(update.market.id) for update in rendered.updates}
        damaged = {market_id for market_id, body in before.items() if body is None}
        if damaged:
            if rendered.spool:
                rendered.spool.close()
            again = task.without(damaged)
            return self.stage(part, again, part_rendering.render(again, open_reader), open_reader)
        interval = Interval(self.since, forms.instant(self.as_of), self.config.detail.recent_fills)
        false = [*rendered.false_versions]
        rest = replace(rendered, details=[], updates=[], histories=None, spool=None, false_versions=false)
        made = StagedPart(part, rest, DetailCounts(kept=len(rendered.kept)))
        work = _Staging(self.folder, self.last, made, interval)
        for found in rendered.details:
            work.add(found)
        for update in rendered.updates:
            work.update(update, before[update.market.id] or b"")
        if rendered.histories and rendered.spool:
            rest.histories = rendered.histories.stored_at(self._stored(rendered.spool))
        return made

    def _stored(self, spool: IO[bytes]) -> str:
        """Where the lines of histories lie until all parts are there."""
        path = self.folder.scratch(f"histories-{secrets.token_hex(8)}")
        with path.open("xb") as file, spool:
            shutil.copyfileobj(spool, file)
        return str(path)


@dataclass(frozen=True)
class _Staging:
    """Adds details to a staged part."""

    folder: Output
    last: LastDetails
    made: StagedPart
    interval: Interval

    def add(self, found: ReadDetail) -> None:
        """Stage a detail that was read; compare an audited one with its file."""
        self.made.counts.read += 1
        if found.is_audited:
            self._compare(found)
        if found.body is None:
            self.last.hold(found.market_id, found.slug, found.size, self.made.staged)
        else:
            self._put(found.market_id, found.slug, found.body, found.digest, RowsRead(found.trades, found.is_thinned))
        if found.made:
            self.made.made[found.market_id] = found.made

    def _compare(self, found: ReadDetail) -> None:
        before = self.last.body(found.market_id) if found.body is not None else None
        if found.body is not None and before is None:
            return
        self.made.counts.audited += 1
        # A market with findings would not have been kept.
        is_new = before is not None and detail.rest(found.body or b"") != detail.rest(before)
        if found.has_findings or is_new:
            self.made.rendered.false_versions.append(found.market_id)

    def update(self, found: NewMarketObject, before: bytes) -> None:
        """Stage the detail `before` with a new market object."""
        market, body = found.market, detail.with_market(before, found.shown)
        self._put(market.id, market.slug, body, manifest.digest(keys.detail(market.id), body))
        if made := last_details.made_of(market, len(body)):
            self.made.made[market.id] = made
        self.made.counts.updated += 1

    def _put(self, market_id: str, slug: str | None, body: bytes, digest: str, rows: RowsRead = NOT_READ) -> None:
        """Stage the objects of a detail; compare it, if it is new, with the one in place."""
        for key in keys.details(market_id, slug):
            is_new = self.made.staged.put(self.folder, Artifact(key, body), digest)
            if is_new and keys.market_id(key) is not None:
                before = self.folder.read(key)
                self.made.comparison.compare(before, body, self.interval, rows)
