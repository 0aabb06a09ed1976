"""Makes what is published of questions: the rows of their lists, details and definitions. Pure.

A row is made of the encoded items of its markets, so what both show is equal in bytes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.contract import MarketStatus, Variant
from generator.api.questions import (
    SHOWN_MARKETS,
    DefinedMember,
    QuestionDefinition,
    QuestionDetail,
    QuestionMember,
    QuestionSummary,
)
from generator.markets.market import Market
from generator.markets.questions import Member, Question, exact_sum
from generator.site.catalog import Catalog, Ordered

#: Where an item's id ends and its question begins; and what follows the question. JSON escapes quotation marks within
#: texts, so no text has that in it.
_ID_END: Final = len('{"id":""') + 36
_QUESTION: Final = slice(_ID_END + len(',"question":'), None)
_AFTER_QUESTION: Final = b',"status":'
#: How many commas part the properties from there to the last that every item has; no value before that has one.
_COMMAS: Final = 10
_PROB: Final = slice(len('"prob":'), None)

_SINGLE: Final = (
    b'%b,"title":%b,"kind":"single","status":%b,%b,%b,%b,%b,%b,%b,%b,%b,"size":1,'
    b'"markets":[%b,"label":null,%b,"status":%b,%b}]%b}'
)
_MARKET: Final = b'%b,"label":%b,%b,"status":%b,%b}'
_OPEN: Final = "open"
_id_of: Final = attrgetter("id")


class ListRow(NamedTuple):
    """A row of the lists, `body`, and the values by which it is sorted and chosen; `categories` are slugs."""

    id: str
    body: bytes
    status: MarketStatus
    volume: float
    close_time: str
    created_at: str
    resolved_at: str | None
    last_activity_at: str
    trader_count: int
    categories: tuple[str, ...]


class ShownMember(NamedTuple):
    """A market of a question, and what is shown of its membership."""

    market: Market
    label: str
    position: int | None
    payout: float | None


class ShownQuestion(NamedTuple):
    """A question, its members by position, its row, and what begins and ends both row and detail, encoded."""

    question: Question
    slug: str | None
    members: Sequence[ShownMember]
    row: ListRow
    beginning: bytes
    extras: bytes


class QuestionObject(NamedTuple):
    """The detail of a question, which is found by its id and, if it has one, by its slug."""

    id: str
    slug: str | None
    body: bytes


class QuestionRows(Ordered[ListRow]):
    """The rows of questions, and of all listed markets that are in none.

    The members of `questions` are listed markets of the catalog, each in one question only. Raises KeyError for any
    other, and ValueError for a question without members or with a volume that is infinite: whoever reads the database
    leaves it out.
    """

    def __init__(self, catalog: Catalog, questions: Iterable[Question], variant: Variant) -> None:
        names = catalog.listed_categories() if variant == "extended" else None
        alone = {market.id: market for market in catalog.listed()}
        #: Ascending by id.
        self.questions = [
            _shown(question, [(member, alone.pop(member.market_id)) for member in question.members], names)
            for question in sorted(questions, key=_id_of)
        ]
        self._members = {
            shown.question.id: [member.market_id for member in shown.question.members] for shown in self.questions
        }
        self._rows = sorted([*(shown.row for shown in self.questions), *map(_single, alone.values())], key=_id_of)

    def listed(self) -> Sequence[ListRow]:
        """All rows, ascending by id."""
        return self._rows

    def markets_of(self, row_id: str) -> Sequence[str]:
        """The markets (ids) that a row stands for."""
        return self._members.get(row_id, (row_id,))

    def members(self) -> dict[str, tuple[str, ...]]:
        """The markets (ids) of questions, by the references of these."""
        return {keys.question_reference(question_id): tuple(found) for question_id, found in self._members.items()}

    def slugs(self) -> dict[str, tuple[str, ...]]:
        """The slugs of questions, by their references."""
        found = ((keys.question_reference(shown.question.id), shown.slug) for shown in self.questions)
        return {reference: (slug,) for reference, slug in found if slug is not None}

    def counts(self) -> tuple[int, int, int]:
        """How many questions there are, markets in them, and labels of these other than their own question."""
        shown = [(one.market, one.label) for question in self.questions for one in question.members]
        labels = sum(contract.encode(label) != _pieces(market)[0][_QUESTION] for market, label in shown)
        return len(self.questions), len(shown), labels

    def details(self) -> Iterator[QuestionObject]:
        """The details of all questions, ascending by id; the detail of a market that is in none is the market's."""
        return (QuestionObject(shown.question.id, shown.slug, _detail(shown)) for shown in self.questions)

    def definitions(self) -> Iterator[bytes]:
        """The definitions of all questions, lines without line feeds, ascending by id."""
        return map(_definition, self.questions)


def published(lines: Iterable[bytes]) -> list[Question]:
    """The questions of definitions; nothing tells their keys, and a label that was blank is as it was shown.

    Raises ValueError for a line that is no definition.
    """
    definitions = map(QuestionDefinition.model_validate_json, lines)
    return [_published(one, {member.id: member for member in one.members}) for one in definitions]


def detailed(body: bytes) -> Question:
    """The question of a detail, as far as that tells it; raises ValueError for any other body."""
    detail = QuestionDetail.model_validate_json(body)
    return _published(detail.question, {member.market.id: member for member in detail.markets})


def _published(
    said: QuestionDefinition | QuestionSummary, members: Mapping[str, DefinedMember | QuestionMember]
) -> Question:
    return Question(
        id=said.id,
        slug=said.slug,
        key=None,
        title=said.title,
        description=said.description,
        kind=said.kind,
        created_at=said.created_at,
        members=tuple(Member(key, one.label, one.position, one.payout) for key, one in sorted(members.items())),
    )


