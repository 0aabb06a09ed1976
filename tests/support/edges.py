"""The tables of requests in cases/, and what every edge must make of each: shared by the harness of every runtime.

requests.json is the core's. extended.json is what the extended variant makes of other requests, and of some of these,
in a build with the settings EXTENDED of support.py. A row with `search` is answered by the search index: it names the
list, and whether its page has items. On an edge that cannot search, the row is a 400 for `unsearched`, or for `q`.

A harness asks `requests(output)` for the table, runs it, and asserts both that `mismatch…` finds nothing and how many
cases it ran. Placeholders in the table stand for what only a build can tell:

    <<generation LIST>>             the name of the list's current generation
    <<mint LIST [GENERATION] POSITION>>   a cursor as `cursor.mint` would make it; GENERATION may be `@LIST`
    <<encoded …>> <<upper …>> <<forged …>> <<cut …>> <<headless …>>   the same cursor, disguised or damaged
    <<market>> <<MARKET>> <<Market>> <<market2>>   a market's id in three spellings, and its first two letters
    <<search LIST WORDS PLACE [GENERATION]>>   a cursor of a search: folded words joined by `+`, a place in `all/<sort>`
    <<slug>> <<SLUG>>               the slug of a market in two spellings
    <<by-slug SLUG>> <<by-slug>>    the key of the market with this slug; with the one above
    <<repeat COUNT TEXT>>           the text so many times
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from generator.api import contract, cursors, keys
from generator.api.contract import Variant
from generator.config.settings import Config
from generator.edge import responses
from generator.search import generation as index
from generator.tree import chunks
from tests.support import lists, published_search
from tests.support.builds import ROOT

TABLES: Final = ROOT / "tests" / "cases"
#: An index and two chunks.
MOST_READS: Final = 3

#: Rules of the core, each with a change that the table must show on whatever runs it.
CHANGED_RULES: Final = (
    ("!== 'HEAD') return fixed(405)", "!== 'HEAD') return fixed(404)"),
    (f"> {contract.LIMIT_MAX}", f"> {contract.LIMIT_MAX + 1}"),
    (".slice(0, CHECK) !== check", ".slice(0, CHECK) === ''"),
)
#: Rules that only the extended core has.
CHANGED_EXTENDED_RULES: Final = (
    ("'/' + named + '.json'", "'/' + id + '.json'"),
    ("status + category + '/' + sort", "status + '/' + sort"),
    ("if (category === null) refused.push('category');", ""),
)
#: Rules of a search, which every harness of searches must show, whatever it runs.
CHANGED_SEARCH_RULES: Final = (
    ("point >= 65 && point <= 90 ? point + 32 : point", "point"),
    ("if (seen[number] === step) {", "if (seen[number] <= step) {"),
    ("wanted.indexOf(1, search.from)", "wanted.indexOf(1, 0)"),
    ("if (asked.category !== '') words.push", "if (false) words.push"),
    ("states.length === 4 ||", "true ||"),
)
#: Each with the variant whose core has it.
CHANGED_RULES_BY_VARIANT: Final[tuple[tuple[Variant, str, str], ...]] = (
    *(("core", rule, changed) for rule, changed in CHANGED_RULES),
    *(("extended", rule, changed) for rule, changed in (*CHANGED_EXTENDED_RULES, *CHANGED_SEARCH_RULES)),
)


def full_tier(cases: Iterable[Any], *, short: Collection[Any]) -> list[Any]:
    """Parameters for all cases; only those of `short` run in the short tier."""
    beyond = pytest.mark.campaign(short=0)
    return [
        case if case in short else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=beyond)
        for case in cases
    ]


@dataclass(frozen=True)
class Case:
    """A request and its answer. `key` with an error status: the router names an object that does not exist.

    In the layout `chunks` the key names what a page is cut from: `page` has its bytes, and `is_first` tells which
    headers it has.
    """

    method: str
    path: str
    query: str
    status: int
    key: str | None
    invalid: tuple[str, ...]
    #: Statuses of a server that reads the path, or refuses the request, before the router runs.
    statuses: frozenset[int]
    #: Holds what no HTTP request line can.
    core_only: bool
    variant: Variant = "core"
    page: bytes | None = None
    is_first: bool = False
    #: Whether the edge answers `q`.
    can_search: bool = False

    @property
    def most_reads(self) -> int:
        """How many objects its page may be made of."""
        return index.MOST_OBJECTS if keys.SEARCH in (self.key or "") else MOST_READS

    @property
    def target(self) -> str:
        """The request target, path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path


