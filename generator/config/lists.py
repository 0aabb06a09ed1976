"""Settings that are lists of texts. In an environment variable or after --set they are separated by commas."""

from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from generator.config import networks

_QUOTES: Final = "\"'"


def _listed(value: object) -> object:
    """Split text at commas: a list in an environment variable. As in YAML, it may have brackets and quotes."""
    if not isinstance(value, str):
        return value
    text = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return [_unquoted(item.strip()) for item in text.split(",")] if text.strip() else []


def _unquoted(item: str) -> str:
    is_quoted = len(item) > 1 and item[0] == item[-1] and item[0] in _QUOTES
    return item[1:-1] if is_quoted else item


def _categories(names: list[str]) -> list[str]:
    if not all(name and name.isprintable() for name in names) or len({*names}) < len(names):
        raise ValueError("name each category once, in printable text, as a list or separated by commas")
    if len({name.casefold() for name in names}) < len(names):
        raise ValueError("name each category once: names that differ only in case are the same category")
    return names


Categories = Annotated[
    list[str],
    BeforeValidator(_listed),
    AfterValidator(_categories),
    WithJsonSchema({"type": ["array", "string"], "items": {"type": "string", "minLength": 1}, "uniqueItems": True}),
]
Networks = Annotated[
    list[str],
    BeforeValidator(_listed),
    AfterValidator(networks.checked),
    WithJsonSchema({"type": ["array", "string"], "items": {"type": "string", "minLength": 1}}),
]
