"""A whole build of the demo, file by file: valid, complete, in order, private, reproducible."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from shutil import copy

import pytest
import sqlalchemy as sa
from pydantic import BaseModel

from generator.api import contract, keys
from generator.api.changelog import Changelog
from generator.api.contract import SORTS, STATUS_FILTERS, Sort, StatusFilter
from generator.api.downloads import ChangesHead, DumpHead
from generator.api.feeds import Feed
from generator.api.prices import Prices
from generator.demo.database import METADATA, seed
from generator.feeds import atom
from generator.site.site_index import BuildRecord, SiteIndex
from generator.source.relations import RELATIONS
from generator.tree.manifest import Manifest
from generator.tree.pages import page_count
from tests.acceptance.extended.site import walk
from tests.support.edges.serving import in_order
from tests.support.readers import lists
from tests.support.sites.builds import AS_OF, Outputs, build_now, files, make_config

CANARY = b"CANARY"
PRIVATE = {
    name: {column.name for column in table.columns if column.info.get("private")}
    for name, table in METADATA.tables.items()
}


@pytest.fixture(scope="module")
def published(demo_output: Path) -> dict[str, bytes]:
    """Every file under v1/ by its key."""
    return files(demo_output)


@pytest.fixture(scope="module")
def forty_markets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forty") / "markets.db"
    seed(path, as_of=AS_OF, markets=40)
    return path


@pytest.fixture
def forty(forty_markets: Path, tmp_path: Path) -> Path:
    """A folder with a demo database of forty markets, which tests may change."""
    copy(forty_markets, tmp_path)
    return tmp_path


# ── every file ────────────────────────────────────────────────────────────────────────────────────────────────────


def model_of(key: str) -> type[BaseModel] | None:
    """The model of the resource under a key; None for the OpenAPI document."""
    if key.startswith("v1/public/markets/lists/"):
        return contract.PublicMarketList
    if key.startswith("v1/public/markets/detail/"):
        return contract.PublicMarketDetail
    if key.startswith("v1/errors/"):
        return contract.ErrorResponse
    if key.startswith(f"{keys.FEEDS}/"):
        return Feed
    for name, model in ((keys.DUMPS, DumpHead), (keys.CHANGES, ChangesHead)):
        if key.startswith(f"{keys.list_prefix(name)}/"):
            return model
    documents: dict[str, type[BaseModel] | None] = {
        keys.SNAPSHOT: contract.PublicMarketSnapshot, keys.PRICES: Prices, keys.BUILD: BuildRecord,
        keys.SITE_INDEX: SiteIndex, keys.CHANGELOG: Changelog, keys.OPENAPI: None,
    }  # fmt: skip
    return documents[key]


def encoded_again(key: str, body: bytes) -> bytes:
    model = model_of(key)
    return contract.encode(json.loads(body) if model is None else model.model_validate_json(body))


def test_every_file_is_its_resource_to_the_byte(published: dict[str, bytes]) -> None:
    checked = 0
    of_feeds = {key: body for key, body in published.items() if key.endswith(".atom")}
    for key, body in of_feeds.items():
        feed = Feed.model_validate_json(published[key.replace(".atom", ".json")])
        assert atom.encode(feed) == body
        checked += 1
    others = {keys.LLMS, *of_feeds, *filter(keys.is_download, published)}
    for key in published.keys() - others:
        assert encoded_again(key, published[key]) == published[key], key
        checked += 1
    assert checked == len(published) - 2 > 1_000, "all but llms.txt and the dump"


def test_what_the_contract_leaves_open_holds_no_other_properties_either(published: dict[str, bytes]) -> None:
    """The contract allows additional properties in items and detail markets; ours have none."""
    item = {*json.loads(published[keys.first_page("all/new", 1)])["items"][0]}
    assert len(item) == 13
    details = [json.loads(body)["market"] for key, body in published.items() if "/detail/" in key]
    assert {len(market) for market in details} == {18}
    pages = [json.loads(body)["items"] for key, body in published.items() if key.endswith("/first/100.json")]
    assert {frozenset(item_) for page in pages for item_ in page} == {frozenset(item)}


def test_the_manifest_names_every_file_and_no_other(demo_output: Path, published: dict[str, bytes]) -> None:
    recorded = Manifest.model_validate_json((demo_output / "manifest.json").read_bytes())
    generations = {keys.generation_prefix(name, made.generation): made for name, made in recorded.lists().items()}
    assert recorded.complete
    assert recorded.retired == ()
    of_generation: dict[str, list[bytes]] = {prefix: [] for prefix in generations}
    mutable = set()
    for key, body in published.items():
        if key.startswith(f"{keys.LISTS}/") and keys.is_immutable(key):
            of_generation[key.rsplit("/", 2)[0]].append(body)
        elif not keys.is_immutable(key):
            mutable.add(key)
    assert mutable == recorded.objects.keys()
    for prefix, made in generations.items():
        assert len(of_generation[prefix]) == page_count(made.count)
        assert sum(map(len, of_generation[prefix])) == made.bytes


def test_every_public_market_has_a_detail_and_no_other(published: dict[str, bytes], demo_folder: Path) -> None:
    with closing(sqlite3.connect(demo_folder / "markets.db")) as connection:
        public = connection.execute("SELECT lower(id) FROM markets WHERE approval = 'approved' AND is_listed")
        expected = {keys.detail(market_id) for (market_id,) in public}
    details = {key for key in published if "/detail/" in key}
    assert details == expected
    assert len(details) > 100
    for key in details:
        assert json.loads(published[key])["market"]["id"] in key


# ── every walk ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", STATUS_FILTERS)
@pytest.mark.parametrize("sort", SORTS)
def test_every_walk_is_the_databases_rows_in_order(
    published: dict[str, bytes], demo_folder: Path, status: StatusFilter, sort: Sort
) -> None:
    expected = in_order(demo_folder / "markets.db", status, sort)
    assert len(expected) >= 5
    for limit in (1, 7, 20, 100):
        assert walk(published, f"{status}/{sort}", limit) == expected


# ── privacy ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_byte_of_the_output_is_private(demo_folder: Path, demo_output: Path) -> None:
    assert (demo_folder / "markets.db").read_bytes().count(CANARY) > 1_000
    everything = files(demo_output, "")
    assert {"manifest.json", "report.json", "v1/build.json"} <= everything.keys()
    assert [name for name, content in everything.items() if CANARY in content or CANARY.lower() in content] == []
    assert [name for name in everything if "CANARY" in name.upper()] == []


def test_hidden_rows_leave_no_trace_even_where_they_are_broken(forty: Path) -> None:
    word = CANARY.decode()
    hidden = "SELECT id FROM markets WHERE approval <> 'approved' OR NOT is_listed"
    updates = [
        f"UPDATE orders SET price = 7, side = '{word}' WHERE NOT is_public",
        f"UPDATE fills SET id = '{word}' WHERE market_id IN ({hidden})",
        f"UPDATE probabilities SET recorded_at = '{word}' WHERE market_id IN ({hidden})",
        f"UPDATE fx_members SET direction = '{word}' WHERE NOT is_public",
        f"UPDATE markets SET prob = 7, status = '{word}' WHERE id IN ({hidden})",
    ]
    with closing(sqlite3.connect(forty / "markets.db", isolation_level=None)) as connection:
        assert all(connection.execute(update).rowcount > 0 for update in updates)
    report = build_now(make_config(forty))
    assert report.quarantine.total() == 0
    assert [name for name, content in files(forty / "output", "").items() if CANARY in content] == []


def test_what_is_read_is_exactly_what_is_not_private() -> None:
    public = {
        name: {column.name for column in table.columns if not column.info.get("private")}
        for name, table in METADATA.tables.items()
    }
    assert {name: {*columns} for name, columns in RELATIONS.items()} == public


@contextmanager
def watched() -> Iterator[tuple[list[str], set[tuple[str, str]]]]:
    """Every statement and every (table, column) that any SQLite connection reads, as reported by SQLite."""
    statements: list[str] = []
    columns: set[tuple[str, str]] = set()

    def authorize(action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table is not None and column is not None:
            columns.add((table, column))
        return sqlite3.SQLITE_OK

    def watch(connection: sqlite3.Connection, _: object) -> None:
        connection.set_trace_callback(statements.append)
        connection.set_authorizer(authorize)

    sa.event.listen(sa.Pool, "connect", watch)
    try:
        yield statements, columns
    finally:
        sa.event.remove(sa.Pool, "connect", watch)


def test_no_statement_names_a_private_column(forty: Path) -> None:
    with watched() as (statements, columns):
        build_now(make_config(forty))
    selects = [statement for statement in statements if statement.lstrip().upper().startswith("SELECT")]
    assert len(selects) >= 6
    assert all(any(re.search(rf"\b{relation}\b", text) for text in selects) for relation in ("orders", "fills"))
    unmistakable = {column for columns_ in PRIVATE.values() for column in columns_} - {"id"}
    assert len(unmistakable) == 5
    assert [text for text in statements if unmistakable & {*re.findall(r"\w+", text)}] == []
    assert [text for text in selects if "*" in text.replace("count(*)", "")] == []
    read = {(table, column) for table, column in columns if table in RELATIONS and column}
    assert len(read) > 30
    assert read <= {(table, column) for table, allowed in RELATIONS.items() for column in allowed}


# ── reproducibility ───────────────────────────────────────────────────────────────────────────────────────────────


def fingerprint(output: Path) -> dict[str, str]:
    return {key: hashlib.sha256(body).hexdigest() for key, body in files(output).items()}


def identities(output: Path) -> dict[str, tuple[int, int, int]]:
    """Inode, modification time and size of every file and folder but the lock."""
    found = (path for path in output.rglob("*") if path.name != ".lock")
    return {
        path.relative_to(output).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size)
        for path in found
    }


def changed(one: dict[str, bytes], other: dict[str, bytes]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def test_as_of_alone_changes_nothing_but_the_record_of_the_build(forty: Path) -> None:
    with closing(sqlite3.connect(forty / "markets.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM fills WHERE created_at > '2026-01-25'")
        connection.execute("UPDATE markets SET close_time = '2027-01-01 00:00:00' WHERE status = 'open'")
    build_now(make_config(forty))
    before_ = identities(forty / "output")
    build_now(make_config(forty), AS_OF + timedelta(days=1))
    after = identities(forty / "output")
    replaced = {name for name in before_.keys() | after.keys() if before_.get(name) != after.get(name)}
    assert {name for name in replaced if (forty / "output" / name).is_file()} == {
        "v1/build.json", "manifest.json", "report.json", "index.html",
    }  # fmt: skip
    assert {name for name in replaced if (forty / "output" / name).is_dir()} <= {"v1"}


def test_a_change_of_one_market_leaves_lists_without_it_alone(forty: Path) -> None:
    build_now(make_config(forty))
    earlier = files(forty / "output")
    with closing(sqlite3.connect(forty / "markets.db", isolation_level=None)) as connection:
        (edited,) = connection.execute(
            "SELECT id FROM markets WHERE status = 'cancelled' AND approval = 'approved' AND is_listed LIMIT 1"
        ).fetchone()
        connection.execute("UPDATE markets SET question = 'Edited?' WHERE id = ?", [edited])
    build_now(make_config(forty))
    later = files(forty / "output")
    touched = {"/".join(key.split("/")[4:5]) for key in changed(earlier, later) if "/lists/" in key}
    assert touched == {"cancelled", "archive", "all"}
    feeds = {keys.feed("new", extension) for extension in ("json", "atom")}
    heads = {keys.head(name) for name in (keys.DUMPS, keys.CHANGES)}
    others = {key for key in changed(earlier, later) if "/lists/" not in key and not keys.is_immutable(key)}
    assert others == {keys.detail(edited.lower()), *feeds, *heads}
    # Replaced generations stay for walks in progress.
    assert {key for key in earlier if keys.is_immutable(key)} <= later.keys()
    assert walk(later, "all/new", 7) == walk(earlier, "all/new", 7)


# ── the other layout ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def chunked(outputs: Outputs) -> Path:
    return outputs("core", "chunks")


def test_the_layout_changes_how_lists_lie_there_and_nothing_else(published: dict[str, bytes], chunked: Path) -> None:
    ours, theirs = ({key for key in found if "/lists/" not in key} for found in (files(chunked), published))
    assert ours == theirs
    assert {key for key in ours if (chunked / key).read_bytes() != published[key]} == {keys.BUILD, keys.OPENAPI}


def test_a_list_has_the_same_items_in_either_layout(demo_output: Path, chunked: Path) -> None:
    names = Manifest.model_validate_json((chunked / "manifest.json").read_bytes()).lists()
    assert len(names) == len(STATUS_FILTERS) * len(SORTS)
    for name in names:
        assert lists.source(chunked, name) == lists.source(demo_output, name)


def test_no_byte_of_the_other_layout_is_private(chunked: Path) -> None:
    everything = files(chunked, "")
    assert sum(f"/{keys.CHUNKS}/" in name for name in everything) > 20
    assert [name for name, content in everything.items() if CANARY in content or CANARY.lower() in content] == []


def test_builds_of_the_other_layout_into_fresh_folders_give_the_same_bytes(demo_folder: Path, chunked: Path) -> None:
    again = chunked.parent / "again"
    build_now(make_config(demo_folder, output=again, layout="chunks"))
    assert fingerprint(again) == fingerprint(chunked)
