"""The example SQL for an existing database, applied to one."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from generator.source.relations import ALL_RELATIONS, RELATIONS
from tests.support.commands import run
from tests.support.postgres import PASSWORD, Server
from tests.support.project import ROOT
from tests.support.sites.builds import files, text_of

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


def assert_nothing_private(reader: Any, published: Path, *optional: str, questions: bool = False) -> None:
    """No canary and no user's number is in any byte of the output, or in any row of the views that the reader sees.

    They have the columns that are read, and these `optional` ones of markets.
    """
    private = r"CANARY|\":777|777000777"
    found = files(published, "")
    assert len(found) > 300
    assert [key for key, body in found.items() if re.search(private.encode(), body + text_of(key, body))] == []
    for view, columns in (ALL_RELATIONS if questions else RELATIONS).items():
        cursor = reader.execute(f"SELECT * FROM {view}")
        assert [column.name for column in cursor.description] == [*columns, *(optional if view == "markets" else ())]
        assert not re.search(private, repr(cursor.fetchall()))


def assert_nothing_to_mend(site: ExistingSite, folder: Path, warnings: int = 0) -> None:
    """`check` ends well, with so many warnings."""
    (folder / "config.yaml").write_text("source:\n  schema: public_api\n")
    done = run("check", cwd=folder, PUBLIC_MARKETS_SOURCE__URL=site.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("warning: ") == warnings, done.stdout
