"""The `/v1` wire schema: resources, enums, limits and error bodies of the read API contract (§2, §4, §7, §8).

It knows nothing of databases, files or edges; all other modules take field names, bounds and enum values from here.
"""

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from generator.api import forms, slugs
from generator.api.forms import Count, Day, NonNegative, Probability, Timestamp, Uuid

API_VERSION: Final = "v1"

MarketStatus = Literal["open", "closed", "resolved", "cancelled"]
Resolution = Literal["YES", "NO", "CANCEL"]
Variant = Literal["core", "extended"]
StatusFilter = Literal["open", "archive", "closed", "resolved", "cancelled", "all"]
Sort = Literal["popular", "activity", "volume", "new", "ended"]
Direction = Literal["gte", "lte"]

MARKET_STATUSES: Final[tuple[MarketStatus, ...]] = get_args(MarketStatus)
RESOLUTIONS: Final[tuple[Resolution, ...]] = get_args(Resolution)
STATUS_FILTERS: Final[tuple[StatusFilter, ...]] = get_args(StatusFilter)
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)
#: The states in which a market has no outcome yet, whatever its row says (contract §2.2).
UNSETTLED: Final[tuple[MarketStatus, ...]] = ("open", "closed")

#: The market states each value of the list's `status` parameter selects (contract §3, §4.1).
STATES_OF_FILTER: Final[dict[StatusFilter, tuple[MarketStatus, ...]]] = {
    "open": ("open",),
    "archive": ("closed", "resolved", "cancelled"),
    "closed": ("closed",),
    "resolved": ("resolved",),
    "cancelled": ("cancelled",),
    "all": MARKET_STATUSES,
}
DEFAULT_STATUS: Final[StatusFilter] = "open"
#: The sort used when the request names none, by status filter (contract §4.1).
DEFAULT_SORT: Final[dict[StatusFilter, Sort]] = {
    status: "popular" if status in ("open", "all") else "ended" for status in STATUS_FILTERS
}

LIMIT_MIN: Final = 1
LIMIT_MAX: Final = 100
LIMIT_DEFAULT: Final = 20
PRICE_MIN: Final = 0.01
PRICE_MAX: Final = 0.99
#: Maximum lengths in Unicode code points, where the contract sets none. An edge holds a hundred items in memory, and a
#: larger one would end every walk. The last is that of all other texts.
QUESTION_LENGTH: Final = 2_000
DESCRIPTION_LENGTH: Final = 100_000
TEXT_LENGTH: Final = 1_000
#: The same for a category's name and slug, and the most categories of a market.
CATEGORY_LENGTH: Final = 100
CATEGORIES_MAX: Final = 20
#: The longest title of a question and label of one of its members, and the most members that it has.
TITLE_LENGTH: Final = 500
LABEL_LENGTH: Final = 100
MEMBERS_MAX: Final = 1_000
#: The greatest integer, and the least when negated, that every reader of JSON keeps as it is.
EXACT_INTEGER: Final = 2**53 - 1
#: Maximum length of `q`, in Unicode code points.
Q_LENGTH: Final = 100
#: Maximum length of a request's path and query together, as sent. The longest that a reader needs has some 2,600
#: characters: a `q` and a category of 100 characters, twelve for each when encoded, and a cursor.
TARGET_LENGTH: Final = 4000

Price = Annotated[float, Field(ge=PRICE_MIN, le=PRICE_MAX)]
CategoryName = Annotated[
    str,
    StringConstraints(max_length=CATEGORY_LENGTH),
    AfterValidator(forms.is_not_blank),
    AfterValidator(forms.has_no_control_character),
]
_Plain = AfterValidator(forms.has_no_control_but_breaks)
QuestionText = Annotated[str, StringConstraints(max_length=QUESTION_LENGTH), _Plain]
Description = Annotated[str, StringConstraints(max_length=DESCRIPTION_LENGTH), _Plain]
Text = Annotated[str, StringConstraints(max_length=TEXT_LENGTH), _Plain]
#: Of a market that was validated, maybe by a version with other bounds: a takedown reads what is published.
KnownQuestion = Annotated[str, Field(json_schema_extra={"maxLength": QUESTION_LENGTH})]
IfPresent = Field(exclude_if=lambda value: value is None)
#: Fields of the extended variant; None is omitted on the wire.
ExtraText = Annotated[Text | None, IfPresent]
ExtraSlug = Annotated[Annotated[str, StringConstraints(max_length=slugs.REFERENCE_LENGTH)] | None, IfPresent]
ExtraName = Annotated[CategoryName | None, IfPresent]
ExtraNames = Annotated[Annotated[list[CategoryName], Field(max_length=CATEGORIES_MAX)] | None, IfPresent]
#: The properties of those types, which the core variant's OpenAPI document must not mention.
EXTENDED_PROPERTIES: Final = frozenset(["slug", "category", "categories", "creationSource", "sponsor"])


