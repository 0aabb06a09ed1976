"""How JSON values become the objects of `models`; `decoded` raises AnswerError with the path of what is wrong."""

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date, datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from public_markets_client.errors import AnswerError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Extensible:
    """The base of all objects; `json` has the values as they came, those included that the client does not know."""

    json: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def extra(self) -> dict[str, Any]:
        """What this version of the client does not know, by its name in JSON."""
        known = {key for _, key, *_ in _properties(type(self))}  # type: ignore[arg-type]
        return {key: value for key, value in self.json.items() if key not in known}


@cache
def _properties(cls: Any) -> list[tuple[str, str, Any, bool]]:
    """Of each property: its name here and in JSON, its type, and whether it is always there."""
    hints, known = get_type_hints(cls), [one for one in fields(cls) if one.name != "json"]
    return [(one.name, wire_name(one.name), hints[one.name], one.default is MISSING) for one in known]


def decoded(cls: Callable[..., T], values: Any, path: str = "") -> T:
    """The object that these JSON values describe; raise AnswerError if a property is missing or of another type."""
    _plain(dict, values, path)
    given = dict[str, Any]()
    for name, key, hint, is_required in _properties(cls):
        if key in values:
            given[name] = _value(hint, values[key], f"{path}.{key}" if path else key)
        elif is_required:
            raise AnswerError(f"{key} is missing", path=path)
    return cls(**given, json=values)


def wire_name(name: str) -> str:
    """The name of a field in JSON: closeTime for close_time."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _value(hint: Any, value: Any, path: str) -> Any:
    """A value of this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return None if value is None else _value(arguments[0], value, path)
    if origin is tuple:
        return tuple(_value(arguments[0], one, f"{path}.{at}") for at, one in enumerate(_plain(list, value, path)))
    if origin is not None:
        return {key: _value(arguments[1], one, f"{path}.{key}") for key, one in _plain(dict, value, path).items()}
    if hint in {datetime, date}:
        try:
            # Python 3.10 does not know Z.
            return hint.fromisoformat(_plain(str, value, path).replace("Z", "+00:00"))
        except ValueError:
            raise AnswerError(f"must be a {hint.__name__}", path=path) from None
    return _plain(hint, value, path) if hint in {str, int, float, bool} else decoded(hint, value, path)


def _plain(kind: type[Any], value: Any, path: str) -> Any:
    if kind is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise AnswerError("is out of range", path=path) from None
    if type(value) is not kind:
        raise AnswerError(f"must be of type {kind.__name__}", path=path)
    return value
