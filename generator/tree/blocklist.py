"""The blocked list: markets and questions taken down, which no build shows until `takedown --undo`; and the hold.

It is kept in the store, outside what is served, and as a copy in the output folder. The latest decision on each market,
and on each question, counts, so copies that were changed apart can be merged. The hold belongs to one place: the
target's counts, or the folder's where there is no target.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationError

from generator.api import keys
from generator.api.forms import instant
from generator.errors import GuardError, OutputError
from generator.models import replaced
from generator.tree import files, stored
from generator.tree.folder import Output
from generator.tree.generation import Read
from generator.tree.stored import FormatError, Instant, StoredModel

KEY: Final = files.BLOCKED
FORMAT: Final = 2
#: The first format has no hold.
_OLDEST_FORMAT: Final = 1
_NO_NAMES: Final[Mapping[str, Iterable[str]]] = MappingProxyType({})
_DIGEST_LENGTH: Final = 16

#: The most characters of a hold's reason, and of who holds.
LONGEST_LINE: Final = 200
#: What ends a hold.
RELEASE: Final = "`public-markets hold --release`"


def line(text: str) -> str:
    """The text without blanks around it; raise ValueError unless it is one line that a terminal shows as it is."""
    stripped = text.strip()
    if not stripped:
        raise ValueError("is empty")
    if len(stripped) > LONGEST_LINE:
        raise ValueError(f"has {len(stripped)} characters, {LONGEST_LINE} are allowed")
    if not stripped.isprintable():
        raise ValueError("must be one line of printable characters")
    return stripped


class Hold(StoredModel):
    """The operator's stop on new builds: who set it, since when by the store's clock, and why."""

    reason: Annotated[str, AfterValidator(line)]
    who: Annotated[str, AfterValidator(line)]
    since: Instant

    def __str__(self) -> str:
        return f"on hold since {self.since}, by {self.who}: {self.reason}"


class DamagedListError(OutputError):
    """The copy in the output folder is damaged."""


class HeldError(GuardError):
    """A target, or a folder without one, is on hold.

    The database is not believed meanwhile, so only blocked markets are withdrawn, not those that it does not show.
    """

    def __init__(self, place: str, hold: Hold, *, has_target: bool) -> None:
        super().__init__(f"{place}: {sentence(hold, has_target=has_target)}")
        self.hold = hold


def sentence(hold: Hold, *, has_target: bool) -> str:
    """The hold, what it stops, and what ends it."""
    stopped = "no build is published until" if has_target else "no build is made until"
    return f"{hold}; {stopped} {RELEASE}"


class Decision(StoredModel, extra="allow"):
    """The latest decision on a market: whether it is blocked, when that was decided, and last repeated (RFC 3339, UTC).

    A repetition does not change since when a market is blocked, but outranks an undo that another copy knows. `names`
    are digests of the slugs and keys that the market had when it was taken down, sorted: no later name may mean another
    market because this one is gone.

    A market is also blocked through each of its `questions` (ids) that is blocked, unless that was `undone_at` that
    instant, or later, since it was: that is when it became so. If no takedown of the market itself counts, the rest is
    not its `own`, but tells programs that know no questions whether it is blocked; `undone_at` is when its own ended.
    """

    at: str
    is_blocked: bool
    repeated_at: str = Field(default="", exclude_if=operator.not_)
    names: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    questions: Mapping[str, str] = Field(default_factory=dict, exclude_if=operator.not_)
    undone_at: str = Field(default="", exclude_if=operator.not_)
    own: bool = Field(default=True, exclude_if=bool)

    @property
    def latest(self) -> str:
        """The instant by which it outranks others."""
        return self.repeated_at or self.at

    @property
    def is_own(self) -> bool:
        """Whether it is on the market itself: so is what a program that knows no questions has repeated."""
        return self.own or bool(self.repeated_at)

    @property
    def rank(self) -> tuple[str, bool]:
        """When the latest decision on the market itself was made, and whether it blocks."""
        return (self.latest, self.is_blocked) if self.is_own else (self.undone_at, False)

    def named(self, names: Iterable[str]) -> "Decision":
        """The same with these names, too."""
        return replaced(self, names=tuple(sorted({*self.names, *names})))

    def through(self, questions: Mapping[str, str]) -> "Decision":
        """The same with these questions, too: of two instants, the later one counts."""
        if questions.items() <= self.questions.items():
            return self
        latest = {key: max(since, self.questions.get(key, "")) for key, since in questions.items()}
        return replaced(self, questions=dict(sorted({**self.questions, **latest}.items())))


class BlockedList(StoredModel, extra="allow"):
    """The latest decision on every market and question that was ever taken down; and the `hold` of where it lies.

    Markets are named by their ids, questions by their references: a program that knows none keeps them.

    `aside` names damaged lists that a takedown replaced: until they are restored or deleted, what they blocked is
    unknown. What other versions add without another format is kept: whoever wrote it, the list is obeyed.
    """

    format: int = FORMAT
    markets: Mapping[str, Decision] = {}
    hold: Hold | None = Field(default=None, exclude_if=operator.not_)
    aside: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)

    def ids(self) -> frozenset[str]:
        """The blocked markets, and the references of blocked questions."""
        found = {key for key, decision in self.markets.items() if decision.is_blocked and decision.is_own}
        return frozenset(found.union(key for key, decision in self.markets.items() if self._holding(decision)))

    def question_ids(self) -> frozenset[str]:
        """The blocked questions."""
        return keys.question_ids(self.ids())

    def through(self, market_id: str) -> tuple[str, ...]:
        """The questions through which a market is blocked."""
        decision = self.markets.get(market_id)
        return self._holding(decision) if decision else ()

    def is_own(self, market_id: str) -> bool:
        """Whether a market is blocked by itself."""
        decision = self.markets.get(market_id)
        return decision is not None and decision.is_blocked and decision.is_own

    def _holding(self, decision: Decision) -> tuple[str, ...]:
        return tuple(key for key, since in decision.questions.items() if self._holds(key, since))

    def _holds(self, question_id: str, since: str) -> bool:
        of_question = self.markets.get(keys.question_reference(question_id))
        return of_question is not None and of_question.is_blocked and since > of_question.undone_at

    def undone_between(self, since: str, until: str) -> frozenset[str]:
        """The markets whose takedown was undone between these instants; later ones are by a clock that was ahead."""
        return frozenset(
            market_id
            for market_id, decision in self.markets.items()
            if not decision.is_blocked and since < decision.latest <= until
        )

    def decided(
        self, ids: Iterable[str], *, is_blocked: bool, now: str, names: Mapping[str, Iterable[str]] = _NO_NAMES
    ) -> "BlockedList":
        """The list after these markets and questions are blocked, or unblocked, at `now`; `names` are by id."""
        at = self._instant(now)
        decisions = {key: self._decision(key, at, is_blocked=is_blocked).named(names.get(key, ())) for key in ids}
        return replaced(self, markets={**self.markets, **decisions}).told()

    def joined(
        self, questions: Mapping[str, Iterable[str]], *, now: str, names: Mapping[str, Iterable[str]] = _NO_NAMES
    ) -> "BlockedList":
        """The list after markets are blocked at `now` through blocked `questions` (ids), by the market's id."""
        at, decisions = self._instant(now), dict[str, Decision]()
        for market_id, found in questions.items():
            if new := {*found}.difference(self.through(market_id)):
                before = self.markets.get(market_id, Decision(at=at, is_blocked=True, own=False))
                decisions[market_id] = before.through(dict.fromkeys(new, at)).named(names.get(market_id, ()))
        return replaced(self, markets={**self.markets, **decisions}).told() if decisions else self

    def told(self) -> "BlockedList":
        """The same, as programs that know no questions obey it.

        Where no takedown of a market itself counts, all that is said of it follows from its questions and its undo.
        """
        told = dict[str, Decision]()
        for key, decision in self.markets.items():
            if decision.questions and not (decision.is_blocked and decision.is_own):
                undone = decision.rank[0]
                known = (self.markets.get(keys.question_reference(one)) for one in decision.questions)
                at = max(undone, *decision.questions.values(), *(one.undone_at for one in known if one))
                says = {"at": at, "is_blocked": bool(self._holding(decision)), "undone_at": undone}
                told[key] = replaced(decision, own=False, repeated_at="", **says)
        return replaced(self, markets={**self.markets, **told})

    def _instant(self, now: str) -> str:
        """When a new decision is made: if the clock was set back, it must still be the latest one."""
        known = ((decision.latest, *decision.questions.values()) for decision in self.markets.values())
        latest = max(chain.from_iterable(known), default="")
        return now if now > latest else instant(datetime.fromisoformat(latest) + timedelta(milliseconds=1))

    def _decision(self, reference: str, at: str, *, is_blocked: bool) -> Decision:
        before = self.markets.get(reference)
        if before is None:
            return Decision(at=at, is_blocked=is_blocked)
        if before.is_blocked and before.is_own and is_blocked:
            return replaced(before, repeated_at=at)
        undone_at = at if keys.is_question_reference(reference) and not is_blocked else before.undone_at
        return replaced(before, at=at, is_blocked=is_blocked, repeated_at="", own=True, undone_at=undone_at)

    def merged(self, other: "BlockedList") -> "BlockedList":
        """The list with the other's decisions; of two at the same instant, the one that blocks wins."""
        decisions = dict(self.markets)
        for market_id, theirs in other.markets.items():
            candidates = sorted((decisions.get(market_id, theirs), theirs), key=lambda decision: decision.at)
            latest = max(candidates, key=lambda one: (*one.rank, one.is_own, one.latest, one.is_blocked))
            for decision in candidates:
                latest = latest.named(decision.names).through(decision.questions)
            keeps_undo = keys.is_question_reference(market_id) or not latest.is_own
            undone_at = max(decision.undone_at for decision in candidates) if keeps_undo else ""
            decisions[market_id] = replaced(latest, undone_at=undone_at)
        extra = {**(other.model_extra or {}), **(self.model_extra or {})}
        return BlockedList(markets=decisions, hold=self.hold, aside=self.aside, **extra).told()

    def settled(self, read: Read) -> "BlockedList":
        """The list with what lists that were kept aside say, if they were restored; those that were deleted are gone.

        `read` reads the place where the list lies.
        """
        settled, left, names = self, list[str](), [*self.aside]
        for name in names:
            content = read(name)
            if content is None:
                continue
            try:
                restored = decode(content)
            except ValueError:
                left.append(name)
                continue
            settled = replaced(settled.merged(restored), hold=settled.hold or restored.hold)
            names += (other for other in restored.aside if other not in names)
        return replaced(settled, aside=tuple(left))

    def encoded(self) -> bytes:
        """The file's bytes: the same list gives the same bytes."""
        ordered = replaced(self, markets=dict(sorted(self.markets.items())))
        return ordered.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def load(folder: Output) -> BlockedList:
    """Read the copy in the output folder; raise OutputError if it is damaged, or one that was is still kept aside."""
    copy = _written(folder).settled(folder.read)
    require_whole(folder, copy)
    return copy