class Wire(BaseModel):
    """Base of the resources: snake_case in Python, camelCase on the wire; strict, built from attributes."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        allow_inf_nan=False,
        frozen=True,
        from_attributes=True,
        strict=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


class Closed(Wire):
    """A resource that the contract closes to additional properties."""

    model_config = ConfigDict(extra="forbid")


class MarketFields(Wire):
    """The fields that list items and the detail's market share.

    Neither is a subclass of the other: pydantic returns instances of a subclass unchanged, extra fields included.
    """

    id: Uuid
    question: QuestionText
    status: MarketStatus
    prob: Probability
    volume: NonNegative
    close_time: Timestamp
    resolution: Resolution | None
    created_at: Timestamp
    resolved_at: Timestamp | None
    last_activity_at: Timestamp
    trader_count: Count
    fills24h: Count = Field(alias="fills24h")
    accepting_bets: bool
    slug: ExtraSlug = None
    category: ExtraName = None
    categories: ExtraNames = None


class PublicMarketListItem(MarketFields):
    """A market, as lists show it (contract §2.3)."""


class FxFamilyMember(Closed):
    """Membership of a public FX family (contract §2.5)."""

    title: Text
    instrument: Text
    source: Text
    week_start: Day
    week_end: Day
    threshold_value: float
    direction: Direction


class PublicMarketDetailMarket(MarketFields):
    """A market, as its detail, the dump and the change feed show it (contract §2.4)."""

    description: Description | None
    pool_yes: NonNegative
    pool_no: NonNegative
    trading_pause_reason: Text | None
    fx_family_member: FxFamilyMember | None
    creation_source: ExtraText = None
    sponsor: ExtraText = None


class OrderBookLevel(Closed):
    """The public open orders at one price (contract §2.7)."""

    price: Price
    amount: NonNegative


class OrderBook(Closed):
    """Public bids and asks, best price first (contract §2.6)."""

    bids: list[OrderBookLevel]
    asks: list[OrderBookLevel]


class PublicRecentFill(Closed):
    """A trade, without who made it (contract §2.8)."""

    id: Uuid
    amount: NonNegative
    shares: NonNegative
    price: Price | None
    timestamp: Timestamp


class ProbabilityPoint(Closed):
    """A point of the probability history (contract §2.9)."""

    timestamp: Timestamp
    prob: Probability


class PublicMarketSignal(Closed):
    """A market in the snapshot (contract §2.10)."""

    id: Uuid
    question: KnownQuestion
    prob: Probability
    volume: NonNegative
    close_time: Timestamp
    created_at: Timestamp
    last_activity_at: Timestamp
    trader_count: Count
    fills24h: Count = Field(alias="fills24h")


class PublicMarketList(Closed):
    """A page of a list (contract §4.1)."""

    items: list[PublicMarketListItem]
    next_cursor: str | None


class PublicMarketSnapshot(Closed):
    """Small groups of open markets, for a landing page (contract §4.2)."""

    fresh_markets: list[PublicMarketSignal]
    closing_soon_markets: list[PublicMarketSignal]


class PublicMarketDetail(Closed):
    """A market with its order book, latest trades and history (contract §4.3)."""

    market: PublicMarketDetailMarket
    order_book: OrderBook
    recent_fills: list[PublicRecentFill]
    prob_history: list[ProbabilityPoint]


class ErrorDetail(Closed):
    """One offending parameter (contract §2.11)."""

    path: list[str]
    message: str


class ErrorResponse(Closed):
    """Every error body (contract §2.11, §7)."""

    error: str
    details: list[ErrorDetail] | None = Field(default=None, exclude_if=lambda details: details is None)


#: Seconds that a 503 asks readers to wait; most failures of a store are short.
UNAVAILABLE_PAUSE: Final = 10

#: Names the request itself in the details of a 400, where no parameter is at fault.
REQUEST: Final = "request"

_START_AGAIN: Final = "; start again from the first page, without a cursor"
_FOREIGN_CURSOR: Final = "is not a cursor of this list, with its {}" + _START_AGAIN
#: The 400 message for each parameter, in the order in which they are listed, and by a suffix for each of its faults.
#: None quotes the request. Readers may compare those for `cursor`.
PARAMETER_ERRORS: Final[dict[str, str]] = {
    "status": f"must be one of {', '.join(STATUS_FILTERS)}, given once",
    "sort": f"must be one of {', '.join(SORTS)}, given once",
    "limit": f"must be an integer from {LIMIT_MIN} to {LIMIT_MAX}, given once",
    "cursor": "must be a nextCursor exactly as it was given, once" + _START_AGAIN,
    "cursor.foreign": _FOREIGN_CURSOR.format("status and sort"),
    "cursor.gone": "has expired, or its pages were withdrawn" + _START_AGAIN,
    "category": "this deployment has no list for it; leave it out",
    "q": "is not offered by this deployment; leave it out",
    "marketId": "must be a UUID",
    REQUEST: f"must be well-formed HTTP, with a path and query of at most {TARGET_LENGTH} characters, "
    "and without a body or a range",
}
#: The same in the extended variant, whose path parameter has another name (contract §4.3).
EXTENDED_ERRORS: Final[dict[str, str]] = {
    **{name: sentence for name, sentence in PARAMETER_ERRORS.items() if name != "marketId"},
    "cursor.foreign": _FOREIGN_CURSOR.format("status, sort and category"),
    "category": "must be the name, as items show it, or the slug of a category that has lists here, given once",
    "q": "search is not offered here: there is no index, or this edge cannot read one; leave it out",
    "marketRef": "must be a UUID or a slug",
}


#: The same where there is a search index.
SEARCH_ERRORS: Final[dict[str, str]] = {
    **EXTENDED_ERRORS,
    "cursor.foreign": _FOREIGN_CURSOR.format("status, sort, category and q"),
    "q": f"must have a letter or a digit, and at most {Q_LENGTH} characters, given once",
    "q.absent": "cannot be answered yet, as nothing is indexed; leave it out",
    "q.words": "has more different words than one search looks up; leave some of them out",
}


#: The faults of requests for questions, by the path's parameter in both variants; `q` finds none where it is offered.
QUESTION_ERRORS: Final[dict[str, str]] = {
    "questionId": PARAMETER_ERRORS["marketId"],
    "questionRef": EXTENDED_ERRORS["marketRef"],
    "q.questions": "finds markets only; leave it out",
}


def question_errors(*, can_search: bool = False) -> dict[str, str]:
    """What `parameter_errors` has besides where there are questions, but for the path's parameter."""
    return {"q.questions": QUESTION_ERRORS["q.questions"]} if can_search else {}


