"""Times as this program writes them in its records: RFC 3339, UTC, milliseconds, so that text order is time order."""

from datetime import UTC, datetime


def instant(moment: datetime) -> str:
    """A time as records have it; text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
