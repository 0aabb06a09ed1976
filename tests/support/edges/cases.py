"""What every edge must make of the table of requests: shared by the harness of every runtime.

The table is the program's, in generator/verify/requests, and that of requests/ beside this module, whose blocks are
about the router: `key` is the object that is read, `search` the list that a search filters, `server` the statuses of a
server that reads a path before the router does, and `core_only` marks what no HTTP request can hold. The table of the
extended variant is for a build with the settings EXTENDED of support.py. A row with `search` is answered by the search
index: it names the list, and whether its page has items. On an edge that cannot search, the row is a 400 for
`unsearched`, or for `q`. Each document of the table of families has rows, too.

A harness asks `requests(output)` for the table, runs it, and asserts both that `mismatch…` finds nothing and how many
cases it ran. What the placeholders in it stand for, placeholders.py says.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from generator.api import contract, keys
from generator.api.contract import Variant
from generator.config.settings import Config
from generator.edge import responses
from generator.search import generation as index
from generator.site.families import FAMILIES
from generator.site.family import ROOT
from generator.tree import chunks
from generator.verify import request_table
from tests.support.edges.placeholders import Build
from tests.support.edges.servers import Answer

_DEFAULT: Final = Config()
#: The blocks that only tests run.
_OF_ROUTER: Final = Path(__file__).with_name("requests")
#: An index and two chunks.
MOST_READS: Final = 3


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
    build = Build(output, can_search=can_search)
    table = _rows("core")
    if build.has_questions:
        table |= _rows_of_questions("core")
    if build.variant == "extended":
        table |= _rows("extended")
    if build.variant == "extended" and build.has_questions:
        table |= _rows_of_questions("extended")
    return [_case(row, build) for row in (_of_documents(output) | table).values()]


def _of_documents(output: Path) -> dict[str, Mapping[str, Any]]:
    """Rows for the documents of every family that was built."""
    found = dict[str, Mapping[str, Any]]()
    for family in FAMILIES:
        for path, key in family.documents.items():
            if (output / key).exists():
                for method in ("GET", "HEAD"):
                    request = f"{method} /{ROOT}{path}"
                    found[request] = {"request": request, "status": 200, "key": key}
    return found


def _rows(table: Variant) -> dict[str, Mapping[str, Any]]:
    return _by_request([*request_table.blocks(table), *request_table.blocks(table, _OF_ROUTER)])


def _rows_of_questions(table: Variant) -> dict[str, Mapping[str, Any]]:
    """Rows for sites that have questions, of which questions.py says more."""
    return _by_request(request_table.blocks(table, _OF_ROUTER / "questions"))


def _by_request(found: Iterable[request_table.RequestBlock]) -> dict[str, Mapping[str, Any]]:
    given = [row for block in found for row in block.rows]
    rows = {row["request"]: row for row in given}
    assert len(rows) == len(given), "a request stands in the table twice"
    return rows


def searches(output: Path) -> list[Case]:
    """The part of the table that is answered by the search index."""
    return [case for case in requests(output) if keys.SEARCH in (case.key or "")]


def on_the_wire(output: Path) -> list[Case]:
    """The part of the table that can be sent over HTTP."""
    return [case for case in requests(output) if not case.core_only]


def _case(row: Mapping[str, Any], build: Build) -> Case:
    method, _, target = str(build.fill(row["request"])).partition(" ")
    path, _, query = target.partition("?")
    if "search" in row:
        return _search(row, build, method, path, query)
    invalid = row.get("invalid", ()) if build.can_search else row.get("unsearched", row.get("invalid", ()))
    key = build.fill(row["key"]) if "key" in row else None
    is_first = key is not None and keys.list_of(key) is not None and keys.is_first_page(key)
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


def _search(row: Mapping[str, Any], build: Build, method: str, path: str, query: str) -> Case:
    """A row that is answered by the index, which is read even for some refusals."""
    status, invalid = row["status"], row.get("invalid", [])
    if not build.can_search:
        status, invalid = HTTPStatus.BAD_REQUEST, row.get("unsearched", ["q"])
    page = build.search_page(row["search"], query) if status == HTTPStatus.OK else None
    if page is not None:
        assert row["finds"] == bool(json.loads(page)["items"]), f"{query} finds {page[:200]!r}"
    key = build.search_root(query) if build.can_search else None
    core_only, kind = row.get("core_only", False), (build.variant, page, "cursor=" not in query, build.can_search)
    return Case(method, path, query, status, key, tuple(invalid), frozenset([status]), core_only, *kind)


def _cut_from(page: str) -> str:
    """The key of the first object that is read for a page, where pages are cut."""
    name, generation = str(keys.list_of(page)), _generation(page)
    return keys.head(name) if generation == keys.FIRST else keys.index(name, generation)


def _is_in_chunks(key: str) -> bool:
    """Whether the key is that of a page, were its generation not in chunks."""
    return keys.list_of(key) is not None and _generation(key).startswith(chunks.LETTER)


def _generation(page: str) -> str:
    """The generation of a list's page, or what stands for it."""
    return page.removeprefix(f"{keys.list_prefix(str(keys.list_of(page)))}/").partition("/")[0]


