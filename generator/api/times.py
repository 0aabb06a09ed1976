"""Times as written to files: RFC 3339, UTC, milliseconds, so that text order is time order."""

from datetime import UTC, datetime
from typing import Final

#: Characters of a time on the wire.
LENGTH: Final = len("2026-01-31T12:00:00.000Z")


def instant(moment: datetime) -> str:
    """Format an aware time as RFC 3339 in UTC, truncated to milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
