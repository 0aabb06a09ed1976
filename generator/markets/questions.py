"""Decides which markets belong to which public question, over all rows together, in the order of the rules. Pure."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import fsum, inf
from typing import Any, Final, NamedTuple

from generator.api import contract, keys
from generator.api.questions import QuestionKind
from generator.findings import Finding
from generator.markets import question_rows, slugs
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.markets.question_rows import GivenQuestion, ValidMember
from generator.markets.slugs import References, SiteKeys


class Member(NamedTuple):
    """A listed market in a question, as the database tells it.

    `label` is None if it is blank: the market's question is shown in its place. `payout` is not public before the
    market is settled.
    """

    market_id: str
    label: str | None
    position: int | None
    payout: float | None


class Question(NamedTuple):
    """A public question; `slug` and `key` are None unless they can be used, `created_at` is a wire timestamp.

    `members` are those that count, ascending by market id.
    """

    id: str
    slug: str | None
    key: str | None
    title: str
    description: str | None
    kind: QuestionKind
    created_at: str
    members: tuple[Member, ...]


class PublishedMarkets(NamedTuple):
    """What questions may be made of: the markets that lists show, by id; and the ids of all with a published detail."""

    listed: Mapping[str, Market]
    detailed: Container[str]


class GatheredQuestions(NamedTuple):
    """All public questions, ascending by id, and what the operator may not expect of them."""

    questions: tuple[Question, ...]
    remarks: list[Finding]


#: The memberships that count so far: by question, by market.
_Members = dict[str, dict[str, ValidMember]]

_TAKEN_ID: Final = Finding(
    column="id", text="a market has the same", remedy="give questions ids of their own: hash 'question:' || key"
)
_REPEATED: Final = Finding(
    column="market_id", text="the question has it more than once", remedy="keep one row for each market of a question"
)
_TOO_MANY: Final = Finding(
    column="id",
    text=f"the question has more than {contract.MEMBERS_MAX:,} public members",
    remedy="divide it, or leave it out in a view",
)
_TOO_LARGE: Final = Finding(text="the sum over its members is too large a number", remedy="correct the markets")


def _kind(topic: str, subject: str, text: str, effect: str) -> Finding:
    """What remarks of one kind have in common; `effect` is what to expect or to do."""
    return Finding(topic=topic, subject=subject, text=text, remedy=effect)


_TWO_QUESTIONS: Final = _kind(
    "two_questions", "market", "is in several questions", "it stands alone: leave it in one of them"
)
_BLANK_LABEL: Final = _kind(
    "blank_label", "market", "label in its question is blank", "its own question is shown instead: write a label"
)
_EARLY_PAYOUT: Final = _kind(
    "early_payout",
    "market",
    "has a payout before its time",
    "it is published as null until its status is resolved or cancelled",
)
_UNUSABLE_SLUG: Final = _kind("unusable_slug", "question", "", "it is found by its id only")
_UNUSABLE_KEY: Final = _kind(
    "unusable_key",
    "question",
    "",
    "no link leads to its page, and no takedown finds it by its key: give each question a key of its own, or none",
)
_MANY_YES: Final = _kind(
    "not_exclusive",
    "question",
    "is exclusive, and several of its markets are resolved YES",
    "it is published as it stands: correct a market, or make it independent",
)
_YES_AND_OPEN: Final = _kind(
    "not_exclusive",
    "question",
    "is exclusive, and one of its markets is resolved YES while others are open",
    "it is published as it stands: close or resolve the others, or make it independent",
)


def gather(
    given: Iterable[GivenQuestion], members: Iterable[Sequence[Any]], markets: PublishedMarkets, quarantine: Quarantine
) -> GatheredQuestions:
    """The public questions of valid rows, step by step: what one leaves out does not come back through a later one.

    `members` are rows of the ids of question and market, in lower case, label, position and payout, in any order. They
    are consumed one by one, and those of other questions or markets ignored.
    """
    listed = markets.listed
    questions = {question.id: question for question in _with_own_id(given, markets, quarantine)}
    found = _memberships(questions, members, listed, quarantine)
    remarks = [*_leave_shared(found)]
    public = [questions[key] for key in sorted(found) if _is_public(questions[key], found[key], listed, quarantine)]
    references = slugs.references(((question.id, question.slug) for question in public), "question")
    site_keys = SiteKeys.of(((question.id, question.key) for question in public), "question")
    made = tuple(
        _question(given, references.usable.get(given.id), site_keys.usable.get(given.id), found[given.id])
        for given in public
    )
    for question in made:
        remarks.extend(_of_names(question.id, references, site_keys))
        remarks.extend(_of_members(question, listed))
    return GatheredQuestions(made, remarks)


def _with_own_id(
    given: Iterable[GivenQuestion], markets: PublishedMarkets, quarantine: Quarantine
) -> Iterator[GivenQuestion]:
    """The questions whose id no published market has."""
    for question in given:
        if question.id in markets.detailed:
            quarantine.reject("questions", question.id, _TAKEN_ID, title=question.title)
        else:
            yield question


def _memberships(
    questions: Mapping[str, GivenQuestion],
    rows: Iterable[Sequence[Any]],
    listed: Mapping[str, Market],
    quarantine: Quarantine,
) -> _Members:
    """The valid memberships of listed markets in these questions; of equal pairs none counts."""
    found: _Members = {}
    repeated = dict[tuple[str, str], int]()
    for question_id, market_id, *values in rows:
        if question_id not in questions or market_id not in listed:
            continue
        member = question_rows.member(values, market_id, quarantine)
        if member is None:
            continue
        markets = found.setdefault(question_id, {})
        if market_id in markets:
            pair = question_id, market_id
            repeated[pair] = repeated.get(pair, 1) + 1
        markets[market_id] = member
    for (question_id, market_id), count in repeated.items():
        del found[question_id][market_id]
        for _ in range(count):
            quarantine.reject("question_members", market_id, _REPEATED._replace(value=question_id))
    return found


def _leave_shared(found: _Members) -> Iterator[Finding]:
    """Take markets of several questions out of all of them, with a remark for each."""
    owners = dict[str, list[str]]()
    for question_id in sorted(found):
        for market_id in found[question_id]:
            owners.setdefault(market_id, []).append(question_id)
    for market_id, shared in sorted(owners.items()):
        if len(shared) > 1:
            for question_id in shared:
                del found[question_id][market_id]
            yield _TWO_QUESTIONS.about(market_id, ", ".join(shared[:2]))


def _is_public(
    question: GivenQuestion, members: Mapping[str, ValidMember], listed: Mapping[str, Market], quarantine: Quarantine
) -> bool:
    """Whether it has members, and not too many, and their sums are numbers; it is quarantined for what it has."""
    wrong = list[Finding]()
    if len(members) > contract.MEMBERS_MAX:
        wrong.append(_TOO_MANY._replace(value=f"{len(members):,}"))
    markets = [listed[key] for key in members]
    if exact_sum(market.volume for market in markets) == inf:
        wrong.append(_TOO_LARGE._replace(column="volume"))
    for name in ("trader_count", "fills24h"):
        if sum(getattr(market, name) for market in markets) > contract.EXACT_INTEGER:
            wrong.append(_TOO_LARGE._replace(column=name))
    if wrong:
        quarantine.reject("questions", question.id, *wrong, title=question.title)
    return bool(members) and not wrong


def exact_sum(volumes: Iterable[float]) -> float:
    """The exact sum of finite numbers, none negative, rounded once to the nearest double; infinity if that is it."""
    exact = [*volumes]
    try:
        return fsum(exact)
    except OverflowError:
        pass
    # What `fsum` adds up may overflow by its own rounding where the sum does not.
    try:
        return float(sum(map(Fraction, exact)))
    except OverflowError:
        return inf


def _question(given: GivenQuestion, slug: str | None, key: str | None, members: Mapping[str, ValidMember]) -> Question:
    ordered = (Member(market_id, row.label, row.position, row.payout) for market_id, row in sorted(members.items()))
    return Question(given.id, slug, key, given.title, given.description, given.kind, given.created_at, tuple(ordered))


def without(questions: Iterable[Question], references: Collection[str]) -> list[Question]:
    """The questions without those of these references, and without these markets (ids): one that has no other goes."""
    kept = (
        question._replace(members=tuple(member for member in question.members if member.market_id not in references))
        for question in questions
        if keys.question_reference(question.id) not in references
    )
    return [question for question in kept if question.members]


def _of_names(question_id: str, references: References, site_keys: SiteKeys) -> Iterator[Finding]:
    """Remarks about a slug and a key that cannot be used."""
    for unusable, refused in ((_UNUSABLE_SLUG, references.refused), (_UNUSABLE_KEY, site_keys.refused)):
        if reason := refused.get(question_id):
            text = f"{reason.column} cannot be used: {reason.text}"
            yield unusable._replace(text=text).about(question_id, reason.value)


def _of_members(question: Question, listed: Mapping[str, Market]) -> Iterator[Finding]:
    """Remarks about the members of a public question. A payout may be a secret, so it is not quoted."""
    markets = [listed[member.market_id] for member in question.members]
    for member, market in zip(question.members, markets, strict=True):
        if member.label is None:
            yield _BLANK_LABEL.about(market.id)
        if member.payout is not None and market.status in contract.UNSETTLED:
            yield _EARLY_PAYOUT.about(market.id)
    if question.kind == "exclusive":
        winners = sum(market.resolution == "YES" for market in markets)
        if winners > 1:
            yield _MANY_YES.about(question.id, str(winners))
        elif winners and any(market.status == "open" for market in markets):
            yield _YES_AND_OPEN.about(question.id)