def requests(output: Path, *, can_search: bool = True) -> list[Case]:
    """The table for the variant that was built, its placeholders filled in from the build.

    `can_search` is whether the edge answers `q` where the build has an index.
    """
    build = _Build(output, can_search=can_search)
    table = _rows("requests")
    if build.variant == "extended":
        table |= _rows("extended")
    return [_case(row, build) for row in table.values()]


def _rows(name: str) -> dict[str, Mapping[str, Any]]:
    table = json.loads((TABLES / f"{name}.json").read_text("utf-8"))
    rows = {row["request"]: row for row in table if "request" in row}
    assert len(rows) == sum("request" in row for row in table), "a request stands in the table twice"
    return rows


def searches(output: Path) -> list[Case]:
    """The part of the table that is answered by the search index."""
    return [case for case in requests(output) if keys.SEARCH in (case.key or "")]


def on_the_wire(output: Path) -> list[Case]:
    """The part of the table that can be sent over HTTP."""
    return [case for case in requests(output) if not case.core_only]


def _case(row: Mapping[str, Any], build: "_Build") -> Case:
    method, _, target = str(build.fill(row["request"])).partition(" ")
    path, _, query = target.partition("?")
    if "search" in row:
        return _search(row, build, method, path, query)
    invalid = row.get("invalid", ()) if build.can_search else row.get("unsearched", row.get("invalid", ()))
    key = build.fill(row["key"]) if "key" in row else None
    is_first = key is not None and keys.is_first_page(key)
    is_cut = build.is_chunked and key is not None and (is_first or _is_in_chunks(key))
    return Case(
        method=method,
        path=path,
        query=query,
        status=row["status"],
        key=_cut_from(str(key)) if is_cut else key,
        page=build.page(str(key), query) if is_cut and row["status"] == HTTPStatus.OK else None,
        is_first=is_first,
        invalid=tuple(_named(one, build.variant) for one in invalid),
        statuses=frozenset(row.get("server", [row["status"]])),
        core_only=row.get("core_only", False),
        variant=build.variant,
        can_search=build.can_search,
    )


def _search(row: Mapping[str, Any], build: "_Build", method: str, path: str, query: str) -> Case:
    """A row that is answered by the index, which is read even for some refusals."""
    status, invalid = row["status"], row.get("invalid", [])
    if not build.can_search:
        status, invalid = HTTPStatus.BAD_REQUEST, row.get("unsearched", ["q"])
    page = build.search_page(row["search"], query) if status == HTTPStatus.OK else None
    if page is not None:
        assert row["finds"] == bool(json.loads(page)["items"]), f"{query} finds {page[:200]!r}"
    return Case(
        method=method,
        path=path,
        query=query,
        status=status,
        key=build.search_root(query) if build.can_search else None,
        page=page,
        is_first="cursor=" not in query,
        invalid=tuple(invalid),
        statuses=frozenset([status]),
        core_only=row.get("core_only", False),
        variant=build.variant,
        can_search=build.can_search,
    )


def _cut_from(page: str) -> str:
    """The key of the first object that is read for a page, where pages are cut."""
    status, sort, generation, *_ = page.removeprefix(f"{keys.LISTS}/").split("/")
    name = f"{status}/{sort}"
    return keys.head(name) if generation == keys.FIRST else keys.index(name, generation)


def _is_in_chunks(key: str) -> bool:
    """Whether the key is that of a page, were its generation not in chunks."""
    parts = key.removeprefix(f"{keys.LISTS}/").split("/")
    return key.startswith(f"{keys.LISTS}/") and parts[2].startswith(chunks.LETTER)


