"""The HTML pages as files: when they are written, what their policy allows, and the vendored renderer."""

import hashlib
import json
import re
import sqlite3
from base64 import b64encode
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.builder.inspection import pages as inspection
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.inspection.pages import PublishedDownloads
from generator.builder.report import Report
from generator.config.settings import Config
from generator.site.families import openapi
from generator.tree import files as names
from tests.builder.inspection.full_sites import built
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF, NOW, build_now, make_config
from tests.support.sites.rows import catalog_of, insert_market, market_id, public_market

#: dist/rapidoc-min.js of rapidoc 9.3.8 on npm: `npm pack rapidoc@9.3.8`.
RAPIDOC: Final = "affbd173a65e870e18f392cca963113bcdafb6e50e88cd2f6a834a65b22db94d"
#: dist/d3.min.js of d3 7.9.2 and dist/plot.umd.min.js of @observablehq/plot 0.6.17 on npm.
PLOTTERS: Final = {
    "vendor/plot/d3.min.js": "912111098ea99503a6f4967361d2bbdc9dbf58cf9c678c8e27e5b02d1a07f0c1",
    "vendor/plot/plot.umd.min.js": "4358086467740777dd788d6b27a95cebdbaefdd50c730a3060117073bd7134cb",
}
COST: Final = {
    "pricesAsOf": "2026-01-01",
    "layouts": {
        "pages": {
            "objects": 63_135,
            "bytes": 476_000_000,
            "putsPerMonth": 45_000_000,
            "usdPerMonth": {"S3 + CloudFront": 225.5, "R2": 202.5},
        },
        "chunks": {"objects": 900, "bytes": 4_000_000, "putsPerMonth": 90_000, "usdPerMonth": {"R2": 0.41}},
    },
}


