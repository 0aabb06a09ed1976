"""Invalidates the CDN after a withdrawal: through CloudFront's API, or by a command the operator configured."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import StoreError
from generator.publish.commands import CommandError, Runner

#: CloudFront caches by the rewritten path, which may have a prefix; one wildcard counts as one path.
_EVERYTHING: Final = "/*"
#: The longest wait for CloudFront or the command, and how often the lease is looked at meanwhile.
_PATIENCE_S: Final = 15 * 60
_STEP_S: Final = 1.0


def is_configured(config: Config) -> bool:
    """Whether there is a CDN to invalidate."""
    return bool(config.publish.cloudfront_distribution or config.publish.purge_command)


class Cdn:
    """The configured CDN. `keep_lease` is called every `step_s` while waiting; what it raises ends the wait."""

    def __init__(
        self,
        config: Config,
        keep_lease: Callable[[], object],
        *,
        patience_s: float = _PATIENCE_S,
        step_s: float = _STEP_S,
    ) -> None:
        #: Files of downloads may have an address of their own.
        self._places = dict.fromkeys(f"{url}/{API_VERSION}/" for url in (config.base_url, config.files_url))
        self._command = config.publish.purge_command
        self._keep_lease = keep_lease
        self._patience_s = patience_s
        self._step_s = step_s
        distribution = config.publish.cloudfront_distribution
        self._cloudfront = _CloudFront(distribution, next(iter(self._places))) if distribution else None

    def invalidate(self) -> None:
        """Ask for all cached copies to be removed, everywhere; raise StoreError if that fails anywhere."""
        failures = []
        for ask in (self._ask_cloudfront, self._run_command):
            try:
                ask()
            except StoreError as error:
                failures.append(str(error))
        if failures:
            raise StoreError("; ".join(failures))

    def wait(self) -> None:
        """Wait until the last invalidation is complete; raise StoreError if that takes too long."""
        until = time.monotonic() + self._patience_s
        while self._cloudfront and not self._cloudfront.is_complete():
            if time.monotonic() > until:
                raise self._cloudfront.late(self._patience_s)
            time.sleep(self._step_s)
            self._keep_lease()

    def _ask_cloudfront(self) -> None:
        if self._cloudfront:
            self._cloudfront.invalidate()

    def _run_command(self) -> None:
        if self._command:
            for place in self._places:
                _run([*self._command, place], Runner("PURGE_", self._patience_s, self._step_s, self._keep_lease))


class _CloudFront:
    def __init__(self, distribution: str, place: str) -> None:
        # boto3 takes a third of a second to import, and most runs withdraw nothing.
        import boto3  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        self._errors = (BotoCoreError, ClientError)
        self._distribution = distribution
        self._place = place
        self._id = ""
        with self._explained("cloudfront:CreateInvalidation"):
            # CloudFront is global, and its API is in this region.
            self._client = boto3.client("cloudfront", region_name="us-east-1")

    def invalidate(self) -> None:
        """Begin to remove all cached copies."""
        with self._explained("cloudfront:CreateInvalidation"):
            made = self._client.create_invalidation(
                DistributionId=self._distribution,
                InvalidationBatch={
                    "Paths": {"Quantity": 1, "Items": [_EVERYTHING]},
                    "CallerReference": secrets.token_hex(16),
                },
            )
        self._id = made["Invalidation"]["Id"]

    def is_complete(self) -> bool:
        """Whether the last invalidation has reached every cache."""
        with self._explained("cloudfront:GetInvalidation"):
            found = self._client.get_invalidation(DistributionId=self._distribution, Id=self._id)
        return found["Invalidation"]["Status"].lower() == "completed"

    def late(self, patience_s: float) -> StoreError:
        """The error for an invalidation that is not complete within so many seconds."""
        return self._failed(
            f"invalidation {self._id} is not complete after {patience_s / 60:.0f} minutes", "run publish again"
        )

    @contextmanager
    def _explained(self, permission: str) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise self._failed(str(error), f"allow {permission}, then run publish again") from error

    def _failed(self, what: str, remedy: str) -> StoreError:
        return StoreError(
            f"publish.cloudfront_distribution {self._distribution}: {what}; copies of withdrawn markets under "
            f"{self._place} may remain there; {remedy}"
        )


def _run(command: list[str], runner: Runner) -> None:
    try:
        runner.run(command)
    except CommandError as error:
        raise StoreError(
            f"publish.purge_command: {error}; copies of withdrawn markets may remain in the CDN; fix the command, then "
            "run publish again"
        ) from error