def _named(parameter: str, variant: Variant) -> str:
    """The path's parameter has another name in each variant."""
    return contract.market_parameter(variant) if parameter == "marketId" else parameter


class _Build:
    """Knows what the placeholders stand for."""

    def __init__(self, output: Path, *, can_search: bool) -> None:
        manifest = json.loads((output / "manifest.json").read_text("utf-8"))
        self.variant: Variant = manifest["variant"]
        self.is_chunked = manifest["layout"] == chunks.LAYOUT
        self._output = output
        current = manifest["lists"] | ({keys.SEARCH: manifest["search"]} if "search" in manifest else {})
        self.can_search = can_search and keys.SEARCH in current
        self._generations = {name: one["generation"] for name, one in current.items()}
        # An id with letters, so that its spellings differ.
        self._market = next(one for one in sorted(manifest["markets"]) if one != one.upper())
        # A slug with letters, for the same reason; the core has none.
        slug = next((one for (one,) in manifest["slugs"].values() if one != one.upper()), "")
        self._meanings: Mapping[str, Callable[..., str]] = {
            "generation": self._generations.__getitem__,
            "mint": self._mint,
            "encoded": lambda *words: "".join(f"%{ord(letter):02x}" for letter in self._mint(*words)),
            "upper": lambda *words: self._mint(*words).upper(),
            "search": self._search,
            "forged": lambda *words: "0" * cursors.CHECK_LENGTH + self._mint(*words)[cursors.CHECK_LENGTH :],
            "cut": lambda *words: self._mint(*words)[:-1],
            "headless": lambda *words: self._mint(*words)[1:],
            "market": lambda: self._market,
            "MARKET": self._market.upper,
            "Market": self._market.title,
            "market2": lambda: self._market[:2],
            "slug": lambda: slug,
            "SLUG": slug.upper,
            "by-slug": lambda given=slug: keys.detail_by_slug(given),
            "repeat": lambda count, text: int(count) * text,
        }

    def fill(self, text: str) -> str:
        before, opening, rest = text.partition("<<")
        if not opening:
            return text
        name, *words = rest.partition(">>")[0].split(" ")
        return before + self._meanings[name](*words) + self.fill(rest.partition(">>")[2])

    def page(self, key: str, query: str) -> bytes:
        """The page where pages are cut: as many items as requested, unless the list ends."""
        parts = key.removeprefix(f"{keys.LISTS}/").removesuffix(".json").split("/")
        name, generation = "/".join(parts[:2]), self._generations["/".join(parts[:2])]
        limit = int(parse_qs(query).get("limit", [str(contract.LIMIT_DEFAULT)])[0])
        position = 0 if keys.is_first_page(key) else int(parts[-1])
        return lists.page(lists.source(self._output, name), generation, position, limit)

    def search_page(self, name: str, query: str) -> bytes:
        """The page of a search, by the naive one."""
        given = {one: values[0] for one, values in parse_qs(query).items()}
        position = int(given["cursor"][cursors.CHECK_LENGTH + cursors.GENERATION_LENGTH :]) if "cursor" in given else 0
        limit = int(given.get("limit", contract.LIMIT_DEFAULT))
        return published_search.page(self._output, self._generations[keys.SEARCH], name, given["q"], position, limit)

    def search_root(self, query: str) -> str:
        """The key of the object that is read first."""
        cursor = parse_qs(query).get("cursor", [""])[0]
        generation = cursor[cursors.CHECK_LENGTH :][: cursors.GENERATION_LENGTH]
        return keys.index(keys.SEARCH, generation) if generation else keys.head(keys.SEARCH)

    def _search(self, name: str, words: str, position: str, generation: str = "") -> str:
        found = generation or self._generations.get(keys.SEARCH, f"s{'0' * 19}")
        return published_search.cursor(name, words.replace("+", " "), found, int(position))

    def _mint(self, name: str, *place: str) -> str:
        position = place[-1]
        generation = place[0] if len(place) > 1 else f"@{name}"
        if generation.startswith("@"):
            generation = self._generations[generation[1:]]
        # A position that is no number is minted as it stands: its check is right, so only its form can be refused.
        return cursors.check(name, generation, position) + generation + position  # type: ignore[arg-type]


