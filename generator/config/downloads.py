"""The settings of dumps, change feed, feeds and history."""

from typing import Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from generator.config.scalars import Section, WebUrl


class Dumps(Section):
    """Files with all listed markets, for download."""

    ndjson: bool = Field(
        default=True,
        description="Whether to publish all markets as compressed NDJSON, which Parquet and change feed need.",
    )
    parquet: bool = Field(
        default=False,
        description="Whether to publish Parquet, too, with all points and candles once a day; needs the extra parquet.",
    )
    fills: bool = Field(
        default=False,
        description="Whether Parquet has all trades, too, from which it can be told who traded.",
    )
    base_url: WebUrl | None = Field(
        None, description="Other address that serves the files of dumps and change feed; null: base_url."
    )
    #: Whatever is written for a key that is gone, so that a build can say so.
    histories: SkipJsonSchema[Any] = Field(None, exclude=True)


class Changes(Section):
    """The change feed: what changed from build to build."""

    enabled: bool = Field(default=True, description="Whether to publish the change feed.")


class Feeds(Section):
    """Atom and JSON Feeds of new and resolved markets."""

    enabled: bool = Field(default=True, description="Whether to publish feeds.")


class PublishedHistory(Section):
    """The figures of the history page: how right probabilities were."""

    public: bool = Field(
        default=False,
        description="Whether to publish v1/history.json: accuracy of all markets that resolved; needs dumps.parquet.",
    )
