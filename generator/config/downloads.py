"""The settings of what readers take away or follow: dumps, change feed, feeds."""

from string import Formatter
from typing import Annotated

from pydantic import AfterValidator, Field

from generator.config.scalars import Line, WebUrl
from generator.config.section import Section


def _market_url(template: str) -> str:
    fields = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    if not template.startswith(("https://", "http://")) or not fields or {*fields} - {"id", "slug"}:
        raise ValueError("write an address with {id} or {slug} in it, such as https://example.org/markets/{id}")
    return template


class Dumps(Section):
    """Files with all listed markets, to take away."""

    ndjson: bool = Field(
        default=True,
        description="Whether to publish all markets as compressed NDJSON; Parquet and change feed need it.",
    )
    parquet: bool = Field(
        default=False,
        description="Whether to publish Parquet, too: markets, and once a day histories; needs the extra parquet.",
    )
    base_url: WebUrl | None = Field(
        None, description="Address that serves the files of dumps and change feed, if not base_url; null: base_url."
    )


class Changes(Section):
    """The change feed: what changed from build to build."""

    enabled: bool = Field(default=True, description="Whether to publish the change feed.")


class Feeds(Section):
    """Atom and JSON Feed of new markets and of resolved ones."""

    enabled: bool = Field(default=True, description="Whether to publish feeds.")
    market_url: Annotated[Line, AfterValidator(_market_url)] | None = Field(
        None,
        description="Address of a market's page, with {id} or {slug} in it; null: the API's of the market.",
    )
