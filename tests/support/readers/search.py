"""Made-up sites with a search index, a naive search of the same markets, and searches in JavaScript engines."""

import json
import re
import subprocess
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import quickjs

from generator.api import contract
from generator.api.contract import MarketStatus, Sort, StatusFilter
from generator.config.settings import Config
from generator.edge import router, templates
from generator.edge.local.js_router import provide_digest
from generator.search import generation as index
from generator.search import words
from generator.search.buckets import SIZES, Sizes
from generator.search.words import Postings
from generator.tree import chunks, pages
from generator.tree.generation import ItemList
from tests.support import limits
from tests.support.programs import require
from tests.support.waiting import PATIENCE_S

#: The categories that have lists.
CATEGORIES: Final = ("crypto", "cry", "us-politics", "empty")
#: The limit and the position of a page in its key.
_PAGE: Final = re.compile("/([0-9]+)-[0-9]+/([0-9]+)[.]json$")
#: Objects by key.
Objects: TypeAlias = Mapping[str, str]
#: The text of an object by its key; None when there is none.
ReadText: TypeAlias = Callable[[str], str | None]
#: The answer of the router's core, and the keys of the objects that it read.
Answer: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Market:
    """What matters to a search; `rank` decides all sorts but `new`, each in its own way."""

    texts: tuple[str, ...]
    status: MarketStatus = "open"
    categories: tuple[str, ...] = ()
    rank: int = 0


def core(layout: str = "chunks") -> str:
    """The router's core of an edge that can search."""
    config = Config.model_validate({"variant": "extended", "layout": layout})
    return templates.rendered("edge/router.js.j2", router.reader_values(config) | router.search_values())


def item(number: int, market: Market) -> bytes:
    """An item, as lists show the market."""
    shown = {"id": f"{number:08x}-0000-4000-8000-000000000000", "question": market.texts[0], "volume": 100.0}
    return contract.encode({**shown, "status": market.status, "categories": market.categories})


def order(markets: Sequence[Market], sort: Sort) -> list[int]:
    """The numbers of all markets, the first of the list first."""
    newest = range(len(markets) - 1, -1, -1)
    turn = contract.SORTS.index(sort) + 1
    return [*newest] if sort == "new" else sorted(newest, key=lambda number: markets[number].rank * turn % 7919)


def generation(
    markets: Sequence[Market], layout: str, sizes: Sizes = SIZES
) -> tuple[index.SearchIndex, list[pages.PagedList | chunks.ChunkedList]]:
    """The index of the markets, and the lists `all/<sort>`; a market's number is its place in `markets`."""
    vocabulary = words.Vocabulary()
    postings, orders, lists = Postings(), {}, list[pages.PagedList | chunks.ChunkedList]()
    encoded = [item(number, market) for number, market in enumerate(markets)]
    for market in markets:
        postings.add(vocabulary.of_texts(market.texts), market.categories)
    postings.mention(CATEGORIES)
    for sort in contract.SORTS:
        found = order(markets, sort)
        source = ItemList(f"all/{sort}", [encoded[number] for number in found])
        lists.append(chunks.ChunkedList(source) if layout == "chunks" else pages.PagedList(source))
        first = source.items[0] if source.items and layout == "pages" else b""
        orders[sort] = index.Order(lists[-1].name, found, first)
    objects = index.WordObjects.of(postings.in_order(), len(markets), sizes)
    return index.SearchIndex(objects, [market.status for market in markets], orders, sizes.span), lists


def small(span: int = 5, target: int = 24) -> Sizes:
    """Sizes of an index whose objects hold little, so that a few markets have many."""
    return Sizes(target=target, most=1 << 20, quick=24, span=span)


def objects(markets: Sequence[Market], layout: str = "chunks", sizes: Sizes = SIZES) -> dict[str, str]:
    """All objects that a search may read; of all pages, which are many, it reads few."""
    made, lists = generation(markets, layout, sizes)
    found = dict([*made.objects(), *made.first_pages()])
    with limits.only(index.BLOCK_SIZES):
        found |= {key: body for one in lists for key, body in one.objects() if _is_read(key)}
    return {key: body.decode() for key, body in found.items()}


def _is_read(key: str) -> bool:
    """Whether a search reads an object of a list: a page, if no greater size has one for its items."""
    page = _PAGE.search(key)
    return not page or int(page[1]) == max(size for size in index.BLOCK_SIZES if size <= int(page[2]))


# ── the naive search ──────────────────────────────────────────────────────────────────────────────────────────────


def folded(text: str) -> str:
    return "".join(
        char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char)[0] != "M"
    ).casefold()


@cache
def is_unspaced(char: str) -> bool:
    name = unicodedata.name(char, "")
    scripts = "CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HENTAIGANA"
    signs = (
        "IDEOGRAPHIC NUMBER", "IDEOGRAPHIC ITERATION", "IDEOGRAPHIC CLOSING", "VERTICAL KANA", "VERTICAL IDEO",
        "HANGZHOU", "MASU",
    )  # fmt: skip
    return name.startswith(scripts + signs)


@lru_cache(10_000)
def runs(text: str) -> tuple[tuple[str, bool], ...]:
    """The words of a text, and runs of letters of scripts without spaces, of which it says so."""
    return (*_runs(text),)


