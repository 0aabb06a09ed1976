"""The database's address, `source.url`: what names the database without its password. Connects to nothing."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generator.config import networks
from generator.config.settings import Config
from generator.config.shape import SOURCE, shaping
from generator.errors import SourceError

if TYPE_CHECKING:
    from sqlalchemy import URL

#: Usual addresses, which are named here as SQLAlchemy would name them; it parses all others. Importing it takes as long
#: as everything else that a publish imports, which only names the database.
_SQLITE: Final = re.compile(r"sqlite:///([^?%\n]+)")
_POSTGRESQL: Final = re.compile(
    r"postgresql(?:\+psycopg)?://([\w.-]+)?(?(1)(:[^@/?#:]*)?@)([\w.-]+(?::[1-9]\d*)?/[\w.-]+)(?:\?.*)?", re.ASCII
)
#: A host with its port, as SQLAlchemy takes several of them; an IPv6 address has more colons.
_PORT: Final = re.compile(r"^([^:]*):\d+$")
#: Hexadecimal digits of a digest of an address: enough to tell the databases of one site apart.
_DIGEST_LENGTH: Final = 32


def shape(config: Config) -> dict[str, Any]:
    """The settings that shape what is published, and a digest of the database's address, by key.

    Equal shapes give equal bytes. Manifest and record have them, and need not name a host, a role or a path.
    """
    return {**shaping(config), SOURCE: hashlib.sha256(display_url(config).encode()).hexdigest()[:_DIGEST_LENGTH]}


def display_url(config: Config) -> str:
    """The database URL for logs and messages, without password or options."""
    if found := _POSTGRESQL.fullmatch(config.source.url.get_secret_value()):
        user, password, place = found.groups()
        hidden = "" if password is None else ":***"
        return f"postgresql://{user}{hidden}@{place}" if user else f"postgresql://{place}"
    path = sqlite_path(config)
    if path:
        return f"sqlite:///{path}"
    return parsed(config).set(drivername="postgresql", password=None, query={}).render_as_string()


def identity(config: Config) -> str:
    """What tells one database from another: the URL with its options, and the schema. No password is in it."""
    url = parsed(config).set(password=None).difference_update_query(["password", "sslpassword"])
    return f"{url.render_as_string()} {config.source.schema_ or ''}"


def sslmode(config: Config, environ: Mapping[str, str]) -> str | None:
    """How libpq encrypts a connection to another machine, by its word; None for SQLite and for this machine."""
    if sqlite_path(config):
        return None
    url = parsed(config)

    def told(name: str, variable: str) -> str:
        found = url.query.get(name, environ.get(variable, ""))
        return found if isinstance(found, str) else ",".join(found)

    hosts = told("hostaddr", "PGHOSTADDR") or url.host or told("host", "PGHOST")
    if all(networks.is_here(_PORT.sub(r"\1", host)) for host in hosts.split(",")):
        return None
    # libpq's default, which depends on whom it trusts.
    default = "verify-full" if told("sslrootcert", "PGSSLROOTCERT") == "system" else "prefer"
    return told("sslmode", "PGSSLMODE") or default


def sqlite_path(config: Config) -> Path | None:
    """The file of an SQLite database; None for PostgreSQL."""
    if found := _SQLITE.fullmatch(config.source.url.get_secret_value()):
        return Path(found[1])
    url = parsed(config)
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def parsed(config: Config) -> "URL":
    """The database URL; raise SourceError if the setting is not a URL."""
    # Imported only to connect, and for unusual addresses.
    from sqlalchemy import make_url  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        return make_url(config.source.url.get_secret_value())
    except (ArgumentError, ValueError):  # ValueError: a non-numeric port; its message quotes the URL
        raise SourceError(
            "source.url: not a database URL; write sqlite:///path/to/file.db or postgresql://user@host/database"
        ) from None
