"""The built client, and a Node that has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.faulting_proxy import Fate, FaultingProxy
from tests.clients.faulting_proxy import running as proxied
from tests.clients.typescript.changing_site import BASE_URL, ChangingSite
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


@pytest.fixture(scope="module")
def url(site: ChangingSite) -> Iterator[str]:
    """The address of the changing site of a module, as its heads name it."""
    fate = Fate((), seed=1, share=0, in_a_row=0)
    with proxied(FaultingProxy(f"http://127.0.0.1:{site.edge.client.port}", fate, base_url=BASE_URL)) as proxy:
        yield proxy.url
