"""The relations we read, six and two more if the site has questions: every column that is ever selected, and its kind.

A privacy test compares this table with a real schema in both directions: a column not listed here is never read. What
each column means, docs/your-database.md tells.
"""

from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["id", "text", "number", "integer", "boolean", "timestamp", "date"]

#: Every column that a relation must have.
RELATIONS: Final[dict[str, dict[str, Kind]]] = {
    "markets": {
        "id": "id",
        "slug": "text",
        "question": "text",
        "description": "text",
        "status": "text",
        "approval": "text",
        "is_listed": "boolean",
        "prob": "number",
        "volume": "number",
        "pool_yes": "number",
        "pool_no": "number",
        "close_time": "timestamp",
        "resolution": "text",
        "created_at": "timestamp",
        "resolved_at": "timestamp",
        "last_activity_at": "timestamp",
        "trader_count": "integer",
        "trading_pause_reason": "text",
        "creation_source": "text",
        "sponsor": "text",
    },
    "market_categories": {
        "market_id": "id",
        "category": "text",
        "position": "integer",
    },
    "fx_members": {
        "market_id": "id",
        "title": "text",
        "instrument": "text",
        "source": "text",
        "week_start": "date",
        "week_end": "date",
        "threshold_value": "number",
        "direction": "text",
        "is_public": "boolean",
    },
    "orders": {
        "market_id": "id",
        "side": "text",
        "price": "number",
        "amount": "number",
        "is_public": "boolean",
    },
    "fills": {
        "id": "id",
        "market_id": "id",
        "amount": "number",
        "shares": "number",
        "price": "number",
        "created_at": "timestamp",
    },
    "probabilities": {
        "market_id": "id",
        "recorded_at": "timestamp",
        "prob": "number",
    },
}
#: The relations of a site that has questions, and every column that they must have. There are both or neither.
QUESTION_RELATIONS: Final[dict[str, dict[str, Kind]]] = {
    "questions": {
        "id": "id",
        "slug": "text",
        "title": "text",
        "description": "text",
        "kind": "text",
        "approval": "text",
        "is_listed": "boolean",
        "created_at": "timestamp",
        "key": "text",
    },
    "question_members": {
        "question_id": "id",
        "market_id": "id",
        "label": "text",
        "position": "integer",
        "payout": "number",
    },
}
#: Every relation that is ever read.
ALL_RELATIONS: Final = RELATIONS | QUESTION_RELATIONS
#: Columns that a relation may lack, each with the kinds of value that it may hold.
OPTIONAL: Final[dict[str, dict[str, tuple[Kind, ...]]]] = {
    "markets": {
        "detail_version": ("text", "number", "timestamp", "id"),
        "market_version": ("text", "number", "timestamp", "id"),
        "key": ("text", "integer", "id"),
    },
}