class Elements(HTMLParser):
    """The start tags of a page, and the text of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.code: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            kind = self.tags[-1][1].get("type") or self.tags[-1][0]
            self.code.append((kind, data))


def pages(tmp_path: Path, config: Config | None = None, **report: Any) -> dict[str, str]:
    """The pages of one market, with additional fields in the report."""
    made = Report(as_of=NOW, source="sqlite:///markets.db", built=1)
    excerpts = Excerpts(catalog_of(public_market()))
    nothing = PublishedDownloads(None, None)
    rendered = inspection.render(config or make_config(tmp_path), {**made.content(), **report}, excerpts, nothing)
    return {name: body.decode() for name, body in rendered}


def test_the_page_leads_to_every_file_to_take_away_and_to_the_feeds(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database)
    for volume in (1.0, 2_000.0):
        database.execute("UPDATE markets SET volume = ?", [volume])
        build_now(make_config(tmp_path))
    output = tmp_path / "output"
    page = (output / names.INSPECTION).read_text()
    links = {str(dict(attributes).get("href")) for tag, attributes in Elements(page).tags if tag == "a"}
    offered = {link for link in links if link.startswith((f"{keys.FEEDS}/", *map(keys.list_prefix, keys.DOWNLOADS)))}
    (dump,) = json.loads((output / keys.head(keys.DUMPS)).read_bytes())["markets"]
    (step,) = json.loads((output / keys.head(keys.CHANGES)).read_bytes())["steps"]
    feeds = {keys.feed(name, form) for name in ("new", "resolved") for form in ("json", "atom")}
    files_ = {keys.chunk(keys.DUMPS, dump["name"]), keys.chunk(keys.CHANGES, step["name"])}
    assert offered == feeds | files_ | {*map(keys.head, keys.DOWNLOADS), keys.ATTACH}
    assert all((output / link).is_file() for link in offered)
    text = " ".join(re.sub(r"<[^>]+>", "", page).split())
    assert f"The dump holds the 1 market that lists hold, as of {NOW[:10]} {NOW[11:16]} UTC." in text
    assert "The change feed is at serial 2 of session" in text


# ── when they are written ─────────────────────────────────────────────────────────────────────────────────────────


def test_pages_that_are_in_place_are_left_alone_and_edited_or_deleted_ones_restored(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    """Where Parquet is published, there is one for histories."""
    insert_market(database)
    places = [built(tmp_path).output / name for name in names.PAGES]
    stamps, bodies = [place.stat().st_mtime_ns for place in places], [place.read_bytes() for place in places]
    built(tmp_path)
    assert [place.stat().st_mtime_ns for place in places] == stamps
    for edited, deleted in zip(places[::2], places[1::2], strict=False):
        edited.write_text("edited")
        deleted.unlink()
    built(tmp_path)
    assert [place.read_bytes() for place in places] == bodies


def test_the_page_agrees_with_the_report_even_after_a_build_without_changes(
    tmp_path: Path, database: sqlite3.Connection
) -> None:
    insert_market(database, 1)
    insert_market(database, 2)
    build_now(make_config(tmp_path))
    database.execute("DELETE FROM markets WHERE id = ?", [market_id(2)])
    later = AS_OF + timedelta(hours=1)
    build_now(make_config(tmp_path), later, shrink=True)
    build_now(make_config(tmp_path), later)
    report = json.loads((tmp_path / "output" / "report.json").read_bytes())
    assert report["run"]["withdrawn"] == [market_id(2)]
    assert settings((tmp_path / "output" / "index.html").read_text("utf-8"))["report"] == report


# ── what they hold ────────────────────────────────────────────────────────────────────────────────────────────────


def settings(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="settings">(.*?)</script>', page)
    assert found
    content: dict[str, Any] = json.loads(found[1])
    return content


@pytest.mark.parametrize("name", ["index.html", "api.html"])
def test_a_page_has_no_code_but_its_own_and_leads_to_no_other_host(tmp_path: Path, name: str) -> None:
    page = Elements(pages(tmp_path)[name])
    policy = next(attributes["content"] or "" for tag, attributes in page.tags if "http-equiv" in attributes)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    code = [text for kind, text in page.code if kind == "script"]
    hashes = [f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in code]
    assert len(hashes) == 1
    assert hashes[0] in rules["script-src"].split()
    assert len(page.tags) > 10
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert not [name for name in ("src", "href") if "//" in (attributes.get(name) or "")], attributes


def test_scripts_turn_no_text_into_markup_or_code() -> None:
    scripts = [path.read_text("utf-8") for path in (ROOT / "templates" / "inspection").glob("*.js")]
    assert len(scripts) == 7
    makers = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "srcdoc", "DOMParser")
    assert [maker for maker in makers for script in scripts if maker in script] == []


def test_what_the_report_quotes_is_escaped(tmp_path: Path) -> None:
    row = {"relation": "markets", "key": "<q>k</q>", "title": "</script><i>t</i>", "reason": "<u>r</u>", "rows": 1}
    quoted: dict[str, Any] = {"source": "<s>db</s>", "takenDown": ["<a>"], "remarks": ["market: <q>remarkable</q>"]}
    page = pages(tmp_path, quarantined=[row], **quoted)["index.html"]
    assert "market: &lt;q&gt;remarkable&lt;/q&gt;" in page
    assert not {"q", "i", "u", "s"} & {tag for tag, _ in Elements(page).tags}
    assert "&lt;q&gt;k&lt;/q&gt;" in page
    assert settings(page)["report"]["quarantined"] == [row]


def test_the_cost_is_shown_for_each_layout_and_store(tmp_path: Path) -> None:
    page = pages(tmp_path, cost=COST)["index.html"]
    cost = re.sub(r"<[^>]+>|\s+", " ", page[page.index('id="cost"') : page.index('id="calls"')]).split()
    assert "As configured: 202.50 USD on R2, 225.50 USD on S3 + CloudFront." in " ".join(cost)
    assert "2026-01-01." in cost
    for row in ("pages in use 63,135 476.0 MB 45,000,000 202.50 225.50", "chunks 900 4.0 MB 90,000 0.41 n/a"):
        assert row in " ".join(cost)


def test_the_documentation_holds_the_published_document(tmp_path: Path) -> None:
    page = pages(tmp_path)["api.html"]
    (document,) = [text for kind, text in Elements(page).code if kind == "application/json"]
    shown, published = json.loads(document), json.loads(json.dumps(openapi(make_config(tmp_path))))
    assert shown["components"] == published["components"]
    asked, described = (
        [parameter["name"] for path in document["paths"].values() for parameter in path["get"].pop("parameters", [])]
        for document in (shown, published)
    )
    assert shown == published
    assert asked == described
    assert keys.OPENAPI in page


# ── the vendored renderer ────────────────────────────────────────────────────────────────────────────────────────


def test_the_renderer_is_the_published_one_with_its_licences(tmp_path: Path) -> None:
    folder = ROOT / "templates" / "vendor" / "rapidoc"
    assert hashlib.sha256((folder / "rapidoc-min.js").read_bytes()).hexdigest() == RAPIDOC
    assert "MIT License" in (folder / "LICENSE.txt").read_text("utf-8")
    made = pages(tmp_path)
    assert {name for name in made if name.startswith("vendor/")} == {
        f"vendor/rapidoc/{path.name}" for path in folder.iterdir()
    } - {"vendor/rapidoc/README.md"}
    assert hashlib.sha256(made[names.RENDERER].encode()).hexdigest() == RAPIDOC


def test_the_plotters_are_the_published_ones() -> None:
    for name, digest in PLOTTERS.items():
        assert hashlib.sha256((ROOT / "templates" / name).read_bytes()).hexdigest() == digest
