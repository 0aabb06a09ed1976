"""The router core and its paths, run on one table of requests in every available JavaScript engine."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import quote_plus

import pytest
import quickjs
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import cursors, downloads, keys, slugs
from generator.api.contract import LIMIT_MAX, LIMIT_MIN, Variant
from generator.config.downloads import Changes, Dumps, Feeds
from generator.config.settings import Config
from generator.edge import router
from generator.markets import slugs as market_slugs
from generator.site.families import documents_of
from generator.tree import pages
from generator.tree.generation import ItemList
from generator.tree.layouts import LAYOUTS
from tests.support.campaigns import full_tier, sample
from tests.support.edges.cases import MOST_READS, Case, mismatch, requests, searches
from tests.support.edges.engines import ENGINES, NOWHERE, Request, in_quickjs
from tests.support.edges.windows import LISTS, near_borders
from tests.support.readers import lists
from tests.support.sites.builds import Outputs

#: A folder of objects, and the page for each request.
Windows: TypeAlias = tuple[Path, Mapping[Request, bytes]]

CORES: Final[Mapping[Variant, str]] = {variant: router.render(Config(variant=variant)) for variant in get_args(Variant)}
CHUNKED: Final[Mapping[Variant, str]] = {
    variant: router.render(Config(variant=variant, layout="chunks")) for variant in get_args(Variant)
}
CASES: Final[Mapping[Variant, int]] = {"core": 720, "extended": 920}
#: Rules of the core, by the layout and the variant of the build that shows them, and what each is changed to.
CHANGED_RULES: Final[Mapping[tuple[str, Variant], Mapping[str, str]]] = {
    ("pages", "core"): {
        "return fixed(405)": "method = 'GET'",
        "if (method === 'OPTIONS') return fixed(204);": "",
        "path.length + query.length > 4000": "path.length + query.length > 4001",
        " || id.indexOf('/') !== -1": "",
        "path.indexOf(API) === 0": "true",
        "if (isFile(name)) return": "if (false) return",
        "isNamed = isHex(name.slice(start, end))": "isNamed = true",
        "if (isFile(key.slice(3))) return miss(fixed(404));": "",
        "path.slice(MARKETS.length + 1).toLowerCase()": "path.slice(MARKETS.length + 1)",
        " || text[13] !== '-'": "",
        "!== HEAD) return miss(refuse(['cursor.gone']));": "!== HEAD) return fixed(404);",
        "!== check) return false;": "!== check) return null;",
        "(DETAILS) === 0) return miss(fixed(404));": "(DETAILS) === 0) return refuse(['cursor']);",
        "name in given || value === ''": "value === ''",
        "isPlain ? written : decode(written)": "written",
        "if ('q' in given) refused.push('q');": "",
        "if (sort === null)": "if (sort === null && refused.length === 0)",
        "limit < 1": "limit < 2",
        "number >= 0 && String(number) === text": "number >= 0",
        '"archive":"ended"': '"archive":"popular"',
        ".slice(0, CHECK) !== check": ".slice(0, CHECK) === 'x'",
        "digest(name + '/' + generation": "digest('open/popular/' + generation",
        '"pc".indexOf(generation[0]) === -1 || ': "",
        "position < 1": "position < 0",
        "limit - place.position % limit": "limit",
        "while (place.position % size !== 0) size -= 1;": "",
        "place.position / size / 100": "place.position / size / 99",
    },
    ("pages", "extended"): {
        "const id = reference.toLowerCase();": "const id = reference;",
        "isBelow ? path.slice(MARKETS.length + 1) : ''": "path.slice(MARKETS.length + 1)",
        "isSlug(reference, 255)": "isSlug(reference, 256)",
        'const OTHERS = "': 'const OTHERS = "_',
        "return encodeURIComponent(text) === text;": "return true;",
        "'/' + named + '.json'": "'/' + id + '.json'",
        "status + category + '/' + sort": "status + '/' + sort",
        "if (category === null) refused.push('category');": "",
        "words === text || (isDerived &&": "words === text || (false &&",
        "if (words === text ||": "if (words === text.toLowerCase() ||",
        "(letter >= '0' && letter <= '9')": "false",
        "(isDerived && words ===": "(isDerived || words ===",
        "if (words[words.length - 1] === '-')": "if (false)",
        '(words || "category")': "words",
        "text.length > 200": "text.length > 201",
        "if (text === undefined) return '';": "if (!text) return '';",
        "parts[2] !== FIRST && parts[2] !== HEAD": "parts[2] !== FIRST",
        "? fixed(503) : miss(refuse(['category']))": "? fixed(503) : fixed(503)",
        "!sort || category === null ?": "!sort ?",
    },
    ("chunks", "core"): {
        'const isPage = place.generation[0] === "p";': "const isPage = true;",
        "  return head;": "  return page;",
        "if (gone !== -1)": "if (gone === -2)",
        "stop: Math.min(found.limit, size)": "stop: size",
        "found.position >= index.count": "found.position > index.count",
        "if (index.entry(middle)[0] > place)": "if (index.entry(middle)[0] >= place)",
        "while (at < end)": "while (at === found.position)",
        "start: at - chunk.start": "start: 0",
        "end += part.stop - part.start;": "end += part.stop - part.start - 1;",
        "end === found.count ? 'null' :": "end === -1 ? 'null' :",
        'isFirst ? {"content-type"': 'true ? {"content-type"',
        "part.stop < part.size ? items.slice(0, -1) : items": "items",
    },
}


#: Every build in the engine that costs least, one of each layout in the others.
SHORT: Final = (*product(["quickjs"], LAYOUTS, CORES), ("njs", "chunks", "extended"), ("node", "pages", "core"))
#: With these, each engine has every layout and every variant.
BEYOND: Final = (("njs", "pages", "core"), ("node", "chunks", "extended"))


def sent(cases: list[Case]) -> list[Request]:
    return [(case.method, case.path, case.query) for case in cases]


@pytest.mark.parametrize(("engine", "layout", "variant"), full_tier((*SHORT, *BEYOND), short=SHORT))
def test_every_case_of_the_table(engine: str, layout: str, variant: Variant, outputs: Outputs, tmp_path: Path) -> None:
    output = outputs(variant, layout)
    cases = requests(output)
    core = CORES[variant] if layout == "pages" else CHUNKED[variant]
    results = ENGINES[engine](core, sent(cases), tmp_path, output)
    assert len(results) == len(cases) >= CASES[variant]
    assert sum(case.page is not None for case in cases) >= (0 if layout == "pages" else 150)
    wrong = [found for case, result in zip(cases, results, strict=True) if (found := mismatch(case, result))]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])


def _window(name: str, generation: str, position: int, limit: int) -> Request:
    status, sort = name.split("/")
    at = f"&cursor={cursors.mint(name, generation, position)}" if position else ""
    return "GET", f"/{keys.MARKETS}", f"status={status}&sort={sort}&limit={limit}{at}"


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Windows:
    """Generated lists in chunks, and pages around all their borders."""
    output, pages_of = tmp_path_factory.mktemp("windows"), dict[Request, bytes]()

    def ask(one: ItemList, generation: str, positions: Iterable[int], limits: Iterable[int]) -> None:
        for position, limit in product(positions, limits):
            found = lists.page(one, generation, position, limit)
            pages_of[_window(one.name, generation, position, limit)] = found

    for name in ("all/new", "open/volume"):
        ask(LISTS[name], lists.put(output, [LISTS[name]])[name], (0, *near_borders(LISTS[name])), (1, 100))
    return output, pages_of


def shows_all(windows: Windows, results: Iterable[Mapping[str, Any]]) -> bool:
    answers = [result.get("settled") or result for result in results]
    return [answer.get("body") for answer in answers] == [page.decode() for page in windows[1].values()]


@pytest.mark.parametrize("engine", ENGINES)
def test_pages_from_any_place_are_those_of_the_list(engine: str, windows: Windows, tmp_path: Path) -> None:
    output, asked = windows
    results = ENGINES[engine](CHUNKED["core"], [*asked], tmp_path, output)
    assert shows_all(windows, results)
    assert {len(result["asked"]) for result in results} == {1, 2, MOST_READS}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("layout", "variant"), CHANGED_RULES)
def test_the_table_notices_every_changed_rule(
    layout: str, variant: Variant, outputs: Outputs, windows: Windows, tmp_path: Path
) -> None:
    output, unnoticed = outputs(variant, layout), list[str]()
    core, searched = (CORES if layout == "pages" else CHUNKED)[variant], {*searches(output)}
    cases = [case for case in requests(output) if case not in searched]
    for rule, changed in sample(CHANGED_RULES[layout, variant].items(), 8):
        assert core.count(rule) == 1, rule
        other = core.replace(rule, changed)
        # An engine that gives up on a case is a failure of the harness, too.
        with suppress(RuntimeError):
            results = in_quickjs(other, sent(cases), tmp_path, output)
            if any(mismatch(case, result) for case, result in zip(cases, results, strict=True)):
                continue
            # The lists of the build are too short for what follows.
            if shows_all(windows, in_quickjs(other, [*windows[1]], tmp_path, windows[0])):
                unnoticed.append(rule)
    assert not unnoticed


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_search_a_q_is_refused_with_the_reason(layout: Literal["pages", "chunks"], outputs: Outputs) -> None:
    output = outputs("extended", layout)
    searched = requests(output)
    cases = [case for case in requests(output, can_search=False) if replace(case, can_search=True) not in searched]
    assert len(cases) > 80
    core = router.render(Config(variant="extended", layout=layout, search="off"))
    results = in_quickjs(core, sent(cases), NOWHERE, output)
    assert [found for case, result in zip(cases, results, strict=True) if (found := mismatch(case, result))] == []


def test_the_router_takes_the_slugs_that_a_build_publishes_and_no_others(tmp_path: Path) -> None:
    letters = [chr(code) for code in range(0x300)] + ["\u212a", "\u017f", "\ud800", "🙂"]
    given = [f"a{letter}" for letter in letters] + ["a" * 255, "a" * 256, "snapshots"]
    usable = {slug for slug in given if market_slugs.references([("id", slug)]).usable}
    results = in_quickjs(CORES["extended"], [("GET", f"/{keys.MARKETS}/{slug}", "") for slug in given], tmp_path)
    assert {slug for slug, result in zip(given, results, strict=True) if "key" in result} == usable
    assert len(usable) == 66
    assert all(results[given.index(slug)]["key"] == keys.detail_by_slug(slug) for slug in usable)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.text(min_size=1, max_size=100) | st.text("aZ09-. é", min_size=1, max_size=60), max_size=50))
def test_the_router_finds_the_slug_of_every_name_that_a_build_publishes(names: list[str]) -> None:
    found = [slugs.of_category(name) for name in names]
    sent = [f"category={quote_plus(text)}" for text in names + found]
    results = in_quickjs(CORES["extended"], [("GET", f"/{keys.MARKETS}", query) for query in sent], NOWHERE)
    for name, slug, result in zip(names + found, found + found, results, strict=True):
        if not slugs.is_derived(name) or name == slug:
            assert result["key"] == keys.first_page(f"open.{slug}/popular", 20), name


def _places() -> Iterator[tuple[int, int]]:
    """Positions and limits: all small ones, and neighbourhoods of larger ones with many and with few divisors."""
    for position in [*range(1, 260), *range(5038, 5043), 9973, 99_990, 720_720, 999_999_937, 999_999_999]:
        yield from ((position, limit) for limit in range(LIMIT_MIN, LIMIT_MAX + 1))


@pytest.mark.campaign(short=0)
def test_a_changed_limit_leads_to_the_page_that_pages_cuts(tmp_path: Path) -> None:
    name, generation = "open/popular", "p" + "5" * (cursors.GENERATION_LENGTH - 1)
    places = list(_places())
    queries = [f"limit={limit}&cursor={cursors.mint(name, generation, position)}" for position, limit in places]
    results = in_quickjs(CORES["core"], [("GET", f"/{keys.MARKETS}", query) for query in queries], tmp_path)
    assert len(results) == len(places) > 25_000
    for (position, limit), result in zip(places, results, strict=True):
        assert result["key"] == keys.page(name, generation, pages.size_at(position, limit), position)


@pytest.mark.parametrize(
    ("key", "status"),
    [
        (keys.detail("3f0c8a52-6d1b-4c7e-9a34-5b8e2f7d1c60"), 404),
        (keys.detail_by_slug("x"), 404),
        (keys.page("open/new", "p" + "0" * 19, 20, 20), 400),
        (keys.index("open/new", "c" + "0" * 19), 400),
        (keys.first_page("open/new", 20), 503),
        (keys.head("open/new"), 503),
        (keys.first_page("open.sports/new", 20), 400),
        (keys.head("open.sports/new"), 400),
        (keys.PRICES, 404),
        (keys.SNAPSHOT, 503),
        (keys.BUILD, 503),
    ],
)
def test_only_what_may_be_absent_is_the_readers_mistake(key: str, status: int) -> None:
    context = quickjs.Context()
    context.eval(CORES["extended"])
    assert json.loads(context.eval(f"JSON.stringify(missing({json.dumps(key)}))"))["status"] == status


# ── paths of documents and files ──────────────────────────────────────────────────────────────────────────────────────


EVERYTHING: Final = Config(dumps=Dumps(parquet=True))
FULL: Final = Config(dumps=Dumps(parquet=True, fills=True))
#: Names of files and documents below the API's root, with all their parts, and others that are nearly the same.
_FOLDERS: Final = [
    "dumps/", "dumps/markets/", "changes/", "history/", "dumps/history/", "dumps/fills/", "state=archive/",
    "dumps/candles/", "candles/", "day/", "hour/", "closes/", "state=open/", "period=2026-10/",
    "period=2026/", "period=202/", "period=2026-1/", "period=0000-99/", "period=2026-100/", "period=202a/",
    "feeds/", "v1/", "/", "../", "%2f", "*", "0",
]  # fmt: skip
_FILES: Final = [
    *("0123456789abcdef" * 2, "0" * 31, "0" * 33, "A" * 32, "g" * 32, "*"),
    *("new", "head", "index", "llms", "changelog", "openapi", "build"),
]
_NAMES: Final = st.builds(
    lambda folders, file, end: "".join([*folders, file, end]),
    st.lists(st.sampled_from(_FOLDERS), max_size=4),
    st.sampled_from(_FILES),
    st.sampled_from([".ndjson.gz", ".parquet", ".atom", ".json", ".txt", ".gz", ".ndjson", "", "/", ".parquet/", "\n"]),
)


@pytest.mark.parametrize("config", [EVERYTHING, FULL], ids=["without fills", "with fills"])
@settings(deadline=None, max_examples=12)
@given(names=st.lists(_NAMES, min_size=50, max_size=50))
def test_the_router_takes_the_names_of_files_that_the_pattern_takes(config: Config, names: list[str]) -> None:
    tables, folders = downloads.tables(fills=config.dumps.fills), ("period=2026-10", "period=2025")
    whole = [f"dumps/{table}/{one}/{'0a' * 16}.parquet" for table in tables for one in folders]
    names = [*names, *whole, f"dumps/markets/{'0a' * 16}.parquet", f"changes/{'0a' * 16}.ndjson.gz"]
    names.append(f"{whole[0]}\n")
    results = in_quickjs(router.render(config), [("GET", f"/v1/{name}", "") for name in names], NOWHERE)
    documents = documents_of(config)
    for name, result in zip(names, results, strict=True):
        is_file = re.fullmatch(router.pattern(config), name) is not None
        wanted = f"v1/{name}" if is_file else documents.get(name)
        assert result.get("key") == wanted, name
        assert not is_file or keys.is_download(f"v1/{name}")
    assert sum("key" in result for result in results) >= len(whole)


@pytest.mark.parametrize(
    ("config", "routed"),
    [
        (EVERYTHING, "head steps dump points candles feed"),
        (FULL, "head steps dump points period candles feed"),
        (Config(), "head steps dump feed"),
        (Config(changes=Changes(enabled=False)), "dump feed"),
        (Config(dumps=Dumps(ndjson=False, parquet=True)), "feed"),
        (Config(feeds=Feeds(enabled=False)), "head steps dump"),
    ],
)
def test_only_what_the_settings_switch_on_is_routed(config: Config, routed: str) -> None:
    name = "0" * 32
    named = {
        "head": keys.head(keys.CHANGES),
        "steps": f"v1/changes/{name}.ndjson.gz",
        "dump": f"v1/dumps/markets/{name}.ndjson.gz",
        "former": f"v1/dumps/history/state=open/part=00/{name}.parquet",
        "points": f"v1/dumps/history/period=2026/{name}.parquet",
        "period": f"v1/dumps/fills/period=2026-01/{name}.parquet",
        "candles": f"v1/dumps/candles/hour/period=2026-01/{name}.parquet",
        "feed": keys.feed("resolved", "json"),
    }
    results = in_quickjs(router.render(config), [("GET", f"/{key}", "") for key in named.values()], NOWHERE)
    found = [what for what, result in zip(named, results, strict=True) if "key" in result]
    assert " ".join(found) == routed
    assert {result.get("status", 404) for result in results} == {404}
