"""The package of the TypeScript client: it has the types of the contract, and does what its docs show."""

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from generator import __version__
from generator.api import contract
from tests.clients.typescript.changing_site import MARKETS, ChangingSite, changing_site
from tests.clients.typescript.programs import NAME, PACKAGE, SOURCE, deno, node
from tests.conftest import Shared
from tests.support.programs import require
from tests.support.project import ROOT

ADDRESS: Final = "http://127.0.0.1:8000"
DOCS: Final = ("docs/client-typescript.md", "clients/typescript/README.md", "clients/typescript/SKILL.md")
PROGRAMS: Final = [
    program
    for page in DOCS
    for program in re.findall(r"^```js\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
]
LIST, DUMP, REFUSED, FOLLOW, SQLITE, GO_ON, README, SKILL = PROGRAMS
#: As strictly as anybody may, but for the compiler's own files.
COMPILED: Final = "--noEmit --strict --target es2022 --module nodenext --lib es2022,dom --skipDefaultLibCheck"
TYPES: Final = """
import { Client, MemoryStore, SqliteStore } from "public-markets-client";
import type { Database, ListedMarket, Query, Question, Store, Change } from "public-markets-client";
import { FileStore } from "public-markets-client/node";
import type { components, operations } from "public-markets-client";

type Same<A, B> = [A, B] extends [B, A] ? true : false;
type Open<A> = A | (string & {});

export const sorts: Same<Query["sort"], SORTS | undefined> = true;
export const states: Same<ListedMarket["status"], Open<STATES>> = true;
export const isNullable: Same<ListedMarket["resolution"], components["schemas"]["Resolution"] | null> = true;
export const cursorMayBeNull: Same<components["schemas"]["PublicMarketList"]["nextCursor"], string | null> = true;
export const refusal: operations["getMarket"]["responses"][404]["content"]["application/json"] = { error: "" };
export const isNewer = (market: ListedMarket): boolean => market.status === "paused";
export const stores = (database: Database): Store[] =>
  [new MemoryStore(), new FileStore("x"), new SqliteStore(database)];
export const kinds: Same<Change["kind"], "added" | "changed" | "gone"> = true;
export const walk = new Client("").markets({ status: "open", category: "a", q: "b" });
export const asked = new Client("").questions({ sort: "new", category: "a" });
export const isNewerKind = (question: Question): boolean => question.kind === "ranked";
export const begun = new Client("").markets({}, { onExpired: "error" });
"""
#: What @types/node has since Node 22, as far as it matters.
NODE_SQLITE: Final = """
declare module "node:sqlite" {
  export class StatementSync {
    all(...values: (null | number | bigint | string)[]): Record<string, null | number | bigint | string>[];
    run(...values: (null | number | bigint | string)[]): { changes: number | bigint };
  }
  export class DatabaseSync {
    constructor(path: string);
    prepare(sql: string): StatementSync;
  }
}
"""


@pytest.fixture(scope="session")
def installed(client: Path, shared: Shared) -> Path:
    """An empty folder in which the packed client was installed, and nothing else. Read only."""
    npm = require("npm", reason="the TypeScript client is not installed")

    def fill(folder: Path) -> None:
        packed = json.loads(subprocess.check_output([npm, "pack", "--json", "--pack-destination", folder], cwd=client))
        assert {file["path"].partition("/")[0] for file in packed[0]["files"]} == {
            "LICENSE", "README.md", "SKILL.md", "dist", "package.json",
        }  # fmt: skip
        (folder / "package.json").write_text('{"type": "module", "private": true}', "utf-8")
        install = [str(npm), "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        subprocess.run([*install, str(folder / packed[0]["filename"])], cwd=folder, check=True)
        found = [path.name for path in (folder / "node_modules").iterdir() if path.name[0] != "."]
        assert found == ["public-markets-client"]

    return shared("installed-typescript", fill)


@pytest.fixture
def place(installed: Path, tmp_path: Path) -> Path:
    """A folder with the client, to write in."""
    (tmp_path / "node_modules").symlink_to(installed / "node_modules")
    shutil.copy(installed / "package.json", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def site() -> Iterator[ChangingSite]:
    with changing_site("serve", "chunks", 4) as running:
        yield running


def complaints(place: Path, *texts: str) -> str:
    """What the compiler says of programs that are written beside the installed client."""
    for number, text in enumerate(texts):
        (place / f"program-{number}.ts").write_text(text, "utf-8")
    compiler = SOURCE / "node_modules/typescript/bin/tsc"
    command = [str(node()), str(compiler), *COMPILED.split(), *sorted(map(str, place.glob("*.ts")))]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False).stdout


def shown(program: str, url: str, place: Path) -> list[str]:
    """The lines that a program of the docs prints."""
    (place / "program.js").write_text(program.replace(ADDRESS, url), "utf-8")
    return subprocess.check_output([node(), "program.js"], cwd=place, text=True).splitlines()


def test_it_has_the_version_and_license_of_the_program_and_no_dependencies() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text("utf-8"))
    assert PACKAGE["version"] == lock["version"] == lock["packages"][""]["version"] == __version__
    assert (SOURCE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert {"dependencies", "peerDependencies", "optionalDependencies"} & PACKAGE.keys() == set()


@pytest.mark.campaign(short=0)
def test_its_types_are_those_of_the_contract_where_it_is_installed(place: Path) -> None:
    known = {"SORTS": contract.SORTS, "STATES": contract.MARKET_STATUSES}
    text = re.sub("SORTS|STATES", lambda found: " | ".join(map(json.dumps, known[found[0]])), TYPES)
    (place / "node.d.ts").write_text(NODE_SQLITE, "utf-8")
    wrong = [
        ('"open", category', '"opne", category'), ('"error"', '"stop"'), ('{ error: "" }', "{ error: 4 }"),
        ('"new", category', '"new", q'),
    ]  # fmt: skip
    mistaken = text
    for right, mistake in wrong:
        assert right in mistaken
        mistaken = mistaken.replace(right, mistake)
    said = [line for line in complaints(place, text, *PROGRAMS, mistaken).splitlines() if line[:1] != " "]
    assert len(said) == len(wrong), said
    assert all(line.startswith(f"program-{1 + len(PROGRAMS)}.ts(") and "error TS" in line for line in said), said


def test_programs_in_the_docs_have_at_most_ten_lines() -> None:
    assert max(program.strip().count("\n") + 1 for program in PROGRAMS) <= 10


@pytest.mark.campaign(short=0)
def test_all_open_markets_are_listed_as_the_docs_say(site: ChangingSite, url: str, place: Path) -> None:
    lines = shown(LIST, url, place)
    assert lines == shown(README, url, place)
    ids = [market["id"] for market in site.states()[0].values()]
    assert sorted(line.split()[1] for line in shown(SKILL, url, place)) == sorted(ids)
    questions = [f"{market['prob']} {market['question']}" for market in site.states()[0].values()]
    assert sorted(lines) == sorted(questions)
    assert len(lines) >= MARKETS


def test_a_dump_is_read_as_the_docs_say(site: ChangingSite, url: str, place: Path) -> None:
    (volume,) = shown(DUMP, url, place)
    assert float(volume) == sum(market["volume"] for market in site.states()[0].values()) > 0


def test_an_error_tells_what_the_docs_say(url: str, place: Path) -> None:
    (line,) = shown(REFUSED, url, place)
    assert line.startswith(
        f"400 [ 'limit' ] {url}/v1/public/markets?limit=1000 answers 400: invalid request: limit must"
    )


@pytest.mark.campaign(short=0)
def test_three_builds_are_followed_as_the_docs_say(site: ChangingSite, url: str, place: Path) -> None:
    for number in range(3):
        lines = shown(FOLLOW, url, place)
        text = [*site.dumps.values()][-1]
        assert (place / "markets.ndjson").read_bytes() == text
        assert len(lines) == (text.count(b"\n") if number == 0 else 5)
        site.edit()
        site.build()


def test_three_builds_are_followed_into_sqlite_as_the_docs_say(
    site: ChangingSite, url: str, installed: Path, tmp_path: Path
) -> None:
    """The last time the copy is damaged, and its place in the feed is lost."""
    told, program, package = [-1, 5, 5, 1], SQLITE.replace(ADDRESS, url), installed / "node_modules" / PACKAGE["name"]
    for number, many in enumerate(told):
        lines = deno(program, package, tmp_path, right="--allow-all").splitlines()
        text = [*site.dumps.values()][-1]
        with closing(sqlite3.connect(tmp_path / "markets.sqlite")) as database:
            found = [f"{line}\n" for (line,) in database.execute("SELECT line FROM markets ORDER BY id")]
            assert "".join(found).encode() == text
            assert len(lines) == (many if number else len(found))
            if number == 2:
                database.execute("DELETE FROM position")
                database.execute("UPDATE markets SET line = '{}' WHERE line = ?", [found[3].removesuffix("\n")])
                database.commit()
        if number < 2:
            site.edit()
            site.build()


def test_a_copy_in_sqlite_is_replaced_as_a_whole_or_not_at_all(client: Path, tmp_path: Path) -> None:
    program = f"""
    import {{ DatabaseSync }} from "node:sqlite";
    import {{ SqliteStore }} from {NAME};
    const store = new SqliteStore(new DatabaseSync(":memory:"));
    const told = async () => {{
      const {{ session, serial, lines, questions }} = await store.load();
      return [session, serial, [...lines], questions && [...questions]];
    }};
    const [lines, questions] = [new Map([["x", "1"], ["y", "2"]]), new Map([["q", "4"]])];
    const nothing = await told();
    await store.save({{ session: "a", serial: 1, lines, questions }});
    const failed = await store.save({{ session: "b", serial: 2, lines: questions, questions: new Map([["z", null]]) }})
      .catch((error) => error.message);
    const kept = await told();
    await store.save({{ session: "b", serial: 2, lines: new Map([["y", "3"]]), questions: null }});
    console.log(JSON.stringify([nothing, failed, kept, await told()]));
    """
    nothing, failed, kept, after = json.loads(deno(program, client, tmp_path))
    assert (nothing, after) == (["", 0, [], None], ["b", 2, [["y", "3"]], None])
    assert kept == ["a", 1, [["x", "1"], ["y", "2"]], [["q", "4"]]]
    assert "NOT NULL" in failed


def test_who_goes_on_sees_each_build_as_the_docs_say(site: ChangingSite, url: str, place: Path) -> None:
    program = GO_ON.replace(ADDRESS, url).replace("60_000", "20")
    assert program != GO_ON.replace(ADDRESS, url)
    (place / "program.js").write_text(program, "utf-8")
    with subprocess.Popen([node(), "program.js"], cwd=place, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            first = [running.stdout.readline() for _ in site.states()[0]]
            assert all(line.startswith("added ") for line in first)
            for _ in range(2):
                site.edit()
                site.build()
                kinds = sorted(running.stdout.readline().partition(" ")[0] for _ in range(5))
                assert kinds == ["added"] + ["changed"] * 4
        finally:
            running.kill()
