"""The settings that say under which licence the data may be used, and who publishes it."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, WithJsonSchema

from generator.config.scalars import Line, Section, WebUrl, web_url

#: What an identifier is made of (SPDX 2.3, annex D).
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9.-]+\+?")
_OWN: Final = "licenseref-"


def checked(text: str) -> str:
    """The identifier as SPDX spells it, or the address as it stands, which may end with a slash; else ValueError."""
    if "://" in text:
        web_url(text.partition("#")[0])
        return text
    # Only who names a licence waits for the list of all.
    from packaging import licenses  # noqa: PLC0415

    if _IDENTIFIER.fullmatch(text) and not text.lower().startswith(_OWN):
        try:
            return licenses.canonicalize_license_expression(text)
        except licenses.InvalidLicenseExpression:
            pass
    raise ValueError(
        "write an identifier of https://spdx.org/licenses, such as CC-BY-4.0, or the http:// or https:// address of "
        "the licence"
    )


License = Annotated[Line, AfterValidator(checked), WithJsonSchema({"type": "string"})]


def _told(name: str) -> str:
    if not name.strip():
        raise ValueError("write a name, or null")
    return name


class PublisherSection(Section):
    """Who publishes the data."""

    name: Annotated[Line, AfterValidator(_told)] | None = Field(
        None, description="Name of who publishes the data, as in citations; null: not told."
    )
    url: WebUrl | None = Field(None, description="Address of who publishes the data; null: not told.")

    @property
    def shown_name(self) -> str | None:
        """The name or, without one, the host of the address; None if nothing is told."""
        return self.name or (urlsplit(self.url).netloc if self.url else None)