def settle(folder: Output) -> BlockedList:
    """The same, and write what lists say that were kept aside and have been restored."""
    copy = load(folder)
    save(folder, copy)
    return copy


def left(folder: Output) -> BlockedList:
    """What can be read of the copy; raise OutputError for a list of another format."""
    try:
        return _written(folder).settled(folder.read)
    except DamagedListError:
        return BlockedList()


def opened(folder: Output) -> BlockedList:
    """Read the copy for a takedown, which no damage stops: a damaged list is kept aside, and the answer names it.

    Raise OutputError for a list of another format.
    """
    content = folder.read(KEY) or b""
    try:
        return _written(folder).settled(folder.read)
    except DamagedListError:
        name = aside_name(content)
        folder.save(name, content)
        return BlockedList(aside=(name,))


def save(folder: Output, wanted: BlockedList) -> None:
    """Replace the copy in the output folder unless it says the same; delete lists kept aside that it names no more."""
    written = BlockedList()
    with suppress(DamagedListError):
        if wanted == (written := _written(folder)):
            return
    folder.save(KEY, wanted.encoded())
    for name in {*written.aside}.difference(wanted.aside):
        folder.discard_key(name)


def _written(folder: Output) -> BlockedList:
    """The copy as it is written; raise DamagedListError if it is damaged, OutputError if it is of another format."""
    content = folder.read(KEY)
    try:
        return BlockedList() if content is None else decode(content)
    except ValueError as error:
        raised = OutputError if isinstance(error, FormatError) else DamagedListError
        raise raised(unreadable(str(folder.path(KEY)), error, content or b"")) from error


