"""Asks a site for everything that it tells of questions, and says what differs from the oracle, as sentences."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from tests.questions import documents
from tests.questions.asking import MARKETS, QUESTIONS, Get, Site, UnexpectedError
from tests.questions.comparing import Checked, unequal_details, unequal_headers, unequal_rows
from tests.questions.oracle import DEFAULT_SORTS, FILTERS, SORTS, Expected, Oracle, Setting
from tests.questions.refusals import NOBODY, absent, missing, refusals


def check(
    get: Get,
    database: Path,
    setting: Setting,
    *,
    limits: Sequence[Sequence[int]] = ((100,), (7,), (20, 3, 50, 1)),
    canaries: re.Pattern[str] | None = None,
    more_paths: Iterable[str] = (),
) -> Checked:
    """Compare all that a site answers with what it must.

    Each of `limits` is a walk of every list, with these limits in turn. No body may hold a text that the pattern of
    `canaries` finds, unless the oracle shows it; `more_paths` are asked for this alone. Categories are those that
    build.json names, unless the setting has some.
    """
    site, checked = Site(get), Checked()
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            oracle = oracle_of(site, connection, setting)
        for sentences in _checks(site, oracle, limits, checked):
            checked.differences += sentences
        for path in more_paths:
            site.ask(path)
        if canaries is not None:
            checked.differences += leaks(site, canaries, oracle.public_text)
    except UnexpectedError as error:
        checked.differences.append(str(error))
    return checked


def leaks(site: Site, canaries: re.Pattern[str], public: str) -> Iterator[str]:
    """The canaries in all bodies that were read."""
    allowed = {*canaries.findall(public)}
    for path, body in site.bodies.items():
        shown = documents.text_of(path, body).decode(errors="replace")
        yield from (f"{path} shows {text}" for text in sorted({*canaries.findall(shown)} - allowed))


def oracle_of(site: Site, database: sqlite3.Connection, setting: Setting) -> Oracle:
    """The oracle for the markets that the site lists."""
    if setting.is_extended and not setting.categories:
        found = site.found("/v1/build.json").get("categories", ())
        setting = replace(setting, categories={one["name"]: one["slug"] for one in found})
    items = site.walk(MARKETS, (100,), status="all", sort="new")
    return Oracle(database, items, setting, lambda name: site.ask(f"{MARKETS}/{name}")[0] == 200)


def _checks(site: Site, oracle: Oracle, limits: Sequence[Sequence[int]], checked: Checked) -> Iterator[Iterable[str]]:
    yield blocked_markets(oracle)
    if not oracle.exists:
        yield absent(site, [QUESTIONS, f"{QUESTIONS}/{NOBODY}", f"{QUESTIONS}/x", f"{QUESTIONS}?status=x"])
        yield documents.absent(site)
        return
    if oracle.setting.has_lists:
        yield default_lists(site, oracle)
        yield lists(site, oracle, limits, checked)
        yield refusals(site, oracle, checked)
        yield documents.feed(site, oracle)
    else:
        yield absent(site, [QUESTIONS, f"{QUESTIONS}?status=all&sort=new", f"{QUESTIONS}?status=x", f"{QUESTIONS}?q=x"])
        yield documents.feed_of_markets(site, oracle)
    yield details(site, oracle, checked)
    yield missing(site, oracle, checked)
    yield documents.definitions(site, oracle)
    checked.definitions = len(oracle.questions)


def blocked_markets(oracle: Oracle) -> Iterator[str]:
    for name in sorted(oracle.markets.keys() & oracle.blocked):
        yield f"market {name} is listed although it is blocked"


def lists(site: Site, oracle: Oracle, limits: Sequence[Sequence[int]], checked: Checked) -> Iterator[str]:
    """Every list, walked in several ways."""
    for name, slug in [(None, None), *oracle.setting.categories.items()]:
        for status in FILTERS:
            for sort in SORTS:
                rows = [row.raw for row in oracle.listed(status, sort, name)]
                spelled = slug if (status, sort) == ("all", "new") else name
                of_category = {"category": spelled} if spelled else {}
                for walk in limits:
                    parameters = {"status": status, "sort": sort, **of_category}
                    checked.lists, checked.rows = checked.lists + 1, checked.rows + len(rows)
                    yield from walked(site, parameters, walk, rows)


def walked(site: Site, parameters: Mapping[str, str], limits: Sequence[int], expected: Sequence[str]) -> Iterator[str]:
    about = f"list {urlencode(parameters)} with limit {','.join(map(str, limits))}"
    found = list[str]()
    for items, has_more in site.pages(QUESTIONS, limits, **parameters):
        found += items
        if has_more and (not items or len(found) >= len(expected)):
            yield f"{about}: a cursor follows {len(found)} of {len(expected)} rows, and {len(items)} on this page"
        if has_more and len({*limits}) == 1 and len(items) != limits[0]:
            yield f"{about}: a page has {len(items)} rows before the end"
    if found != [*expected]:
        yield from (f"{about}: {sentence}" for sentence in unequal_rows(found, expected))


def default_lists(site: Site, oracle: Oracle) -> Iterator[str]:
    """Defaults of status, sort and limit, unknown parameters, and headers as for markets."""
    queries = {"": ("open", "popular"), "?unknown=1&unknown=2": ("open", "popular"), "?sort=new": ("open", "new")}
    queries |= {f"?status={status}": (status, sort) for status, sort in DEFAULT_SORTS.items()}
    for query, (status, sort) in queries.items():
        items, cursor, headers = site.page(f"{QUESTIONS}{query}")
        rows = [row.raw for row in oracle.listed(status, sort)]
        if items != rows[:20] or (cursor is None) != (len(rows) <= 20):
            yield f"{QUESTIONS}{query} is not the first page of {status}/{sort} with 20 rows"
        _, _, of_markets = site.page(f"{MARKETS}{query}")
        yield from unequal_headers(f"{QUESTIONS}{query}", headers, of_markets, has_more=cursor is not None)
        if "link" in headers and f"cursor={cursor}>" not in headers["link"]:
            yield f"{QUESTIONS}{query} has the link {headers['link']}, but the cursor {cursor}"


def details(site: Site, oracle: Oracle, checked: Checked) -> Iterator[str]:
    """Every public question by its id and slug, in any case."""
    for name, expected in oracle.questions.items():
        for reference in _references(oracle.setting, name, expected):
            checked.details += 1
            path = f"{QUESTIONS}/{reference}"
            status, headers, body = site.ask(path)
            if status != 200:
                yield f"{path} is a {status}, not question {name}"
                continue
            yield from (f"{path}: {one}" for one in unequal_details(body.decode(), expected.detail))
            of_market = site.ask(f"{MARKETS}/{expected.members[0].market_id}")[1]
            yield from unequal_headers(path, headers, of_market, has_more=False)


def _references(setting: Setting, name: str, expected: Expected) -> Iterator[str]:
    yield from (name, name.upper())
    if setting.is_extended and expected.slug:
        yield from {expected.slug, expected.slug.upper(), expected.slug.lower(), expected.slug.swapcase()}
