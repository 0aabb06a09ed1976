"""The settings of dumps, change feed and feeds."""

from typing import Literal

from pydantic import Field

from generator.config.scalars import WebUrl
from generator.config.section import Section


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
    histories: Literal["thinned", "full"] = Field(
        "thinned",
        description="What Parquet has: what details show, or full, every point and trade, and candles; "
        "trades can tell who traded.",
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
