"""The built client, and a Node that has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.typescript.programs import FOLDER, Program, build, copy_source, running
from tests.clients.typescript.scripted_site import ScriptedSite, scripted
from tests.conftest import Shared


@pytest.fixture(scope="session")
def client(shared: Shared) -> Path:
    """The folder of the built client. Read only."""

    def fill(root: Path) -> None:
        assert build(copy_source(root)) == ""

    return shared("client-typescript", fill) / FOLDER


@pytest.fixture(scope="session")
def run(client: Path) -> Iterator[Program]:
    with running(client) as program:
        yield program


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[ScriptedSite]:
    with scripted() as site:
        yield site


@pytest.fixture
def site(scripted_server: ScriptedSite) -> ScriptedSite:
    """A site without answers."""
    scripted_server.answers.clear()
    scripted_server.asked.clear()
    scripted_server.headers.clear()
    return scripted_server
