"""Copies of frozen models with other values, checked. Pydantic's own `model_copy` takes any name and any value."""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


def replaced(model: Model, **values: Any) -> Model:
    """The model with other values of these fields.

    Raises TypeError for a name that is no field, and for a value that is not of the field's type. What a collection
    holds is not looked at: it may be millions of entries.
    """
    accepts = _fields(type(model))
    for name, value in values.items():
        if name not in accepts:
            raise TypeError(f"{type(model).__name__} has no field {name}")
        if not accepts[name](value):
            raise TypeError(f"{type(model).__name__}.{name} cannot be of type {type(value).__name__}")
    return model.model_copy(update=values)


@cache
def _fields(model: type[BaseModel]) -> dict[str, Callable[[Any], bool]]:
    return {name: _check(field.annotation) for name, field in model.model_fields.items()}


def _check(annotation: Any) -> Callable[[Any], bool]:
    """Tells whether a value is of the annotated type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return lambda _: True
    if origin is Annotated:
        return _check(arguments[0])
    if origin is Literal:
        return lambda value: value in arguments
    if origin in (Union, UnionType):
        checks = [_check(argument) for argument in arguments]
        return lambda value: any(check(value) for check in checks)
    expected = NoneType if annotation is None else origin or annotation
    return lambda value: isinstance(value, expected)
