"""The example SQL for an existing database, applied to one."""

from dataclasses import dataclass
from typing import Any, Final

from tests.support.postgres import PASSWORD, Server
from tests.support.project import ROOT

SQL: Final = ROOT / "templates" / "sql"
VIEWS: Final = SQL / "postgresql-views.sql"
HARDENING: Final = SQL / "postgresql-hardening.sql"
READER: Final = "public_markets_reader"


@dataclass(frozen=True)
class ExistingSite:
    """An existing site's database with the example applied to it."""

    server: Server
    name: str

    def as_reader(self) -> Any:
        return self.server.connect(self.name, READER)

    @property
    def url(self) -> str:
        return self.server.url(self.name, READER)


def apply(server: Server, existing: str, views: str) -> ExistingSite:
    """Create an existing site's database, and run the example in it, twice, then the file that restricts PUBLIC."""
    name = server.create_database()
    with server.connect(name) as connection:
        connection.execute(existing)
        connection.execute(views)
        connection.execute(views)
        connection.execute(HARDENING.read_text())
        connection.execute(f"ALTER ROLE {READER} PASSWORD '{PASSWORD}'")
    return ExistingSite(server, name)
