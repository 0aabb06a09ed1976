"""What is wrong, odd or fine with settings, rows, files and stores; and how many findings there are of a kind. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from generator.errors import PublicMarketsError
from generator.wording import counted

#: A larger difference between clocks is worth a warning; stores refuse requests from a quarter of an hour on.
CLOCK_TOLERANCE: Final = timedelta(seconds=30)
#: Ends a list of kinds of bad rows, where no report names the rows.
CHECK_NAMES_EACH: Final = "`public-markets check --all` names each"
#: How many lines about findings of one sort a command prints.
LINES: Final = 15


class Severity(StrEnum):
    """How severe a finding is. The word begins its line."""

    ERROR = "error"
    WARNING = "warning"
    FINE = "fine"


#: What findings of one kind have in common.
_Common: TypeAlias = tuple[Severity, str, str, str, str, str]


class Finding(NamedTuple):
    """What is wrong, odd or fine about something (`text`), and what to do about it or to expect (`remedy`).

    `subject` is the relation of a row; or `market`, `category` or `file`. `key` is its id or name; `value` is what its
    `column` holds or what else is meant, printable; None if that says nothing or must not be shown. Findings that
    differ only in `key` and `value` are of one kind. `topic` is what metrics call a remark; others have none.

    A finding about anything else, such as a setting or a store, has no parts but its `text`, which is a sentence.
    """

    severity: Severity = Severity.WARNING
    topic: str = ""
    subject: str = ""
    column: str = ""
    text: str = ""
    remedy: str = ""
    key: str = ""
    value: str | None = None

    def kind(self) -> _Common:
        """What all findings of this kind have in common: the parts before `key` and `value`."""
        return self[:6]

    def about(self, key: str, value: str | None = None) -> "Finding":
        """The finding of this kind about one thing."""
        return Finding(*self.kind(), key, value)

    def what(self) -> str:
        """What is wrong with things of this kind: `amount: must not be NULL`."""
        return f"{self.column}: {self.text}" if self.column else self.text

    def reason(self) -> str:
        """What is wrong with this thing: `amount: not a number (much)`."""
        return self.what() if self.value is None else f"{self.what()} ({self.value})"

    def sentence(self) -> str:
        """Everything but the severity: `market 7: question is empty; write it`."""
        reason = f"{self.subject} {self.key}: {self.reason()}" if self.subject else self.reason()
        return f"{reason}; {self.remedy}" if self.remedy else reason

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence()}"


class FindingCounts:
    """Counts findings by kind, with one of each as an example: thousands that differ only in the row are one line.

    The example is the first in order, in whatever order they come.
    """

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        #: By kind: the number, and key and value of the example.
        self._counts: dict[_Common, tuple[int, tuple[str, str]]] = {}
        for finding in findings:
            self.add(finding)

    def add(self, finding: Finding, rows: int = 1) -> None:
        """Count a finding about this many rows."""
        kind, example = finding.kind(), (finding.key, finding.value or "")
        number, first = self._counts.get(kind, (0, example))
        self._counts[kind] = number + rows, min(first, example)

    def merge(self, other: "FindingCounts") -> None:
        """Add those that another one counted."""
        for example, rows in other:
            self.add(example, rows)

    def __iter__(self) -> Iterator[tuple[Finding, int]]:
        """An example of each kind, and how many there are; the most frequent first."""
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1][0], item[0]))
        return ((Finding(*kind, key, value or None), rows) for kind, (rows, (key, value)) in ranked)

    def total(self) -> int:
        """The number of findings; a row may have several."""
        return sum(rows for rows, _ in self._counts.values())

    def lines(self, heading: Callable[[Finding, int], str], rest: str) -> Iterator[str]:
        """At most LINES lines, one a kind, each begun by its `heading`; then the number of other kinds, named `rest`.

        A subject with many kinds must not hide those of others: each shows its most frequent ones.
        """
        ranks = Counter[tuple[str, str]]()
        ranked = list[tuple[int, Finding]]()
        for example, _ in self:
            ranked.append((ranks[example.topic, example.subject], example))
            ranks[example.topic, example.subject] += 1
        shown = {example for _, example in sorted(ranked, key=lambda found: found[0])[:LINES]}
        for example, rows in self:
            if example in shown:
                such_as = f"({'such as ' if rows > 1 else ''}{_named(example)})"
                yield f"{heading(example, rows)}: {example.what()} {such_as}; {example.remedy}"
        if len(ranked) > len(shown):
            yield f"{counted(len(ranked) - len(shown), 'more kind')} of {rest}, not shown"


def _named(example: Finding) -> str:
    return f"{example.key}: {example.value}" if example.value and example.value != example.key else example.key


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, those of one kind together."""
    return sorted(findings, key=lambda finding: (*finding.kind(), finding.key, finding.value or ""))


def error(text: str) -> Finding:
    """A build or a publish fails until this is fixed."""
    return Finding(Severity.ERROR, text=text)


def warning(text: str) -> Finding:
    """Runs succeed, but the operator should know."""
    return Finding(Severity.WARNING, text=text)


def fine(text: str) -> Finding:
    """Nothing to do."""
    return Finding(Severity.FINE, text=text)


def clocks(name: str, owner: str, difference: timedelta) -> Iterator[Finding]:
    """Whether this machine's clock and the owner's agree; `difference` is positive where this machine's is ahead."""
    if abs(difference) > CLOCK_TOLERANCE:
        ahead = "ahead of" if difference > timedelta(0) else "behind"
        seconds = f"{abs(difference).total_seconds():.0f} s"
        yield warning(f"{name}: this machine's clock is {seconds} {ahead} the {owner}'s; set it: it dates the builds")


def tried(look: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of one check; an error that ends it becomes a finding, so that the next check still runs."""
    try:
        yield from look
    except PublicMarketsError as problem:
        yield error(str(problem))


def refused(attempt: Callable[[], object]) -> Iterator[Finding]:
    """The error that an attempt raises, as a finding; nothing when it succeeds."""
    try:
        attempt()
    except PublicMarketsError as problem:
        yield error(str(problem))
