"""The settings of dumps, change feed and feeds."""

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
    """Files with all listed markets, for download."""

    ndjson: bool = Field(
        default=True,
        description="Whether to publish all markets as compressed NDJSON, which Parquet and change feed need.",
    )
    parquet: bool = Field(
        default=False,
        description="Whether to publish Parquet, too, with histories and fills once a day; needs the extra parquet.",
    )
    base_url: WebUrl | None = Field(
        None, description="Other address that serves the files of dumps and change feed; null: base_url."
    )


class Changes(Section):
    """The change feed: what changed from build to build."""

    enabled: bool = Field(default=True, description="Whether to publish the change feed.")


class Feeds(Section):
    """Atom and JSON Feeds of new and resolved markets."""

    enabled: bool = Field(default=True, description="Whether to publish feeds.")
    market_url: Annotated[Line, AfterValidator(_market_url)] | None = Field(
        None,
        description="Address of a market's page, with {id} or {slug} in it; null: the market in the API.",
    )
