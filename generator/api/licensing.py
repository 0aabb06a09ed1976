"""Under which licence the data is published, and by whom, as readers are told. Pure."""

from typing import Annotated, Final, Self

from pydantic import WithJsonSchema

from generator.api import contract
from generator.api.contract import Closed, IfPresent
from generator.config.licensing import License
from generator.config.scalars import Line, WebUrl
from generator.config.settings import Config

_SPDX: Final = "https://spdx.org/licenses/"


class Publisher(Closed):
    """Who publishes the data."""

    name: Line
    url: Annotated[Annotated[WebUrl, WithJsonSchema({"type": "string", "format": "uri"})] | None, IfPresent] = None

    @classmethod
    def of(cls, config: Config) -> Self | None:
        """The publisher of a site; None if it does not tell."""
        name = config.publisher.shown_name
        return cls(name=name, url=config.publisher.url) if name else None


class Licensing(Closed):
    """The licence of the data, and who publishes it; what a site does not tell is absent."""

    license: Annotated[License | None, IfPresent] = None
    publisher: Annotated[Publisher | None, IfPresent] = None

    @classmethod
    def of(cls, config: Config) -> Self:
        """What a site tells."""
        return cls(license=config.license, publisher=Publisher.of(config))

    def stated(self) -> str:
        """The same as JSON; '' if nothing is told."""
        return contract.encode(self).decode() if self.license or self.publisher else ""


def address(license: str) -> str:  # noqa: A002 - that is what it is
    """Where a licence can be read."""
    return license if "://" in license else _SPDX + license.removesuffix("+")


def told(license: str) -> str:  # noqa: A002
    """A licence for people: its identifier, if it has one, and its address."""
    return license if address(license) == license else f"{license} ({address(license)})"


def in_openapi(license: str) -> dict[str, str]:  # noqa: A002
    """The licence as OpenAPI has it, which wants a name."""
    return {"name": license, "url" if address(license) == license else "identifier": license}
