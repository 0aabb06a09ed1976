"""Makes and encodes resources of values that were validated already, in a fraction of the time. Pure."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from generator.api import contract

Resource = TypeVar("Resource", bound=BaseModel)
#: The placeholder of a value.
_PLACES: Final[dict[type, str]] = {str: '"%s"', float: "%s"}


def of_valid(model: type[Resource], values: dict[str, Any]) -> Resource:
    """A resource of valid values for all of its fields, in their order.

    Validating a market again takes thirty times as long, and pydantic's `model_construct` nearly as long.
    """
    made = model.__new__(model)
    # What a model consists of. It is frozen, so it cannot be assigned.
    object.__setattr__(made, "__dict__", values)
    object.__setattr__(made, "__pydantic_fields_set__", _fields(model))
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


@cache
def _fields(model: type[BaseModel]) -> set[str]:
    return {*model.model_fields}


class Table:
    """Encodes lists of objects with these fields, each `str` or `float`, like `contract.encode` in half the time.

    Texts must be plain: ASCII without control characters, quotation marks and backslashes. Numbers may be None.
    """

    def __init__(self, **fields: type[str] | type[float]) -> None:
        self._numbers: Final = [kind is float for kind in fields.values()]
        values = (f'"{name}":{_PLACES[kind]}' for name, kind in fields.items())
        self._object: Final = "{" + ",".join(values) + "},"

    def encode(self, rows: Sequence[Sequence[Any]]) -> bytes:
        """Encode rows, whose values are in the order of the fields."""
        return self.encode_columns([*zip(*rows, strict=True)]) if rows else b"[]"

    def encode_columns(self, columns: Sequence[Sequence[Any]]) -> bytes:
        """Encode rows that are given column by column."""
        width, count = len(self._numbers), len(columns[0])
        values: list[Any] = [None] * (count * width)
        for place, (is_number, column) in enumerate(zip(self._numbers, columns, strict=True)):
            values[place::width] = _numbers(column) if is_number else column
        objects = (self._object * count) % tuple(values)
        return f"[{objects[:-1]}]".encode()


def _numbers(column: Sequence[Any]) -> list[str]:
    return contract.encode(column)[1:-1].decode().split(",")
