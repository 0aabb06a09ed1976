"""Opens the store that a configuration names. What is not opened is not imported."""

from pathlib import Path
from typing import Final

from generator.config.settings import Config
from generator.errors import ConfigError
from generator.publish.stores.directory import Directory
from generator.publish.stores.store import SingleWriter, Store

_NOWHERE: Final = "publish.target: is not set; say where to publish to, as s3://bucket/prefix or a directory"


def open_store(config: Config) -> Store:
    """Open `publish.target`. Nothing is asked of the store yet."""
    store = _open(config)
    return SingleWriter(store) if config.publish.single_writer else store


def _open(config: Config) -> Store:
    publish = config.publish
    if publish.target is None:
        raise ConfigError(_NOWHERE)
    place = publish.bucket()
    if place is None:
        return Directory(_apart(Path(publish.target), config.output))
    # boto3 takes as long to import as everything else together, and most commands need no bucket.
    from generator.publish.stores.s3 import Bucket  # noqa: PLC0415

    return Bucket(*place, endpoint_url=publish.endpoint_url, client=publish.client)


def _apart(directory: Path, output: Path) -> Path:
    """Refuse a directory in which builds and publications would replace each other's records."""
    if directory.resolve().is_relative_to(output.resolve()):
        raise ConfigError(
            f"publish.target: {directory} lies in the output folder, which a web server of one's own can serve as it "
            "is; choose a directory elsewhere, or leave publishing away"
        )
    return directory
