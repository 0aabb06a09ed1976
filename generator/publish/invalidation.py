"""Invalidates the CDN after a withdrawal: through CloudFront's API, or by a command the operator configured."""

import os
import secrets
import subprocess
from typing import Final

from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import StoreError

#: CloudFront caches by the rewritten path, which may have a prefix; one wildcard counts as one path.
_EVERYTHING: Final = "/*"
#: Shorter than a lease, which is not renewed in the meantime.
_TIMEOUT_S: Final = 120
#: What the purge command inherits: where things are, locale, proxies, and its own secrets. Never those of the database
#: and the store, which a program that talks to a CDN has no use for.
_INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
_INHERITED_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_INHERITED_PREFIXES: Final = ("LC_", "PURGE_")


def is_configured(config: Config) -> bool:
    """Whether there is a CDN to invalidate."""
    return bool(config.publish.cloudfront_distribution or config.publish.purge_command)


def invalidate(config: Config) -> None:
    """Invalidate all cached copies; raise StoreError if that fails."""
    if config.publish.cloudfront_distribution:
        _invalidate_cloudfront(config.publish.cloudfront_distribution)
    if config.publish.purge_command:
        _run([*config.publish.purge_command, f"{config.base_url}/{API_VERSION}/"])


def _invalidate_cloudfront(distribution: str) -> None:
    # boto3 takes a third of a second to import, and most runs withdraw nothing.
    import boto3  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        # CloudFront is global, and its API is in this region.
        boto3.client("cloudfront", region_name="us-east-1").create_invalidation(
            DistributionId=distribution,
            InvalidationBatch={
                "Paths": {"Quantity": 1, "Items": [_EVERYTHING]},
                "CallerReference": secrets.token_hex(16),
            },
        )
    except (BotoCoreError, ClientError) as error:
        raise StoreError(
            f"publish.cloudfront_distribution {distribution}: {error}; copies of withdrawn markets may remain there; "
            "allow cloudfront:CreateInvalidation, then run publish again"
        ) from error


def _run(command: list[str]) -> None:
    try:
        subprocess.run(  # noqa: S603 - the operator's own
            command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S,
            env=_environment(),
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or "").strip().splitlines()[-1:] or ["no output"]
        raise _failed(command, f" ended with {error.returncode} ({last[0]})") from error
    except subprocess.TimeoutExpired as error:
        raise _failed(command, f" did not end within {_TIMEOUT_S} s") from error
    except OSError as error:
        raise _failed(command, f": {(error.strerror or str(error)).lower()}") from error


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.upper() in _INHERITED_PROXIES or name.startswith(_INHERITED_PREFIXES)
    }


def _failed(command: list[str], what: str) -> StoreError:
    return StoreError(
        f"publish.purge_command: {command[0]}{what}; copies of withdrawn markets may remain in the CDN; "
        "fix the command, then run publish again"
    )