def _pieces(market: Market) -> Sequence[bytes]:
    """The item of a market: its id and question, the value of its status, then property by property."""
    head, _, rest = market.body.partition(_AFTER_QUESTION)
    return head, *rest.split(b",", _COMMAS)


def _single(market: Market) -> ListRow:
    """The row of a market that is in no question."""
    head, status, prob, volume, closes, resolution, created, resolved, active, traders, fills, rest = _pieces(market)
    accepting, comma, extras = rest[:-1].partition(b",")
    own = (volume, traders, fills, accepting, closes, created, resolved, active)
    shown = (head[:_ID_END], prob, status, resolution)
    body = _SINGLE % (head[:_ID_END], head[_QUESTION], status, *own, *shown, comma + extras)
    return ListRow(
        market.id,
        body,
        market.status,
        market.volume,
        market.close_time,
        market.created_at,
        market.resolved_at,
        market.last_activity_at,
        market.trader_count,
        market.categories,
    )


def _shown(
    question: Question, found: Sequence[tuple[Member, Market]], names: Mapping[str, str] | None
) -> ShownQuestion:
    """What is shown of a question; `names` are those of categories by slug, None in the core variant."""
    markets = [market for _, market in found]
    fields = _fields(question, markets)
    beginning = contract.encode(fields)[:-1]
    categories = [] if names is None else _categories(markets, names)
    extras = b"" if names is None else _extras(question.slug, [names[slug] for slug in categories])
    members, shown = _members(found)
    body = b'%b,"markets":[%b]%b}' % (beginning, b",".join(shown), extras)
    row = ListRow(
        question.id,
        body,
        fields["status"],
        fields["volume"],
        fields["closeTime"],
        fields["createdAt"],
        fields["resolvedAt"],
        fields["lastActivityAt"],
        fields["traderCount"],
        tuple(categories),
    )
    return ShownQuestion(question, None if names is None else question.slug, members, row, beginning, extras)


def _fields(question: Question, markets: Sequence[Market]) -> dict[str, Any]:
    """What row and detail have in common, in order, as on the wire."""
    volume = exact_sum(market.volume for market in markets)
    if volume == inf:
        raise ValueError(f"question {question.id}: the sum of its volumes is too large")
    # They stand in the order in which one is the question's.
    status = min((market.status for market in markets), key=contract.MARKET_STATUSES.index)
    closing = [market.close_time for market in markets if status != _OPEN or market.status == _OPEN]
    resolved = [market.resolved_at for market in markets if market.resolved_at is not None]
    return {
        "id": question.id,
        "title": question.title,
        "kind": question.kind,
        "status": status,
        "volume": volume,
        "traderCount": sum(market.trader_count for market in markets),
        "fills24h": sum(market.fills24h for market in markets),
        "acceptingBets": any(market.accepting_bets for market in markets),
        "closeTime": max(closing),
        "createdAt": question.created_at,
        "resolvedAt": None if status in contract.UNSETTLED else max(resolved, default=None),
        "lastActivityAt": max(market.last_activity_at for market in markets),
        "size": len(markets),
    }


def _categories(markets: Sequence[Market], names: Mapping[str, str]) -> list[str]:
    """The slugs of all categories of markets: that of the most markets first, then by name."""
    counts = Counter(slug for market in markets for slug in market.categories)
    return sorted(counts, key=lambda slug: (-counts[slug], names[slug]))


def _extras(slug: str | None, categories: Sequence[str]) -> bytes:
    """The properties of the extended variant, each with a comma before it."""
    found: dict[str, Any] = {} if slug is None else {"slug": slug}
    if categories:
        found["category"] = categories[0]
    return b"," + contract.encode({**found, "categories": categories})[1:-1]


def _members(found: Sequence[tuple[Member, Market]]) -> tuple[list[ShownMember], list[bytes]]:
    """The members of a question by position, and the first markets of its row, encoded."""
    members, markets = [], []
    for member, market in found:
        head, status, prob, _, _, resolution, *_ = _pieces(market)
        question = head[_QUESTION]
        label = from_json(question) if member.label is None else member.label
        payout = None if market.status in contract.UNSETTLED else member.payout
        place = (member.position is None, member.position or 0, market.id)
        members.append((place, ShownMember(market, label, member.position, payout)))
        encoded = question if member.label is None else contract.encode(label)
        shown = (head[:_ID_END], encoded, prob, status, resolution)
        markets.append(((_rank(market), -float(prob[_PROB]), *place), shown))
    members.sort()
    markets.sort()
    return [member for _, member in members], [_MARKET % shown for _, shown in markets[:SHOWN_MARKETS]]


def _rank(market: Market) -> int:
    """Open markets stand first, then the one that came true."""
    if market.status == _OPEN:
        return 0
    return 1 if market.resolution == "YES" else 2


def _detail(shown: ShownQuestion) -> bytes:
    described = b'%b,"description":%b%b}' % (
        shown.beginning,
        contract.encode(shown.question.description),
        shown.extras,
    )
    return b'{"question":%b,"markets":[%b]}' % (described, b",".join(map(_detailed, shown.members)))


def _detailed(member: ShownMember) -> bytes:
    own = contract.encode({"label": member.label, "position": member.position, "payout": member.payout})
    return b'%b,"market":%b}' % (own[:-1], member.market.body)


def _definition(shown: ShownQuestion) -> bytes:
    question = shown.question
    slug = {} if shown.slug is None else {"slug": shown.slug}
    members = [
        {"id": member.market.id, "label": member.label, "position": member.position, "payout": member.payout}
        for member in shown.members
    ]
    return contract.encode(
        {
            "id": question.id,
            "kind": question.kind,
            **slug,
            "title": question.title,
            "description": question.description,
            "createdAt": question.created_at,
            "members": members,
        }
    )
