"""What a build found that the last one had not, and what went since: only that is told. Pure.

A report keeps digests of what it tells, so that the next build can compare.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, TypeAlias

from generator.builder import notices
from generator.builder.notices import EVENTS, MOVING, TOGETHER, Topic
from generator.findings import LINES, Finding, FindingCounts
from generator.markets import quarantine
from generator.markets.quarantine import Quarantine, QuarantinedRow
from generator.markets.slugs import AS_HAS
from generator.tree.told import AND, Told, ToldKind, digest, is_new, key_half
from generator.wording import counted

#: Subject of a finding, and what is wrong with it, in words of this program alone.
_Kind: TypeAlias = tuple[str, str]
_NONE: Final = Finding()
#: Columns of markets that every trade may change: a bad value is the same fault as the one before.
_TRADED: Final = frozenset({"prob", "volume", "pool_yes", "pool_no", "last_activity_at", "trader_count"})


@dataclass(frozen=True)
class _OfKind:
    """The findings of one kind, with the rows of each, beside those that the build before told, if that `is_known`.

    `before` says since when each was there, by the digest of its key. `exact` is an example and the number of rows
    where not all are known by name: then numbers are compared.
    """

    is_known: bool
    last: ToldKind
    before: Mapping[str, str | None]
    found: Mapping[Finding, int]
    as_of: str
    exact: tuple[Finding, int] | None

    @cached_property
    def digests(self) -> Mapping[Finding, str]:
        return {finding: self._digest_of(finding) for finding in self.found}

    def _digest_of(self, finding: Finding) -> str:
        """What tells it apart; of those told together the most there were, which may be fewer now and many again."""
        found = _digest_of(finding)
        return max([found, *self.last.since]) if finding.topic in TOGETHER else found

    @cached_property
    def counts(self) -> Counter[str]:
        counts = Counter[str]()
        for finding, rows in self.found.items():
            counts[self.digests[finding]] += rows
        return counts

    @property
    def total(self) -> int:
        return self.exact[1] if self.exact else self.counts.total()

    def fresh(self) -> dict[Finding, int]:
        """The findings that the build before had not, or on fewer rows, with the number of rows that are new."""
        if self.exact and self.total <= self.last.count:
            return {}
        before = self.last.counts()
        more = {finding: rows - before[self.digests[finding]] for finding, rows in self.found.items()}
        return {finding: rows for finding, rows in more.items() if rows > 0}

    def new(self) -> Iterator[tuple[Finding, int]]:
        """The same for people, with an example of those that are only counted."""
        fresh = self.fresh()
        if not self.exact:
            yield from fresh.items()
        elif (more := self.total - self.last.count) > 0:
            yield min(fresh, key=lambda finding: (finding.key, finding.value or ""), default=self.exact[0]), more

    @cached_property
    def by_key(self) -> Counter[str]:
        """How many rows there are, by the digest of their key; under no key where not all are known by name."""
        return Counter({"": self.exact[1]}) if self.exact else _by_key(self.counts)

    def gone(self) -> Counter[str]:
        """How many are there no more, likewise. One whose value is another now has not gone."""
        last = Counter({"": self.last.count}) if self.exact else _by_key(self.last.counts())
        return last - self.by_key

    def since(self) -> dict[Finding, str | None]:
        """Since when each is there, whatever its value was; None if nobody knows what was there before.

        One that only a number stood for is there as long as the first with a name.
        """
        if self.is_event:
            return dict.fromkeys(self.found, self.as_of)
        first = self.as_of if self.is_known else None
        if self.exact and self.total <= self.last.count:
            first = min(self.last.since.values(), key=_rank, default=first)
        # The clock may have been ahead.
        sinces = {finding: self.before.get(key_half(found), first) for finding, found in self.digests.items()}
        return {finding: since and min(since, self.as_of) for finding, since in sinces.items()}

    def told(self) -> ToldKind:
        """What the next build is to know of it."""
        return ToldKind(
            subject=self.last.subject,
            what=self.last.what,
            count=self.total,
            since={self.digests[finding]: since for finding, since in self.since().items()},
            rows={digest: rows for digest, rows in self.counts.items() if rows > 1},
        )

    @property
    def is_event(self) -> bool:
        return any(finding.topic in EVENTS for finding in self.found)


def _rank(since: str | None) -> str:
    return since or ""


def _sinces(kinds: Iterable[ToldKind]) -> dict[str, str | None]:
    """The earliest by the digest of a key."""
    sinces = dict[str, str | None]()
    for found, since in chain.from_iterable(kind.since.items() for kind in kinds):
        sinces[key_half(found)] = min(sinces.get(key_half(found), since), since, key=_rank)
    return sinces


def _by_key(counts: Mapping[str, int]) -> Counter[str]:
    of_keys = Counter[str]()
    for found, rows in counts.items():
        of_keys[key_half(found)] += rows
    return of_keys


def _digest_of(finding: Finding) -> str:
    """What tells findings of one kind apart. Not a value that moves by itself: it would be told every hour."""
    if finding.topic in TOGETHER:
        return f"{AND}{notices.magnitude(finding)}"
    # What is wrong with an id is that id itself, or how many have it.
    is_traded = finding.subject == "markets" and finding.column in _TRADED
    if finding.value is None or finding.topic in MOVING or finding.column == "id" or is_traded:
        return digest(finding.key)
    is_shared = finding.topic in {Topic.UNUSABLE_KEY, Topic.UNUSABLE_SLUG}
    value = finding.value.partition(AS_HAS)[0] if is_shared else finding.value
    return AND.join(map(digest, (finding.key, value)))


class _Compared:
    """Findings, by kind, beside those of the build before: `last`, if known; by `counts` if not all have a name.

    Faults `of_rows` are there as long as their row is out, whichever fault it was out for.
    """

    def __init__(
        self,
        last: Iterable[ToldKind] | None,
        findings: Iterable[tuple[Finding, int]],
        as_of: str,
        counts: FindingCounts | None = None,
        *,
        of_rows: bool = False,
    ) -> None:
        self._of_rows = of_rows
        before = {(kind.subject, kind.what): kind for kind in last or ()}
        found: dict[_Kind, Counter[Finding]] = {}
        for finding, rows in findings:
            found.setdefault((finding.subject, finding.what()), Counter())[finding] += rows
        of_group: dict[_Kind, list[ToldKind]] = {}
        for kind, known in before.items():
            of_group.setdefault(self._group(kind), []).append(known)
        sinces = {group: _sinces(kinds) for group, kinds in of_group.items()}
        exact = {(example.subject, example.what()): (example, rows) for example, rows in counts or ()}
        self._kinds = {
            kind: _OfKind(
                last is not None,
                before.get(kind, ToldKind(subject=kind[0], what=kind[1], count=0)),
                sinces.get(self._group(kind), {}), found.get(kind, {}), as_of,
                None if counts is None else exact.get(kind, (_NONE, 0)),
            )
            for kind in dict.fromkeys(chain(found, exact, before))
        }  # fmt: skip
        self.since = {finding: since for kind in self._kinds.values() for finding, since in kind.since().items()}
        self.fresh = {finding: rows for kind in self._kinds.values() for finding, rows in kind.fresh().items()}
        self.new = FindingCounts()
        for finding, rows in chain.from_iterable(kind.new() for kind in self._kinds.values()):
            self.new.add(finding, rows)

    def _group(self, kind: _Kind) -> _Kind:
        """Stands for the kinds that say since when one of this kind is there."""
        return (kind[0], "") if self._of_rows else kind

    def told(self) -> tuple[ToldKind, ...]:
        """What the next build is to know: nothing of what happened in this one alone."""
        return tuple(kind.told() for kind in self._kinds.values() if kind.total and not kind.is_event)

    def lines(self, begin: Callable[[Finding, int], str], rest: str) -> Iterator[str]:
        """A line for every kind that has new ones, each of which they `begin`; other kinds are counted as `rest`."""

        def heading(example: Finding, new: int) -> str:
            total = self._kinds[example.subject, example.what()].total
            return begin(example, new) if total == new else f"new: {begin(example, new)}, {total:,} in all"

        return self.new.lines(heading, rest)

    def gone(self, begin: Callable[[Finding, int], str]) -> Iterator[str]:
        """A line for every kind of which some went, and one for those whose row may be out for another fault."""
        for (subject, what), kind in self._kinds.items():
            gone = kind.gone()
            staying = self._staying((subject, what), gone) if self._of_rows else 0
            if number := gone.total() - staying:
                yield f"gone: {begin(Finding(subject=subject), number)}: {what}"
            if staying:
                yield f"gone: {subject}: {counted(staying, 'fault', ',')}: {what}"

    def _staying(self, of: _Kind, gone: Counter[str]) -> int:
        """Of how many of this kind that are gone, by key, the row may still be out for another fault."""
        others = [found.by_key for kind, found in self._kinds.items() if kind[0] == of[0] and kind != of]
        return sum(min(rows, sum(found[key] for found in others)) for key, rows in gone.items())


class News:
    """What is new of the bad rows and remarks of the build of `as_of`, and what went since the `last` one, if known.

    Where rows are only counted, now or then, nobody knows which of them came or went: numbers are compared.
    """

    def __init__(self, last: Told | None, rows: Quarantine, remarks: Sequence[Finding], as_of: str) -> None:
        self._as_of = as_of
        self._quarantine = rows
        self._found = remarks
        found = ((fault, row.rows) for row in rows for fault in row.faults)
        is_counted = rows.unnamed() or (last and last.unnamed)
        counts = rows.faults() if is_counted else None
        self._faults = _Compared(last.faults if last else None, found, as_of, counts, of_rows=True)
        self._remarks = _Compared(last.remarks if last else None, ((remark, 1) for remark in remarks), as_of)

    def told(self) -> Told:
        """What the next build is to know."""
        return Told(unnamed=self._quarantine.unnamed(), faults=self._faults.told(), remarks=self._remarks.told())

    def since_of(self, thing: QuarantinedRow | Finding) -> str | None:
        """As-of of the first build, in a row with this one, that found a remark, or a row bad, whatever was wrong.

        None if no report tells: it may be long.
        """
        if isinstance(thing, Finding):
            return self._remarks.since[thing]
        return min((self._faults.since[fault] for fault in thing.faults), key=_rank, default=self._as_of)

    def named_rows(self) -> Iterator[dict[str, Any]]:
        """The rows that are known by name, as JSON values."""
        for row in self._quarantine:
            values = {"relation": row.relation, "key": row.key, "title": row.title, "reason": row.reason}
            yield {**values, "rows": row.rows, "since": self.since_of(row)}

    def of_last_day(self) -> tuple[Counter[str], Counter[str]]:
        """How many rows, by relation, and remarks, by topic, are known to be new within a day."""
        rows = Counter[str]()
        for row in self._quarantine:
            rows[row.relation] += row.rows if is_new(self.since_of(row), self._as_of) else 0
        return rows, Counter(remark.topic for remark in self._found if is_new(self.since_of(remark), self._as_of))

    def number(self) -> int:
        """How many faults of rows and remarks are new."""
        return self._faults.new.total() + self._remarks.new.total()

    def known(self) -> dict[str, int]:
        """How many rows and remarks the last build had already."""
        fresh = self._faults.fresh
        new = sum(
            min(row.rows, max((fresh.get(fault, 0) for fault in row.faults), default=0)) for row in self._quarantine
        )
        remarks = len(self._found) - self._remarks.new.total()
        return {"quarantined": self._quarantine.total() - new, "remarks": remarks}

    def sentence(self) -> str:
        """The same in words; empty if that is nothing."""
        rows, remarks = self.known().values()
        words = f"{counted(rows, 'quarantined row', ',')}, {counted(remarks, 'remark', ',')}"
        return f"as in the last build: {words}" if rows or remarks else ""

    def lines(self) -> Iterator[str]:
        """A line for every kind of fault and of remark that has new ones, with an example."""
        yield from self._faults.lines(quarantine.heading, quarantine.REST)
        yield from self._remarks.lines(notices.heading, notices.REST)

    def gone(self) -> Iterator[str]:
        """A line for every kind of fault and of remark of which some went."""
        gone = [*self._faults.gone(quarantine.heading), *self._remarks.gone(notices.heading)]
        yield from gone[:LINES]
        if len(gone) > LINES:
            yield f"gone: {counted(len(gone) - LINES, 'more kind')} of findings, not shown"