def _runs(text: str) -> Iterator[tuple[str, bool]]:
    run, was_unspaced = "", False
    for char in f"{folded(text)} ":
        is_letter, unspaced = unicodedata.category(char)[0] in "LN", is_unspaced(char)
        if run and (not is_letter or unspaced != was_unspaced):
            yield run, was_unspaced
            run = ""
        if is_letter:
            run, was_unspaced = run + char, unspaced


def is_match(q: str, texts: Sequence[str]) -> bool:
    """Whether a market with these texts has all words of the query."""
    found = [run for text in texts for run in runs(text)]
    words = [run[:100] for run, unspaced in found if not unspaced]
    strings = [run for run, unspaced in found if unspaced]

    def has_string(part: str) -> bool:
        pairs = [first + second for first, second in pairwise(part)] or [part]
        return all(any(pair in string for string in strings) for pair in pairs)

    def has_word(part: str) -> bool:
        return part in words if len(part) <= 2 else any(word.startswith(part[:100]) for word in words)

    return all(has_string(part) if unspaced else has_word(part) for part, unspaced in runs(q))


def is_searchable(q: str) -> bool:
    return len(q) <= 100 and bool(runs(q))


def scan(
    markets: Sequence[Market], status: StatusFilter, sort: Sort, q: str, category: str | None = None
) -> list[bytes]:
    """The items that a walk finds, in order."""
    states = contract.STATES_OF_FILTER[status]
    return [
        item(number, markets[number])
        for number in order(markets, sort)
        if markets[number].status in states
        and (category is None or category in markets[number].categories)
        and is_match(q, markets[number].texts)
    ]


# ── engines ───────────────────────────────────────────────────────────────────────────────────────────────────────

_RUN: Final = """
function ask(query) {
  const read = [];
  let found = route('GET', MARKETS, query, digest);
  while (found.status === undefined) {
    found.read.forEach(function (key) { read.push(key); });
    // As `serve` does: what is known travels as JSON.
    found = cut(JSON.parse(JSON.stringify(found)), found.read.map(function (key) { return readText(key); }), digest);
  }
  return { status: found.status, headers: found.headers, body: found.body, read: read };
}
function walk(query) {
  const answers = [ask(query)];
  for (;;) {
    const last = answers[answers.length - 1];
    const cursor = last.status === 200 ? JSON.parse(last.body).nextCursor : null;
    if (cursor === null || answers.length > 500) return answers;
    answers.push(ask(query + '&cursor=' + cursor));
  }
}
"""
_PROGRAM: Final = """
const crypto = require('crypto');
const fs = require('fs');
function digest(text) { return crypto.createHash('sha256').update(text).digest('hex'); }
let objects;
function readText(key) { return key in objects ? objects[key] : null; }
const results = JSON.parse(fs.readFileSync(%s, 'utf8')).map(function (site) {
  objects = site[0];
  return site[1].map(walk);
});
fs.writeFileSync(%s, JSON.stringify(results));
"""
#: A site, and queries of which each is walked.
Task: TypeAlias = tuple[Objects, Sequence[str]]
#: The answers of each walk, for each task.
Engine: TypeAlias = Callable[[str, Sequence[Task], Path], list[list[list[Answer]]]]


class InQuickjs:
    """The core in QuickJS, for many sites one after the other."""

    def __init__(self, script: str) -> None:
        self._text: ReadText = lambda _: None
        self._context = quickjs.Context()
        provide_digest(self._context)
        self._context.add_callable("readText", self._read)
        self._context.eval(script + _RUN)

    def _read(self, key: str) -> str | None:
        return self._text(key)

    def ask(self, read: ReadText, query: str) -> Answer:
        """The answer to one query."""
        self._text = read
        answer: Answer = json.loads(self._context.eval(f"JSON.stringify(ask({json.dumps(query)}))"))
        return answer

    def asked(self, query: str) -> Any:
        """What the core searches for, before it has read anything; a cache knows a search by it."""
        return json.loads(self._context.eval(f"JSON.stringify(route('GET', MARKETS, {json.dumps(query)}, digest))"))

    def walk(self, site: Objects, query: str) -> list[Answer]:
        """The answers to a query, and to those with the cursors that follow."""
        self._text = site.get
        answers: list[Answer] = json.loads(self._context.eval(f"JSON.stringify(walk({json.dumps(query)}))"))
        return answers


def items_of(answers: Sequence[Answer]) -> list[bytes]:
    """The items of pages, as they were sent."""
    items = list[bytes]()
    for answer in answers:
        json.loads(answer["body"])
        head, _, _ = answer["body"].rpartition('],"nextCursor":')
        lines = head.removeprefix('{"items":[').replace('},{"id"', '}\n{"id"').split("\n")
        items += [line.encode() for line in lines if line]
    return items


def in_program(program: str, script: str, tasks: Sequence[Task], folder: Path) -> list[list[list[Answer]]]:
    """The same in `node` or `njs`, for all sites at once."""
    path = require(program, reason="searches are not run in it")
    given, answers, text = (folder / f"{program}-{name}" for name in ("tasks.json", "answers.json", "search.js"))
    given.write_text(json.dumps(tasks), "utf-8")
    places = (json.dumps(str(place)) for place in (given, answers))
    text.write_text(script + _RUN + _PROGRAM % tuple(places), "utf-8")
    done = subprocess.run([path, text], capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    results: list[list[list[Answer]]] = json.loads(answers.read_text("utf-8"))
    return results
