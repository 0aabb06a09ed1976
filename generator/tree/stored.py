"""Stored JSON: the base of its models, and messages about files that cannot be read. Pure."""

import re
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, AliasPath, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from generator import __version__
from generator.wording import counted

#: A version of a release, which can be compared with others.
_RELEASE: Final = re.compile(r"\d+\.\d+\.\d+", re.ASCII)
_DAMAGED: Final = "damaged or not this program's"


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
        self.is_newer = found > known


class _Format(BaseModel):
    format: int


def require_format(content: bytes, known: int, oldest: int | None = None) -> None:
    """Raise FormatError unless a file has the known format, whatever else it holds; ValidationError if it has none.

    Those since the `oldest` are known, too.
    """
    found = _Format.model_validate_json(content).format
    if not (oldest or known) <= found <= known:
        raise FormatError(found, known)


class _Written(BaseModel):
    """What every manifest and record of this program says, whichever version wrote it."""

    format: int
    version: str = Field(validation_alias=AliasChoices("version", AliasPath("built", "version")))


def version_of(content: bytes) -> str:
    """The version that built what a manifest or record describes; empty if it is not this program's."""
    with suppress(ValidationError):
        return _Written.model_validate_json(content).version
    return ""


def cause(error: ValueError, content: bytes) -> str:
    """Why a file with this content could not be read: another version wrote it, or it is damaged."""
    if not isinstance(error, ValidationError):
        return f"{error}{other(version_of(content), '; built by ')}"
    parts = (other(version_of(content)), _unknown_fields(error))
    if found := "; ".join(filter(None, parts)):
        return f"written by another version ({found})"
    return f"{_DAMAGED} ({counted(error.error_count(), 'error')})"


def fault(error: ValueError, content: bytes, remedy: str, moving: str = "") -> str:
    """What is wrong with a file that cannot be read, and what to do (see `remedy_of`)."""
    return f"{cause(error, content)}; {remedy_of(error, content, remedy, moving)}"


def remedy_of(error: ValueError, content: bytes, remedy: str, moving: str = "") -> str:
    """What to do about a file that cannot be read.

    `remedy` is what replaces or restores it; `moving` brings what another version wrote in a known format over to this
    one, if anything does.
    """
    if isinstance(error, FormatError):
        return "upgrade this program" if error.is_newer else "run the version that wrote it"
    if moving and not cause(error, content).startswith(_DAMAGED):
        return f"{moving}, or run that version"
    return remedy


def other(version: str, begin: str = "", end: str = "") -> str:
    """A version that is not this one, and whether it is newer, if both are releases; empty if it is this one."""
    if version in {"", __version__}:
        return ""
    if not (_RELEASE.fullmatch(version) and _RELEASE.fullmatch(__version__)):
        return f"{begin}{version}, this is {__version__}{end}"
    age = "newer" if _parts(version) > _parts(__version__) else "older"
    return f"{begin}{version}, {age} than this, {__version__}{end}"


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _unknown_fields(error: ValidationError) -> str:
    """The fields for which a file was refused, comma-separated; empty if anything else is wrong with it.

    Fields come and go without a new format, so another version wrote such a file.
    """
    found = error.errors(include_url=False, include_input=False)
    is_other = all(entry["type"] == "extra_forbidden" for entry in found)
    unknown = ", ".join(dict.fromkeys(str(entry["loc"][-1]) for entry in found)) if is_other else ""
    return f"unknown: {unknown}" if unknown else ""