def _named(parameter: str, variant: Variant) -> str:
    """The path's parameter has another name in each variant."""
    if parameter == "questionId":
        return contract.question_parameter(variant)
    return contract.market_parameter(variant) if parameter == "marketId" else parameter


@cache
def _headers(status: int) -> Mapping[str, str]:
    return {**responses.error_headers(status, Config()), **responses.COMMON}


def _page_headers(case: Case) -> Mapping[str, str]:
    """As of an object of the layout `pages`; names as the core writes them."""
    control = keys.MUTABLE if case.is_first else keys.IMMUTABLE
    return {"content-type": keys.CONTENT_TYPE, "cache-control": control, **responses.COMMON}


def faults(error: contract.ErrorResponse, variant: Variant = "core", *, can_search: bool = False) -> tuple[str, ...]:
    """What the error says is wrong, as keys of `contract.parameter_errors`."""
    sentences = contract.QUESTION_ERRORS | contract.parameter_errors(variant, can_search=can_search)
    by_place = {(fault.partition(".")[0], sentence): fault for fault, sentence in sentences.items()}
    return tuple(by_place[one.path[0], one.message] for one in error.details or ())


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


def without_cache(folder: Path) -> None:
    """Have a rendered nginx show no answers that it kept, as what a test changes would show up to two seconds later."""
    for path in folder.glob("*.conf"):
        path.write_text(path.read_text("utf-8").replace('proxy_cache_bypass "";', "proxy_cache_bypass 1;"), "utf-8")


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


def is_error(answer: Answer, status: int, config: Config = _DEFAULT, **headers: str) -> bool:
    """Whether this is the error of the contract that has no details, with the headers of errors, and with these."""
    others = {name.replace("_", "-"): value for name, value in headers.items()}
    wanted = {**responses.error_headers(status, config), **responses.COMMON, **others}
    body = contract.encode(contract.FIXED_ERRORS[status])
    return (answer.status, answer.body) == (status, body) and wanted.items() <= answer.headers.items()


def asking(query: str = "", path: str = f"/{keys.MARKETS}", method: str = "GET") -> Case:
    """A request that is in no table."""
    return Case(method, path, query, 200, None, (), frozenset((200,)), core_only=False)


def mismatches(cases: Sequence[Case], answers: Iterable[Answer], output: Path) -> list[str]:
    """What is wrong with HTTP answers to the cases."""
    pairs = zip(cases, answers, strict=True)
    return [wrong for case, got in pairs if (wrong := _http_mismatch(case, got.status, got.headers, got.body, output))]


def _http_mismatch(case: Case, status: int, headers: Mapping[str, str], body: bytes, output: Path) -> str | None:
    problem = f"{case.method} {case.target[:200]}: {status} {dict(headers)} {body[:300]!r}, not {case.status}"
    if status not in case.statuses:
        return problem
    of_all = responses.COMMON | {"x-content-type-options": "nosniff"}
    if any(headers.get(name) != value for name, value in of_all.items()):
        return f"{problem}: headers of every answer"
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
