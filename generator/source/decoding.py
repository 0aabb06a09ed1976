"""Decodes texts that may not be valid: such a one costs its row, not the build.

What cannot be decoded becomes lone surrogates, which `row_validation` rejects.
"""

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

if TYPE_CHECKING:
    from psycopg.adapt import Loader

_ERRORS: Final = "surrogateescape"
#: PostgreSQL's word for an unknown encoding, which is taken for UTF-8.
_UNKNOWN: Final = "SQL_ASCII"
#: The encodings of PostgreSQL's databases in which any byte can be stored, but not every byte is a letter. Python
#: decodes all others exactly as the server does, unlike those of several encodings with more bytes a letter.
_UNCHECKED: Final = re.compile(rf"{_UNKNOWN}|LATIN\d+|ISO_8859_\d|KOI8[RU]|WIN\d+")
#: What PostgreSQL calls types of texts.
_TEXTS: Final = ("text", "varchar", "bpchar", "name", '"char"')


def by_sqlite(connection: sa.Connection) -> None:
    """Have all texts decoded from now on. This doubles the time to read, so it is only for a database that needs it."""
    driver: Any = connection.connection.dbapi_connection
    driver.text_factory = partial(str, encoding="utf-8", errors=_ERRORS)


def by_driver(connection: sa.Connection, schema: str | None) -> None:
    """Have PostgreSQL's texts decoded by the driver until the transaction ends, where the server might refuse to.

    Of a database in UTF-8 the server has checked every text when it was written. The driver could not ask for a
    `schema` whose name is not ASCII.
    """
    encoding = _encoding(connection)
    if encoding and _UNCHECKED.fullmatch(encoding) and (schema or "").isascii():
        driver: Any = connection.connection.dbapi_connection
        connection.exec_driver_sql(f"SET LOCAL client_encoding = '{encoding}'")
        loader = _loader("utf-8" if encoding == _UNKNOWN else driver.info.encoding)
        for name in _TEXTS:
            driver.adapters.register_loader(name, loader)


def widest(connection: sa.Connection) -> int:
    """How often the server may count one letter: as often as it has bytes where the encoding is unknown."""
    return 4 if _encoding(connection) == _UNKNOWN else 1


def _encoding(connection: sa.Connection) -> str | None:
    """What PostgreSQL calls the encoding of the database; None for SQLite."""
    driver: Any = connection.connection.dbapi_connection
    return None if connection.dialect.name == "sqlite" else driver.info.parameter_status("server_encoding")


def _loader(codec: str) -> "type[Loader]":
    from psycopg.adapt import Loader  # noqa: PLC0415 - SQLite's users may not have it

    class LenientLoader(Loader):
        def load(self, data: Any) -> str:
            return str(data, codec, _ERRORS)

    return LenientLoader
