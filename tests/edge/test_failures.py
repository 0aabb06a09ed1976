"""What readers get when a store fails or refuses: the contract's 503, and never a 400 or 404 that blames them."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from generator.api import contract, cursors, keys
from tests.support.edges.cases import is_error, without_cache
from tests.support.edges.in_process import Local, render
from tests.support.edges.servers import Client, connected, folder_for_anybody, free_port, nginx
from tests.support.sites.builds import EXTENDED, NO_LIMITS, Outputs, make_config
from tests.support.stores.bucket import Fault, behind_nginx, bucket

MARKETS = f"/{keys.MARKETS}"
FIRST = keys.first_page("open/popular", 20)
NOWHERE = f"{MARKETS}/00000000-0000-4000-8000-000000000000"
NO_SLUG = f"{MARKETS}/no-such-market"
NO_CATEGORY = f"{MARKETS}?category=no-such-category"


@pytest.fixture(scope="module")
def built(outputs: Outputs) -> Iterator[Path]:
    """A site for nginx before its files and before a bucket; `ports` names the port of nginx and that of the bucket."""
    with folder_for_anybody() as folder:
        port, store = free_port(), free_port()
        config = make_config(folder, **EXTENDED, **NO_LIMITS, **behind_nginx(port, store))
        render(config)
        shutil.copytree(outputs("extended") / contract.API_VERSION, config.output / contract.API_VERSION)
        shutil.copy(outputs("extended") / "manifest.json", config.output)
        without_cache(config.output / "edge" / "nginx")
        (folder / "ports").write_text(f"{port} {store}")
        yield folder


def ports(built: Path) -> tuple[int, int]:
    port, store = (built / "ports").read_text().split()
    return int(port), int(store)


def later_page(output: Path) -> tuple[str, str]:
    """The target and the key of a page in mid-walk."""
    generation = json.loads((output / "manifest.json").read_text("utf-8"))["current"]["all/new"]["generation"]
    cursor = cursors.mint("all/new", generation, 20)
    return f"{MARKETS}?status=all&sort=new&cursor={cursor}", keys.page("all/new", generation, 20, 20)


def targets(output: Path) -> Mapping[str, str]:
    """Requests for one object of each kind, and their keys."""
    market = next((output / keys.DETAILS).rglob("*.json")).stem
    return dict(
        [
            (MARKETS, FIRST),
            later_page(output),
            (f"{MARKETS}/{market}", keys.detail(market)),
            (f"/{keys.SNAPSHOT.removesuffix('.json')}", keys.SNAPSHOT),
            (f"/{keys.BUILD}", keys.BUILD),
            (f"{MARKETS}?q=will", keys.head(keys.SEARCH)),
        ]
    )


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def files(built: Path) -> Iterator[Client]:
    port, _ = ports(built)
    with nginx(built / "output", port), connected(port) as client:
        yield client


@contextmanager
def moved(path: Path) -> Iterator[None]:
    aside = path.with_suffix(".aside")
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        yield
    finally:
        path.chmod(mode)


def test_nginx_does_not_blame_readers_for_files_that_it_may_not_read(built: Path, files: Client) -> None:
    output = built / "output"
    for target, key in targets(output).items():
        with unreadable(output / key):
            assert is_error(files.send("GET", target), 503), key
    with unreadable(output / keys.DETAILS):
        assert is_error(files.send("GET", NOWHERE), 503), "whether it exists cannot be told"
    assert is_error(files.send("GET", NOWHERE), 404)


@pytest.mark.parametrize("lost", [moved, unreadable])
def test_nginx_blames_no_reader_when_all_that_is_published_is_missing_or_closed_to_it(
    lost: Callable[[Path], AbstractContextManager[None]], built: Path, files: Client
) -> None:
    output = built / "output"
    asked = (*targets(output), NOWHERE, NO_CATEGORY, NO_SLUG)
    log = output / "edge" / "nginx" / "error.log"
    before = log.read_text("utf-8")
    with lost(output / contract.API_VERSION):
        for target in asked:
            assert is_error(files.send("GET", target), 503), target
    assert re.search(
        r"v1/\S+: (not there, or )?not readable \(status [0-9]+\)", log.read_text("utf-8").removeprefix(before)
    )
    assert files.send("GET", NO_CATEGORY).body == contract.encode(contract.invalid("category", variant="extended"))
    assert is_error(files.send("GET", NO_SLUG), 404)


# ── a bucket ──────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def before_bucket(built: Path, fault: Fault) -> Iterator[Client]:
    port, store = ports(built)
    with (
        bucket(built / "output", store, fault),
        nginx(built / "output", port, "bucket.conf"),
        connected(port) as client,
    ):
        yield client


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("failure", [404, 307, 0, 400, 301, 429, 403, 503, 500])
def test_nginx_shows_no_error_of_its_bucket_nor_that_it_is_empty(failure: int, built: Path) -> None:
    with before_bucket(built, lambda _: failure) as client:
        for target in (*targets(built / "output"), NOWHERE, *((NO_CATEGORY, NO_SLUG) if failure == 404 else ())):
            assert is_error(client.send("GET", target), 503), target
        assert client.send("HEAD", MARKETS).status == 503


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("absent", [403, 404])
def test_nginx_knows_what_its_bucket_does_not_have(absent: int, built: Path) -> None:
    gone, page = later_page(built / "output")
    missing = (keys.DETAILS, page, FIRST)

    def lacks(path: str) -> int | None:
        return absent if any(key in path for key in missing) else None

    with before_bucket(built, lacks) as client:
        assert is_error(client.send("GET", NOWHERE), 404)
        assert is_error(client.send("GET", MARKETS), 503)
        assert client.send("GET", gone).body == contract.encode(contract.invalid("cursor.gone"))


# ── the local server ──────────────────────────────────────────────────────────────────────────────────────────────


def test_serve_does_not_blame_readers_for_files_that_it_may_not_read(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(built)
    local, output = Local(config), config.output

    def denied(path: Path) -> bytes:
        raise PermissionError(path)

    gone = targets(output)
    assert is_error(local.ask(NOWHERE), 404)
    with moved(output / FIRST):
        assert is_error(local.ask(MARKETS), 503)
    with moved(output / contract.API_VERSION):
        for target in (*gone, NOWHERE, NO_CATEGORY, NO_SLUG):
            assert is_error(local.ask(target), 503), target
    monkeypatch.setattr(Path, "read_bytes", denied)
    for target in targets(output):
        assert is_error(local.ask(target), 503), target
