"""The wire schema of questions: several markets that answer one thing, as lists, details and definitions show them.

The contract does not know them. Their properties are in the order of the fields, and all objects are closed.
"""

from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from generator.api.contract import (
    EXACT_INTEGER,
    Closed,
    Description,
    ExtraName,
    ExtraSlug,
    IfPresent,
    MarketStatus,
    PublicMarketListItem,
    QuestionText,
    Resolution,
)
from generator.api.forms import Count, NonNegative, Probability, Timestamp, Url, Uuid

QuestionKind = Literal["exclusive", "independent"]
#: A market that is in no question stands in the lists of questions as a row of this kind.
SINGLE: Final = "single"
RowKind = Literal["exclusive", "independent", "single"]
QUESTION_KINDS: Final[tuple[QuestionKind, ...]] = get_args(QuestionKind)

#: So many markets a row shows at most; its detail has all.
SHOWN_MARKETS: Final = 10

#: A title may be the question of a market that stands alone, and so may a label be that of its market.
Label = QuestionText
Position = Annotated[int, Field(ge=-EXACT_INTEGER, le=EXACT_INTEGER)]
#: The names of all categories of its markets, however many there are.
AllNames = Annotated[list[str] | None, IfPresent]


class QuestionMarket(Closed):
    """A market of a question, as lists of questions show it; the label of a market that stands alone is null."""

    id: Uuid
    label: Label | None
    prob: Probability
    status: MarketStatus
    resolution: Resolution | None


class QuestionFields(Closed):
    """The fields that rows and the detail's question share; `size` counts all its markets."""

    id: Uuid
    title: QuestionText
    kind: RowKind
    status: MarketStatus
    volume: NonNegative
    trader_count: Count
    fills24h: Count = Field(alias="fills24h")
    accepting_bets: bool
    close_time: Timestamp
    created_at: Timestamp
    resolved_at: Timestamp | None
    last_activity_at: Timestamp
    size: Annotated[int, Field(ge=1)]


class QuestionListItem(QuestionFields):
    """A row of the lists: a question, or a market that is in none."""

    markets: Annotated[list[QuestionMarket], Field(min_length=1, max_length=SHOWN_MARKETS)]
    slug: ExtraSlug = None
    category: ExtraName = None
    categories: AllNames = None


class QuestionList(Closed):
    """A page of a list of questions."""

    items: list[QuestionListItem]
    next_cursor: str | None


class QuestionSummary(QuestionFields):
    """A question in its detail, whose markets stand beside it; a market that stands alone has none."""

    kind: QuestionKind
    description: Description | None
    slug: ExtraSlug = None
    category: ExtraName = None
    categories: AllNames = None


class QuestionMember(Closed):
    """A market in the detail of its question; `payout` is what a YES share pays, null before the market is settled."""

    label: Label
    position: Position | None
    payout: Probability | None
    market: PublicMarketListItem


class QuestionDetail(Closed):
    """A question with all its markets."""

    question: QuestionSummary
    markets: list[QuestionMember]


class DefinedMember(Closed):
    """A market in the definition of its question."""

    id: Uuid
    label: Label
    position: Position | None
    payout: Probability | None


class QuestionDefinition(Closed):
    """What seldom changes of a question: a line of the definitions."""

    id: Uuid
    kind: QuestionKind
    slug: ExtraSlug = None
    title: QuestionText
    description: Description | None
    created_at: Timestamp
    members: list[DefinedMember]


class DefinitionRow(Closed):
    """A market of a question: a row of the table of definitions."""

    question_id: Uuid = Field(description="The question's UUID, in lower case.")
    kind: QuestionKind = Field(
        description="`exclusive` if one of its markets at most is to be resolved YES, `independent` if any number may "
        "be."
    )
    slug: ExtraSlug = Field(None, description="Can stand for the question's id in a path; null if it has none.")
    title: QuestionText = Field(description="What its markets answer together. Plain text, not HTML.")
    description: Description | None = Field(
        description="What holds for all its markets; null if there is none. Plain text, not HTML."
    )
    created_at: Timestamp = Field(description="When the question was asked.")
    market_id: Uuid = Field(description="The market's UUID, in lower case.")
    label: Label
    position: Position | None
    payout: Probability | None
    url: Annotated[Url | None, IfPresent] = None
