"""The rendering of a part as a call that can be sent to another machine; it holds no credentials."""

import os
from dataclasses import dataclass, replace

from generator.builder import part_rendering, remote_result
from generator.builder.part_rendering import Task
from generator.config import loader
from generator.config.settings import Config, Source, variable
from generator.errors import ConfigError
from generator.markets.quarantine import Quarantine
from generator.models import replaced
from generator.source.reader import open_reader

_URL = "source.url"


@dataclass(frozen=True)
class RemotePart:
    """Renders a part as the database shows it at `instant`; the worker's environment has the database's address."""

    task: Task
    instant: str

    @classmethod
    def of(cls, task: Task, instant: str) -> "RemotePart":
        """Make the call, with only those settings that shape what is read."""
        return cls(replace(task, config=shared(task.config)), instant)

    def __call__(self) -> bytes:
        """Render it over a connection of its own, so that no worker holds a transaction open afterwards; encode it."""
        config = _with_own_source(self.task.config)
        with open_reader(config, Quarantine(), self.instant) as reader:
            return remote_result.encoded(part_rendering.render(replace(self.task, config=config), reader.reporting_to))


@dataclass(frozen=True)
class RemoteCheck:
    """Fails on a worker that cannot see the same instant of the same database."""

    config: Config
    instant: str

    def __call__(self) -> bytes:
        """Open the database, and return nothing. Raises ConfigError or SourceError."""
        with open_reader(_with_own_source(self.config), Quarantine(), self.instant):
            return b""


def shared(config: Config) -> Config:
    """Only those settings that shape what is read, none of which is a credential."""
    return Config(
        variant=config.variant,
        search=config.search,
        fills_window_step=config.fills_window_step,
        detail=config.detail,
        texts=config.texts,
        source=Source(schema=config.source.schema_),
    )


def _with_own_source(config: Config) -> Config:
    url = loader.from_environment(_URL, os.environ)
    if not url:
        raise ConfigError(f"{variable(_URL)} is not set; set it in the environment of every worker")
    source = Source.model_validate({"url": url, "schema": config.source.schema_})
    return replaced(config, source=source)