def require_whole(folder: Output, copy: BlockedList) -> None:
    """Raise OutputError if a damaged list is still kept aside in the output folder."""
    for fault in faults(copy, folder.read, lambda name: str(folder.path(name))):
        raise OutputError(fault)


def aside_name(content: bytes) -> str:
    """The name under which a damaged list is kept aside."""
    return f"{files.BLOCKED_ASIDE}{sha256(content).hexdigest()[:_DIGEST_LENGTH]}.json"


def decode(content: bytes) -> BlockedList:
    """Parse the list; raise FormatError if it is of another format, ValueError if it is damaged."""
    with suppress(ValidationError):  # one without a format is of the first
        stored.require_format(content, FORMAT, _OLDEST_FORMAT)
    return replaced(BlockedList.model_validate_json(content), format=FORMAT)


def faults(found: BlockedList, read: Read, place: Callable[[str], str]) -> Iterator[str]:
    """What is wrong with each list that is kept aside, and what ends that; `place` names it for people."""
    for name in found.aside:
        content = read(name) or b""
        try:
            decode(content)
        except ValueError as error:
            yield unreadable(place(name), error, content)


def unreadable(place: str, error: ValueError, content: bytes) -> str:
    """The message for a list that cannot be read, with the remedy."""
    remedy = (
        "restore it, or delete it and take its markets down again; without it, markets that were taken down would come "
        "back"
    )
    return f"{place}: {stored.fault(error, content, remedy)}"