def parameter_errors(variant: Variant, *, can_search: bool = False) -> dict[str, str]:
    """The 400 message for each parameter of this variant, and for each `parameter.fault`."""
    if can_search:
        return SEARCH_ERRORS
    return EXTENDED_ERRORS if variant == "extended" else PARAMETER_ERRORS


def market_parameter(variant: Variant) -> str:
    """The name of the path parameter that identifies the market."""
    return "marketRef" if variant == "extended" else "marketId"


def question_parameter(variant: Variant) -> str:
    """The name of the path parameter that identifies the question."""
    return "questionRef" if variant == "extended" else "questionId"


def invalid(*faults: str, variant: Variant = "core", can_search: bool = False) -> ErrorResponse:
    """The 400 body for these keys of `parameter_errors`."""
    sentences = parameter_errors(variant, can_search=can_search) | QUESTION_ERRORS
    details = [ErrorDetail(path=[fault.partition(".")[0]], message=sentences[fault]) for fault in faults]
    return ErrorResponse(error="invalid request", details=details)


#: The error bodies that do not depend on the request, by HTTP status. 400 is for what is refused unread.
FIXED_ERRORS: Final[dict[int, ErrorResponse]] = {
    400: invalid(REQUEST),
    404: ErrorResponse(error="not found"),
    405: ErrorResponse(error="method not allowed"),
    429: ErrorResponse(error="too many requests"),
    503: ErrorResponse(error="temporarily unavailable"),
}


def encode(value: Any) -> bytes:
    """Encode a wire model or plain JSON values as compact UTF-8 JSON. The only serialiser of published bytes."""
    return to_json(value, by_alias=True)
