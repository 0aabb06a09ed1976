"""How JSON values become the objects of `models`; `decoded` raises AnswerError with the path of what is wrong."""

import re
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import date, datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from public_markets_client.errors import AnswerError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Extensible:
    """The base of all objects; `json` has the values as they came, those included that the client does not know."""

    json: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @property
    def extra(self) -> dict[str, Any]:
        """What this version of the client does not know, by its name in JSON."""
        known = {key for _, key, *_ in properties(type(self))}  # type: ignore[arg-type]
        return {key: value for key, value in self.json.items() if key not in known}

    def to_dict(self) -> dict[str, Any]:
        """The values by their names in Python, times as `datetime`, and objects in it as such dictionaries."""
        return asdict(self, dict_factory=lambda pairs: {name: value for name, value in pairs if name != "json"})


@cache
def properties(cls: Any) -> list[tuple[str, str, Any, bool]]:
    """Of each property: its name here and in JSON, its type, and whether it is always there."""
    hints, known = get_type_hints(cls), [one for one in fields(cls) if one.name != "json"]
    return [(one.name, wire_name(one.name), hints[one.name], one.default is MISSING) for one in known]


def decoded(cls: Callable[..., T], values: Any, path: str = "") -> T:
    """The object that these JSON values describe; raise AnswerError if a property is missing or of another type."""
    plain(dict, values, path)
    given = dict[str, Any]()
    for name, key, hint, is_required in properties(cls):
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
        return tuple(_value(arguments[0], one, f"{path}.{at}") for at, one in enumerate(plain(list, value, path)))
    if origin is not None:
        return {key: _value(arguments[1], one, f"{path}.{key}") for key, one in plain(dict, value, path).items()}
    if hint in {datetime, date}:
        try:
            # Python 3.10 does not know Z.
            return hint.fromisoformat(plain(str, value, path).replace("Z", "+00:00"))
        except ValueError:
            raise AnswerError(f"must be a {hint.__name__}", path=path) from None
    return plain(hint, value, path) if hint in {str, int, float, bool} else decoded(hint, value, path)


def plain(kind: type[Any], value: Any, path: str) -> Any:
    """The value, if it is of this kind; raise AnswerError if not. A whole number is a float, too."""
    if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    if type(value) is not kind:
        raise AnswerError(f"must be of type {kind.__name__}", path=path)
    return value
