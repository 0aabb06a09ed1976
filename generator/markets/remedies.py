"""The remedy for each rule that rows may break. Pure."""

from typing import Final

#: By how the rule begins, as `row_validation` and pydantic word it.
_REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    ("must not be NULL", "fill it in, or give it a value in a view"),
    ("not a UUID", "give each row a UUID in a view, such as a keyed hash of its own key"),
    ("not a time such as", "correct it, or convert it to a timestamp in a view"),
    ("not a time between", "correct it"),
    ("not a date", "correct it, or cast it to a date in a view"),
    ("not a number", "cast it to a number in a view"),
    ("not a whole number", "correct it, or round it in a view"),
    ("input should be a finite number", "correct it, or make it NULL or leave the row out in a view"),
    ("too large a number", "correct it"),
    ("the sum at its price", "correct the amounts"),
    ("input should be greater", "correct it"),
    ("input should be less", "correct it, or convert it in a view (0.45 rather than 45)"),
    ("input should be '", "map your words to these in a view"),
    ("neither bid nor ask", "map your words to bid and ask in a view"),
    ("not a text", "cast it to text in a view"),
    ("not valid Unicode", "correct its encoding"),
    ("string should have at most", "shorten it, or cut it in a view"),
    ("is empty", "name it, or leave the row out in a view"),
    ("holds a control character", "remove the character, or replace it in a view"),
    ("has the form of another category's slug", "rename it"),
    ("another category has the same slug", "rename it"),
    ("the market has it already", "keep each category once per market"),
    ("the market has as many", "leave out the least important ones in a view"),
    ("the market is a member", "keep one public membership per market"),
    ("another fill has the same", "make ids unique; a join in a view may repeat rows"),
    ("several markets have the same", "make ids unique; a join in a view may repeat rows"),
)
_ANY: Final = "correct it in the database or in a view"


def of(rule: str) -> str:
    """What to do about rows that break the rule."""
    return next((remedy for beginning, remedy in _REMEDIES if rule.startswith(beginning)), _ANY)
