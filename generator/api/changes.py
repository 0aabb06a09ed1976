"""The head of the change feed: which steps lead to the newest dump. Pure."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from generator.api import downloads, keys
from generator.api.contract import Closed, IfPresent
from generator.api.downloads import (
    FORMAT,
    NDJSON,
    SESSION_LENGTH,
    Content,
    Definitions,
    DumpHead,
    Head,
    MarketsFile,
    Sha256,
)
from generator.api.forms import Count, Timestamp, Url


class NumberedDefinitions(Definitions):
    """The same in the change feed, whose `serial` is one more with every other state of its session."""

    serial: int = Field(ge=1)

    @classmethod
    def after(cls, found: Definitions | None, before: Self | None) -> Self | None:
        """The definitions that follow those `before`; None if there is no such resource."""
        if found is None:
            return None
        serial = 1 if before is None else before.serial + (before.state != found.state)
        return cls(**{field: getattr(found, field) for field in Definitions.model_fields}, serial=serial)


class Step(Closed):
    """What changed from one serial to the next; its position in the head tells which."""

    # The head names up to two thousand, so nothing is said twice: the name has the digest, the head the address.
    name: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}\.ndjson\.gz$")]
    size: Count
    as_of: Timestamp

    @classmethod
    def of(cls, content: Content, as_of: str) -> Self:
        """The step with this content."""
        return cls(name=downloads.name(content.sha256, NDJSON), size=content.size, as_of=as_of)

    @property
    def key(self) -> str:
        """The key of its object."""
        return keys.chunk(keys.CHANGES, self.name)


class ChangesHead(Head):
    """Where the change feed is: `serial` in its `session`, the dump of just that state, and the steps that lead there.

    The steps are in order, each leads from one serial to the next, and the last one leads to `serial`. The address of a
    step is `stepsUrl` followed by its name.
    """

    DOWNLOAD = keys.CHANGES

    session: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    serial: int = Field(ge=1)
    as_of: Timestamp
    count: Count
    state: Sha256
    dump: MarketsFile
    steps_url: Url
    steps: list[Step]
    questions: Annotated[NumberedDefinitions | None, IfPresent] = None

    def files(self) -> list[Step]:
        """Its steps; the dump is a file of another download."""
        return self.steps

    def items(self) -> int:
        """Its steps."""
        return len(self.steps)

    def numbered(self) -> Iterator[tuple[int, Step]]:
        """Its steps, each with the serial that it starts from."""
        return enumerate(self.steps, self.serial - len(self.steps))

    def leads_on(self, before: Self) -> bool:
        """Whether its session has gone on from there, as far as the steps that both retain can tell.

        Copies of one folder may come to the same state by different steps, or to other states at the same serial.
        """
        if self.session != before.session or self.serial < before.serial:
            return False
        if self.serial == before.serial and self.state != before.state:
            return False
        if not _may_follow(self.questions, before.questions):
            return False
        first = self.serial - len(self.steps)
        if 1 < before.serial == first < self.serial:
            return False  # nothing tells from which state the first step starts
        led_there = {before.serial: before.as_of} | before._instants()
        return all(led_there.get(serial, as_of) == as_of for serial, as_of in self._instants().items())

    def _instants(self) -> dict[int, str]:
        """As of when each serial is to which a step leads."""
        return {serial + 1: step.as_of for serial, step in self.numbered()}


def _may_follow(now: NumberedDefinitions | None, before: NumberedDefinitions | None) -> bool:
    """Whether definitions may be those of a later state of one session."""
    if now is None or before is None:
        return True
    return now.state == before.state if now.serial == before.serial else now.serial > before.serial


def begun(dumped: DumpHead) -> ChangesHead:
    """The head of a session that begins with this dump: equal dumps as of the same instant begin equal ones."""
    session = sha256(f"{FORMAT} {dumped.as_of} {dumped.state}".encode()).hexdigest()[:SESSION_LENGTH]
    dump = dumped.ndjson
    steps_url = dump.url.removesuffix(dump.key) + keys.chunk(keys.CHANGES, "")
    return ChangesHead(
        session=session, serial=1, as_of=dumped.as_of, count=dumped.count, state=dumped.state, dump=dump,
        steps_url=steps_url, steps=[], questions=NumberedDefinitions.after(dumped.questions, None),
    )  # fmt: skip


def session_after(head: ChangesHead) -> str:
    """The name of a session that takes the place of the head's."""
    return sha256(f"{head.session} {head.serial} {head.state}".encode()).hexdigest()[:SESSION_LENGTH]
