"""A folder with one `config.yaml`, and what loading it gives."""

from pathlib import Path
from typing import Any

from generator.config.loader import load
from generator.config.settings import Config
from generator.errors import ConfigError


class Folder:
    """A folder with one `config.yaml`, read as if it were the working directory."""

    def __init__(self, path: Path) -> None:
        self.file = path / "config.yaml"

    def load(self, text: str | bytes = "", *overrides: str, **environ: str) -> Config:
        self.file.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(self.file, overrides=overrides, environ=environ)

    def mistakes(self, text: str | bytes = "", *overrides: str, **environ: str) -> list[str]:
        try:
            self.load(text, *overrides, **environ)
        except ConfigError as error:
            return str(error).replace(str(self.file), "config.yaml").split("\n")
        return []


def value_of(settings_: Config, key: str) -> Any:
    value: Any = settings_
    for name in key.split("."):
        value = getattr(value, "schema_" if name == "schema" else name)
    return value
