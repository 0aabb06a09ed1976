"""The site that bad input must not damage."""

from contextlib import closing

import pytest

from tests.acceptance.bad_input.site import BuiltSite
from tests.support.sites.rows import create_database, insert_market


@pytest.fixture(scope="module")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> BuiltSite:
    """A build of three markets, which no test may replace."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "config.yaml").write_text("source:\n  url: sqlite:///markets.db\n")
    with closing(create_database(folder / "markets.db")) as connection:
        for number in (1, 2, 3):
            insert_market(connection, number)
    done = BuiltSite(folder).build()
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), "it names relations without rows"
    before = BuiltSite(folder).everything()
    assert len(before) > 200
    return BuiltSite(folder, before)
