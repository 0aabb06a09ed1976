"""The rendering of a part as a call that can be sent to another machine, without the build's credentials."""

import os
from dataclasses import dataclass, replace

from generator.builder import part_rendering
from generator.builder.part_rendering import RenderedPart, Task
from generator.config import loader
from generator.config.settings import Config, Source, variable
from generator.errors import ConfigError
from generator.markets.quarantine import Quarantine
from generator.source.reader import open_reader

_URL = "source.url"


@dataclass(frozen=True)
class RemotePart:
    """Renders a part, as the build's database shows it at `instant`. The address of that is the worker's own."""

    task: Task
    instant: str

    @classmethod
    def of(cls, task: Task, instant: str) -> "RemotePart":
        """Leave out all settings but those that shape what is read."""
        return cls(replace(task, config=shared(task.config)), instant)

    def __call__(self) -> RenderedPart:
        """Render it. A connection of its own ends with it, so no worker holds a transaction open."""
        config = _with_own_source(self.task.config)
        with open_reader(config, Quarantine(), self.instant) as reader:
            return part_rendering.render(replace(self.task, config=config), reader.reporting_to)


@dataclass(frozen=True)
class RemoteCheck:
    """Fails where a part could not be rendered: a worker must see the same instant of the same database."""

    config: Config
    instant: str

    def __call__(self) -> None:
        """Open the database."""
        with open_reader(_with_own_source(self.config), Quarantine(), self.instant):
            pass


def shared(config: Config) -> Config:
    """The settings that shape what is read, and no other: none that names a credential."""
    return Config(
        variant=config.variant,
        search=config.search,
        fills_window_step=config.fills_window_step,
        detail=config.detail,
        source=Source(schema=config.source.schema_),
    )


def _with_own_source(config: Config) -> Config:
    url = loader.from_environment(_URL, os.environ)
    if not url:
        raise ConfigError(f"{variable(_URL)} is not set; set it in the environment of every worker")
    source = Source.model_validate({"url": url, "schema": config.source.schema_})
    return config.model_copy(update={"source": source})
