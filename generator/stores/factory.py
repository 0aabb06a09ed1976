"""Opens the configured store, and imports only the modules it needs."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import ConfigError
from generator.stores.directory import Directory
from generator.stores.store import SingleWriter, Store

#: How a store's host begins after the name of a bucket; other hosts may begin with the bucket's name by chance.
_STORE_HOSTS: Final = ("s3.", "s3-", "storage.googleapis.com")
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
        require_directory(config)
        return Directory(Path(publish.target))
    if publish.endpoint_url:
        _require_endpoint_alone(publish.endpoint_url, bucket[0])
    # boto3 takes as long to import as everything else together, and most commands need no bucket.
    from generator.stores.s3 import Bucket, RequestOptions  # noqa: PLC0415

    options = RequestOptions(keys.immutable_control(config))
    return Bucket(*bucket, endpoint_url=publish.endpoint_url, client=publish.client, options=options)


def require_directory(config: Config) -> None:
    """Raise ConfigError if the target is a directory that overlaps the output folder, or is probably a mistake."""
    target, output = config.publish.target, config.output.resolve()
    if target is None or config.publish.bucket():
        return
    directory = Path(target)
    if directory.resolve().is_relative_to(output):
        # Builds and publishes would overwrite each other's manifest.
        raise ConfigError(
            f"publish.target: {directory} is in the output folder; choose a directory elsewhere, or let the web server "
            "serve the output folder itself, without publishing"
        )
    for place in (API_VERSION, keys.STATES):
        if output.is_relative_to(directory.resolve() / place):
            # `--verify` would delete the folder as unknown objects.
            raise ConfigError(
                f"output: {config.output} is in {directory / place}, which is for published objects and states only; "
                "choose another output folder, or another publish.target"
            )
    _require_deliberate(directory, target)


def _require_deliberate(directory: Path, target: str) -> None:
    """Raise ConfigError for a name such as `markets/api` that is not a directory yet: it may be meant as a bucket."""
    is_plain = target.partition("/")[0] not in ("", ".", "..")
    # A file in its way is reported when it is used.
    if is_plain and not directory.exists() and not any(parent.is_file() for parent in directory.parents):
        raise ConfigError(
            f"publish.target: there is no directory {target} in {Path.cwd()}; write s3://bucket/prefix for a bucket, "
            f"or ./{target} for a directory to create"
        )


def _require_endpoint_alone(endpoint: str, bucket: str) -> None:
    """Raise ConfigError for an endpoint that also names the bucket: every key would begin with the bucket's name."""
    url = urlsplit(endpoint)
    host = url.netloc.removeprefix(f"{bucket}.")
    is_in_host = host != url.netloc and host.startswith(_STORE_HOSTS)
    path = url.path.removesuffix(f"/{bucket}")
    if is_in_host or path != url.path:
        alone = urlunsplit(url._replace(netloc=host if is_in_host else url.netloc, path=path))
        raise ConfigError(
            f"publish.endpoint_url: names the bucket {bucket}, which publish.target names already; write {alone}"
        )
