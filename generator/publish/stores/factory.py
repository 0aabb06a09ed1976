"""Opens the configured store, and imports only the modules it needs."""

from pathlib import Path
from typing import Final

from generator.api import keys
from generator.config.settings import Config
from generator.errors import ConfigError
from generator.publish.lease import longest_request
from generator.publish.stores.directory import Directory
from generator.publish.stores.store import SingleWriter, Store

_NO_TARGET: Final = "publish.target: is not set; set it to s3://bucket/prefix or a directory"


def open_store(config: Config) -> Store:
    """Open `publish.target`, without a request to it."""
    store = _open(config)
    return SingleWriter(store) if config.publish.single_writer else store


def _open(config: Config) -> Store:
    publish = config.publish
    if publish.target is None:
        raise ConfigError(_NO_TARGET)
    bucket = publish.bucket()
    if bucket is None:
        return Directory(_outside_output(Path(publish.target), config.output))
    # boto3 takes as long to import as everything else together, and most commands need no bucket.
    from generator.publish.stores.s3 import Bucket, RequestOptions  # noqa: PLC0415

    options = RequestOptions(keys.immutable_control(config), longest_request(publish.lease))
    return Bucket(*bucket, endpoint_url=publish.endpoint_url, client=publish.client, options=options)


def _outside_output(directory: Path, output: Path) -> Path:
    """Refuse a directory in the output folder: builds and publishes would overwrite each other's manifest."""
    if directory.resolve().is_relative_to(output.resolve()):
        raise ConfigError(
            f"publish.target: {directory} is in the output folder; choose a directory elsewhere, or let the web server "
            "serve the output folder itself, without publishing"
        )
    return directory
