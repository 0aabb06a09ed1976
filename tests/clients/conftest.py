"""A site for the clients: made-up markets, a search index, and heads that name the address it is served at."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from generator.demo.database import seed
from tests.clients.faulting_proxy import Fate, FaultingProxy
from tests.clients.faulting_proxy import running as proxied
from tests.clients.typescript.changing_site import BASE_URL as API
from tests.clients.typescript.changing_site import ChangingSite
from tests.clients.typescript.programs import FOLDER, Program, build, copy_source, running
from tests.clients.typescript.scripted_site import ScriptedSite, scripted
from tests.conftest import Shared
from tests.questions import sites
from tests.questions.asking import Get
from tests.questions.oracle import Oracle
from tests.questions.served import EXTENDED as QUESTIONS_EXTENDED
from tests.questions.served import TROUBLED, asked, oracle_for
from tests.questions.served import served as served_in_process
from tests.support.edges.serving import UNLIMITED, served
from tests.support.readers.change_feed import Answer, answering
from tests.support.sites.builds import AS_OF, CHUNKED, EXTENDED, build_now, make_config

MARKETS: Final = 120
BASE_URL: Final = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class DemoSite:
    """Where it is served, and its folder with `markets.db` and `output`."""

    url: str
    folder: Path


@pytest.fixture(autouse=True)
def _certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have them; the tests of stores have none, and httpx reads them whatever the address is."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)


@pytest.fixture(scope="session")
def demo_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoSite]:
    folder = tmp_path_factory.mktemp("demo")
    seed(folder / "markets.db", as_of=AS_OF, markets=MARKETS)
    build_now(make_config(folder, base_url=BASE_URL, **EXTENDED, **CHUNKED), invalid=True)
    options = [f"{name}={value}" for name, value in {**EXTENDED, **CHUNKED, "base_url": BASE_URL}.items()]
    given = [part for option in options for part in ("--set", option)]
    nothing = Fate((), seed=0, share=0, in_a_row=0)
    with (
        served(folder, *UNLIMITED, *given) as server,
        proxied(FaultingProxy(f"http://127.0.0.1:{server.port}", nothing, base_url=BASE_URL)) as proxy,
    ):
        yield DemoSite(proxy.url, folder)


@dataclass(frozen=True)
class QuestionSite:
    """Where a site with questions is served, and what it has to tell of them."""

    url: str
    oracle: Oracle


@pytest.fixture(scope="session")
def question_site(shared: Shared) -> Iterator[QuestionSite]:
    """The one of tests/questions with a case for each rule."""
    folder = shared("troubled-questions", lambda folder: served_in_process(folder, sites.troubled, **TROUBLED))
    get = asked(folder, **TROUBLED)
    with over_http(get) as url:
        yield QuestionSite(url, oracle_for(get, folder, QUESTIONS_EXTENDED))


@contextmanager
def over_http(get: Get) -> Iterator[str]:
    """Serve what is asked in this process; what it publishes names the address that is yielded."""

    def answer(path: str, _: Mapping[str, str]) -> Answer:
        status, headers, body = get(path)
        text = body if path.endswith((".gz", ".parquet")) else body.replace(BASE_URL.encode(), address.encode())
        return Answer(text, status, {name: value for name, value in headers.items() if name != "content-length"})

    with answering(answer) as address:
        yield address


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
    nothing = Fate((), seed=1, share=0, in_a_row=0)
    with proxied(FaultingProxy(f"http://127.0.0.1:{site.edge.client.port}", nothing, base_url=API)) as proxy:
        yield proxy.url
