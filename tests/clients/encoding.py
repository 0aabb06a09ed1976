"""The opposite of what clients do: from their objects to the values of the site."""

from dataclasses import MISSING, fields
from datetime import UTC, date, datetime
from typing import Any

from public_markets_client.decoding import Extensible, wire_name


def encoded(value: Any) -> Any:
    """The JSON values of an object as the site sends them, made from its fields and `extra`."""
    if isinstance(value, Extensible):
        known = [(one, getattr(value, one.name)) for one in fields(value) if one.name != "json"]
        given = [(one.name, held) for one, held in known if one.default is MISSING or held is not None]
        return {wire_name(name): encoded(held) for name, held in given} | value.extra
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple):
        return [encoded(one) for one in value]
    return value
