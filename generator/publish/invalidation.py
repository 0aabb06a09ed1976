"""The copies that a CDN holds, ended after a withdrawal: by CloudFront's API, or by a command of the owner's."""

import secrets
import subprocess
from typing import Final

from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import StoreError

#: CloudFront keys its copies by the rewritten path, which may have a prefix; one wildcard counts as one path.
_EVERYTHING: Final = "/*"
#: Less than a lease, which is not renewed meanwhile.
_TIMEOUT_S: Final = 120


def are_known(config: Config) -> bool:
    """Whether there is a CDN that can be told."""
    return bool(config.publish.cloudfront_distribution or config.publish.purge_command)


def invalidate(config: Config) -> None:
    """Have every copy forgotten, or raise StoreError."""
    if config.publish.cloudfront_distribution:
        _invalidate_cloudfront(config.publish.cloudfront_distribution)
    if config.publish.purge_command:
        _run([*config.publish.purge_command, f"{config.base_url}/{API_VERSION}/"])


def _invalidate_cloudfront(distribution: str) -> None:
    # boto3 takes a third of a second to import, which runs that withdraw nothing need not pay.
    import boto3  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        # CloudFront is one for all regions, and answers from this one.
        boto3.client("cloudfront", region_name="us-east-1").create_invalidation(
            DistributionId=distribution,
            InvalidationBatch={
                "Paths": {"Quantity": 1, "Items": [_EVERYTHING]},
                "CallerReference": secrets.token_hex(16),
            },
        )
    except (BotoCoreError, ClientError) as error:
        raise StoreError(
            f"publish.cloudfront_distribution {distribution}: {error}; copies of what was withdrawn may live on there. "
            "allow cloudfront:CreateInvalidation, then run publish again"
        ) from error


def _run(command: list[str]) -> None:
    try:
        subprocess.run(  # noqa: S603 - the owner's own
            command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or "").strip().splitlines()[-1:] or ["it said nothing"]
        raise _failed(command, f" ended with {error.returncode} ({last[0]})") from error
    except subprocess.TimeoutExpired as error:
        raise _failed(command, f" did not end within {_TIMEOUT_S} s") from error
    except OSError as error:
        raise _failed(command, f": {(error.strerror or str(error)).lower()}") from error


def _failed(command: list[str], what: str) -> StoreError:
    return StoreError(
        f"publish.purge_command: {command[0]}{what}; copies of what was withdrawn may live on in the CDN. "
        "mend it, then run publish again"
    )