@cache
def _headers(status: int) -> Mapping[str, str]:
    return {**responses.error_headers(status, Config()), **responses.CORS}


def _page_headers(case: Case) -> Mapping[str, str]:
    """As of an object of the layout `pages`; names as the core writes them."""
    control = keys.MUTABLE if case.is_first else keys.IMMUTABLE
    return {"content-type": keys.CONTENT_TYPE, "cache-control": control, **responses.CORS}


def faults(error: contract.ErrorResponse, variant: Variant = "core", *, can_search: bool = False) -> tuple[str, ...]:
    """What the error says is wrong, as keys of `contract.parameter_errors`."""
    sentences = contract.parameter_errors(variant, can_search=can_search)
    by_message = {sentence: fault for fault, sentence in sentences.items()}
    return tuple(by_message[one.message] for one in error.details or ())


def expected_body(case: Case) -> str:
    """The body of the case's error, as the contract encodes it."""
    body = (
        contract.invalid(*case.invalid, variant=case.variant, can_search=case.can_search)
        if case.status == 400
        else contract.FIXED_ERRORS[case.status]
    )
    return contract.encode(body).decode()


def change_rule(script: Path, rule: str, changed: str) -> None:
    """Change a rule of the core in a rendered script."""
    text = script.read_text("utf-8")
    assert text.count(rule) == 1
    script.write_text(text.replace(rule, changed), "utf-8")


def mismatch(case: Case, result: Mapping[str, Any]) -> str | None:
    """What is wrong with what the core made of the case, as engines.py has it."""
    answer = result.get("settled", result)
    if next(iter(result.get("asked", [])), None) != case.key:
        return f"{case}: {result}"
    if case.page is not None:
        is_right = answer.get("body") == case.page.decode() and answer["headers"].items() >= _page_headers(case).items()
        return None if is_right and len(result["asked"]) <= case.most_reads else f"{case}: {result}"
    if case.status == 200:
        return None if answer == {"key": case.key} else f"{case}: {result}"
    if not answer or answer.get("status") != case.status:
        return f"{case}: {answer}"
    if case.status == 204:
        return (
            None
            if answer["body"] == "" and answer["headers"].get("allow") == responses.METHODS
            else f"{case}: {answer}"
        )
    is_right = answer["body"] == expected_body(case) and answer["headers"] == _headers(case.status)
    return None if is_right else f"{case}: {answer}"


def http_mismatch(case: Case, status: int, headers: Mapping[str, str], body: bytes, output: Path) -> str | None:
    """What is wrong with an HTTP answer to the case; `headers` have lower-case names."""
    problem = f"{case.method} {case.target[:200]}: {status} {dict(headers)} {body[:300]!r}, not {case.status}"
    if status not in case.statuses:
        return problem
    if any(headers.get(name) != value for name, value in responses.CORS.items()):
        return f"{problem}: CORS"
    if status == 204:
        return None if not body and headers.get("access-control-allow-methods") == responses.METHODS else problem
    if status == 200 and case.page is not None:
        wanted, named = case.page, _page_headers(case)
    elif status == 200:
        wanted, named = (output / str(case.key)).read_bytes(), keys.headers(str(case.key))
    elif status == case.status:
        wanted, named = expected_body(case).encode(), dict(_headers(status))
    else:
        return _unread_mismatch(problem, status, headers, body)
    if body != (b"" if case.method == "HEAD" else wanted):
        may_be_unread = len(case.statuses) > 1
        return _unread_mismatch(problem, status, headers, body) if may_be_unread else f"{problem}: body"
    wrong = {name: value for name, value in named.items() if headers.get(name.lower()) != value}
    return f"{problem}: {wrong}" if wrong else None


def _unread_mismatch(problem: str, status: int, headers: Mapping[str, str], body: bytes) -> str | None:
    """What a server refuses by itself is still an error of the contract's form; 501 is outside the contract."""
    if status == 501:
        return None
    if headers.get("content-type") != keys.CONTENT_TYPE:
        return f"{problem}: Content-Type"
    if body:
        contract.ErrorResponse.model_validate_json(body)
    return None
