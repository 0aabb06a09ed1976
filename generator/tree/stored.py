"""Stored JSON: the base of its models, and messages about files that cannot be read. Pure."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from generator.wording import counted


def _aware(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("has no time zone")
    return text


#: A time that can be compared with others.
Instant = Annotated[str, AfterValidator(_aware)]


class StoredModel(BaseModel):
    """Base of all stored JSON: camel case, no unknown keys, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_alias=True, validate_by_name=True
    )


class FormatError(ValueError):
    """A file has another format than the one that this program knows."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"format {found}, this program knows {known}")


class _Format(BaseModel):
    format: int


def require_format(content: bytes, known: int) -> None:
    """Raise FormatError unless a file has the known format, whatever else it holds; ValidationError if it has none."""
    found = _Format.model_validate_json(content).format
    if found != known:
        raise FormatError(found, known)


def fault(error: ValueError, remedy: str) -> str:
    """What is wrong with a file that cannot be read, and what to do; `remedy` is what replaces or restores it."""
    if not isinstance(error, ValidationError):
        return f"{error}; upgrade this program"
    if unknown := _unknown_fields(error):
        written = f"written by a newer version of this program (unknown: {unknown})"
        return f"{written}; run that version, or stay with this one: {remedy}"
    return f"damaged or not this program's ({counted(error.error_count(), 'error')}); {remedy}"


def _unknown_fields(error: ValidationError) -> str:
    """The fields for which a file was refused, comma-separated; empty if anything else is wrong with it.

    Fields are added without a new format, so a newer version wrote such a file.
    """
    found = error.errors(include_url=False, include_input=False)
    is_newer = all(entry["type"] == "extra_forbidden" for entry in found)
    return ", ".join(dict.fromkeys(str(entry["loc"][-1]) for entry in found)) if is_newer else ""
