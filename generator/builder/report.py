"""What a build did, for people and monitors: `output/report.json`, and the summary line. Never published."""

import json
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from generator import __version__
from generator.cost.estimate import Cost, Site
from generator.markets.quarantine import Quarantine
from generator.metrics import Samples, sample
from generator.source.relations import RELATIONS
from generator.tree import layouts
from generator.tree.manifest import Current, Lists
from generator.tree.pages import LAYOUT

#: So many markets that are gone are remembered by their ids.
REMEMBERED: Final = 1_000


@dataclass
class Report:
    """Collects what was built and what the run did for it. Counts are of files and bytes under `v1/`."""

    as_of: str = ""
    source: str = ""
    layout: str = LAYOUT
    built: int = 0
    hidden: int = 0
    taken_down: list[str] = field(default_factory=list)
    lists: Lists = field(default_factory=dict)
    site: Site = field(default_factory=Site)
    cost: Cost | None = None
    retained: int = 0
    quarantine: Quarantine = field(default_factory=Quarantine)
    written: int = 0
    written_bytes: int = 0
    unchanged: int = 0
    deleted: int = 0
    remarks: list[str] = field(default_factory=list)
    since: str = ""
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    withdrawn_earlier: list[dict[str, str]] = field(default_factory=list)
    new_lists: list[str] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        start = time.perf_counter()
        yield
        self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - start

    def content(self) -> dict[str, Any]:
        """The report as JSON values. What differs between two runs over the same data is all under `run`."""
        return {
            "asOf": self.as_of,
            "generator": __version__,
            "source": self.source,
            "markets": {
                "published": self.built,
                "hidden": self.hidden,
                "quarantined": self.quarantine.total("markets"),
            },
            "takenDown": self.taken_down,
            "lists": {name: self._list(current) for name, current in self.lists.items()},
            "retainedGenerations": self.retained,
            "quarantined": [
                {"relation": row.relation, "key": row.key, "title": row.title, "reason": row.reason, "rows": count}
                for row, count in self.quarantine
            ],
            "quarantinedUnnamed": self.quarantine.unnamed(),
            "remarks": self.remarks,
            "cost": self.cost and self.cost.model_dump(mode="json", by_alias=True),
            "run": {
                "written": self.written,
                "writtenBytes": self.written_bytes,
                "unchanged": self.unchanged,
                "deleted": self.deleted,
                "newLists": self.new_lists,
                "since": self.since,
                "added": self.added,
                "changed": self.changed,
                "withdrawn": self.withdrawn,
                "withdrawnEarlier": self.withdrawn_earlier,
                "seconds": {name: round(seconds, 3) for name, seconds in self.stages.items()},
            },
        }

    def _list(self, current: Current) -> dict[str, Any]:
        return {
            "count": current.count,
            "generation": current.generation,
            "objects": layouts.object_count(current) + layouts.first_page_count(current),
            "generationBytes": current.bytes,
        }

    def compare(self, since: str, before: AbstractSet[str], now: AbstractSet[str], rewritten: AbstractSet[str]) -> None:
        """Note what became of the markets (ids) since the build of that as-of; `rewritten` got another detail."""
        self.since = since
        self.added, self.changed = sorted(now - before), sorted(rewritten & before)
        self.withdrawn = sorted(before - now)

    def remember(self, previous: bytes | None, now: AbstractSet[str]) -> None:
        """Take over from the previous report which markets were withdrawn when, unless they are public `now`."""
        known = now | {*self.withdrawn}
        earlier = [one for one in _withdrawals(_parsed(previous)) if one["id"] not in known]
        self.withdrawn_earlier = earlier[:REMEMBERED]

    def encoded(self) -> bytes:
        """The file's bytes."""
        return json.dumps(self.content(), indent=1).encode() + b"\n"

    def says_more_than(self, previous: bytes | None) -> bool:
        """Whether the file that is there is out of date. A run that found everything in place leaves it alone."""
        if self.written or self.deleted:
            return True
        return _comparable(_parsed(previous)) != _comparable(self.content())

    def counts(self, stage: str) -> dict[str, float]:
        """What a stage counted."""
        if stage == "read":
            return {"markets": self.built, "hidden": self.hidden}
        if stage == "render":
            return {"lists": len(self.lists), "new_lists": len(self.new_lists), "quarantined": self.quarantine.total()}
        return {"written": self.written, "written_bytes": self.written_bytes, "deleted": self.deleted}

    def samples(self) -> Samples:
        """What Prometheus is to know of the build."""
        made = {
            sample("built_as_of_timestamp_seconds"): datetime.fromisoformat(self.as_of).timestamp(),
            sample("markets", state="published"): self.built,
            sample("markets", state="hidden"): self.hidden,
            sample("markets", state="quarantined"): self.quarantine.total("markets"),
            sample("objects"): self.written + self.unchanged,
        }
        made |= {sample("quarantined_rows", relation=name): self.quarantine.total(name) for name in RELATIONS}
        if self.cost:
            mine = self.cost.layouts[self.layout]
            made[sample("bytes")] = mine.bytes
            made |= {sample("cost_usd_per_month", place=place): usd for place, usd in mine.usd_per_month.items()}
        return made

    def summary(self) -> str:
        """The line that ends a build; its words are a contract."""
        return (
            f"built {self.built} markets as of {self.as_of}: {self.written} files written "
            f"({self.written_bytes} bytes), {self.unchanged} unchanged, {self.deleted} deleted, "
            f"{self.quarantine.total()} rows quarantined, {sum(self.stages.values()):.1f} s"
        )


def _parsed(previous: bytes | None) -> dict[str, Any]:
    """What an earlier report says; nothing if it cannot be read."""
    try:
        content = json.loads(previous or b"{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _comparable(content: dict[str, Any]) -> dict[str, Any]:
    """What must be equal in two reports of the same state; of the run only what there is, which versions differ in."""
    return {**content, "run": sorted(content.get("run", ()))}


def _withdrawals(content: dict[str, Any]) -> list[dict[str, str]]:
    """Every withdrawal that a report knows, the latest first."""
    try:
        gone = [{"id": market_id, "asOf": content["asOf"]} for market_id in content["run"]["withdrawn"]]
        return gone + [{"id": one["id"], "asOf": one["asOf"]} for one in content["run"]["withdrawnEarlier"]]
    except (KeyError, TypeError):  # an older version's report, or one that somebody edited
        return []
