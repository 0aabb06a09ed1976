"""Ends the copies of withdrawn markets that outlive the objects: a CDN's, and old versions in a versioned bucket.

The CDN comes first, as readers see it, and neither needs the other to succeed. What is left stays in the record, so
that whichever run can end it next does so. A CDN is invalidated through CloudFront's API, or by a command that the
operator configured.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import StoreError
from generator.models import replaced
from generator.publish.commands import CommandError, Runner
from generator.publish.lease import Lease
from generator.publish.record import Published
from generator.stores.requests import with_retries
from generator.stores.store import Store, UnavailableError
from generator.tree.files import STATES

#: The second CDN invalidation comes so much later: the CDN may store an answer that it fetched just before the first.
FILL_S: Final = 60.0
#: Between two looks at the lease while waiting for the second CDN invalidation.
_WAIT_STEP_S: Final = 1.0


def _seconds(header: str, *names: str) -> int:
    """The sum of these directives of a Cache-Control header."""
    return sum(int(value) for name, value in re.findall(r"([a-z-]+)=(\d+)", header) if name in names)


#: How long a browser may keep any answer: fresh, and then stale while it asks again.
_BROWSER_S: Final = max(
    _seconds(header, "max-age", "stale-while-revalidate") for header in (keys.IMMUTABLE, keys.MUTABLE)
)
#: How long a shared cache may where nothing can invalidate it, and a browser after that.
_UNPURGED_S: Final = _seconds(keys.UNPURGED_IMMUTABLE, "s-maxage") + _BROWSER_S


def remaining(config: Config, published: Published | None, now: datetime, *, has_target: bool) -> str:
    """What caches may still hold of a market that is gone since `now`, and until when.

    Without a target nothing was published, so no CDN was told.
    """
    in_browsers = f"browsers keep copies until {_after(now, _BROWSER_S)} at most"
    if not has_target:
        untold = "" if config.publish.cdn else "no CDN was told, and "
        return f"{in_browsers}; publish.target is not set, so {untold}nothing else was touched"
    if config.publish.cdn:
        return in_browsers
    if is_configured(config):
        return f"the CDN's copies are gone, browsers keep theirs until {_after(now, _BROWSER_S)} at most"
    if config.publish.is_unpurged and not (published and published.are_copies_long):
        return f"caches and browsers keep copies until {_after(now, _UNPURGED_S)} at most"
    maybe = "a CDN in front, if there is one, may keep them for up to a year, as none is configured"
    return f"{in_browsers}; {maybe}"


def _after(now: datetime, seconds: int) -> str:
    return (now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def unnamed_cdn(config: Config, published: Published | None) -> str | None:
    """Whether no CDN is configured, so that its copies outlive a withdrawal; None also if there is none."""
    if config.publish.cdn or is_configured(config):
        return None
    sentence = (
        "publish: no CDN is configured, so cached copies of withdrawn markets may remain; set "
        "publish.cloudfront_distribution or publish.purge_command, or publish.cdn: none if nothing caches"
    )
    if config.publish.is_unpurged and published and published.are_copies_long:
        sentence += (
            "; shared caches may keep pages that were published while one was configured for a year, until "
            "`public-markets publish --verify` puts them again"
        )
    elif config.publish.is_unpurged:
        sentence += "; until then, shared caches are told to keep pages for 5 minutes only, instead of a year"
    return sentence


class Copies:
    """The copies of what a store held. `warnings` are for the operator.

    A store of a dry run has no readers, whose copies could be invalidated.
    """

    def __init__(self, store: Store, lease: Lease, config: Config, *, has_readers: bool = True) -> None:
        self._store = store
        self._lease = lease
        self._config = config
        self._has_readers = has_readers
        #: What is left, and why.
        self.faults: list[str] = []
        self.warnings: list[str] = []

    def end(self, published: Published) -> Published:
        """End all copies; returns the record with those that are left. Raise BusyError if the lease was lost."""
        are_caches_stale = not self._invalidate(published)
        are_versions_kept = not self._purge_versions()
        return replaced(published, are_caches_stale=are_caches_stale, are_versions_kept=are_versions_kept)

    def _invalidate(self, published: Published) -> bool:
        if warning := unnamed_cdn(self._config, published):
            self.warnings.append(f"{warning}; the first run that knows a CDN invalidates it")
            return False
        if not self._has_readers or self._config.publish.cdn:
            return True
        cdn = Cdn(self._config, self._lease.renew_if_needed)
        try:
            cdn.invalidate()
            self._wait(FILL_S)
            cdn.invalidate()
            cdn.wait()
        except StoreError as error:
            self.faults.append(str(error))
            return False
        return True

    def _purge_versions(self) -> bool:
        try:
            # Of states also if the record has none: it may have had some until this withdrawal.
            for prefix in (f"{API_VERSION}/", STATES):
                with_retries(partial(self._store.purge_versions, prefix, self._lease.renew_if_needed))
        except StoreError as error:
            self.faults.append(f"{error}, then run publish again")
            return False
        except UnavailableError as error:
            self.faults.append(
                f"{self._store.name}: does not answer ({error}), so old versions of withdrawn markets may remain; run "
                "publish again"
            )
            return False
        return True

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(_WAIT_STEP_S, left))
            self._lease.renew_if_needed()


# The CDN

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
