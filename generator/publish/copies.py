"""Ends the copies of withdrawn markets that outlive the objects: a CDN's, and old versions in a versioned bucket.

The CDN comes first, as readers see it, and neither needs the other to succeed. What is left stays in the record, so
that whichever run can end it next does so.
"""

import re
import time
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.config.settings import Config
from generator.errors import StoreError
from generator.models import replaced
from generator.publish import invalidation, store_checks
from generator.publish.lease import Lease
from generator.publish.record import Published
from generator.stores.requests import with_retries
from generator.stores.store import Store, UnavailableError
from generator.tree.files import STATES

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
    if not has_target:
        return (
            f"browsers keep copies until {_after(now, _BROWSER_S)} at most; publish.target is not set, so no CDN was "
            "told, and nothing else was touched"
        )
    if invalidation.is_configured(config):
        return f"the CDN's copies are gone, browsers keep theirs until {_after(now, _BROWSER_S)} at most"
    if config.publish.is_unpurged and not (published and published.are_copies_long):
        return f"caches and browsers keep copies until {_after(now, _UNPURGED_S)} at most"
    return (
        f"browsers keep copies until {_after(now, _BROWSER_S)} at most; a CDN in front, if there is one, may "
        "keep them for up to a year, as none is configured"
    )


def _after(now: datetime, seconds: int) -> str:
    return (now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Copies:
    """The copies of what a store held. `warnings` are for the operator.

    A store of a dry run has no readers, whose copies could be invalidated.
    """

    def __init__(self, store: Store, lease: Lease, config: Config, *, has_readers: bool = True) -> None:
        self._store = store
        self._lease = lease
        self._config = config
        self._has_readers = has_readers
        self._failures: list[str] = []
        self.warnings: list[str] = []

    def end(self, published: Published) -> Published:
        """End all copies; returns the record with those that are left. Raise BusyError if the lease was lost."""
        are_caches_stale = not self._invalidate(published)
        are_versions_kept = not self._purge_versions()
        return replaced(published, are_caches_stale=are_caches_stale, are_versions_kept=are_versions_kept)

    def require_ended(self) -> None:
        """Raise StoreError, which names what is left and why, unless all copies could be ended."""
        if self._failures:
            raise StoreError("; ".join(self._failures))

    def _invalidate(self, published: Published) -> bool:
        if warning := store_checks.unnamed_cdn(self._config, published):
            self.warnings.append(f"{warning}; the first run that knows a CDN invalidates it")
            return False
        if not self._has_readers:
            return True
        cdn = invalidation.Cdn(self._config, self._lease.renew_if_needed)
        try:
            cdn.invalidate()
            # The CDN may store an answer that it fetched just before the invalidation.
            self._wait(self._config.publish.cache_fill.total_seconds())
            cdn.invalidate()
            cdn.wait()
        except StoreError as error:
            self._failures.append(str(error))
            return False
        return True

    def _purge_versions(self) -> bool:
        try:
            # Of states also if the record has none: it may have had some until this withdrawal.
            for prefix in (f"{API_VERSION}/", STATES):
                with_retries(partial(self._store.purge_versions, prefix, self._lease.renew_if_needed))
        except StoreError as error:
            self._failures.append(f"{error}, then run publish again")
            return False
        except UnavailableError as error:
            self._failures.append(
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
