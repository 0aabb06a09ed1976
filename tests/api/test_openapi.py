"""The OpenAPI document matches the contract and every published file, and common tools accept it unchanged."""

import gzip
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args

import httpx
import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator

from generator.api import contract, cursors, keys
from generator.api.contract import ErrorResponse, Variant
from generator.api.openapi import ref
from generator.config.settings import Config
from generator.demo.database import seed
from generator.site.families import openapi
from tests.questions import sites
from tests.support import limits
from tests.support.edges.cases import faults
from tests.support.edges.in_process import Local
from tests.support.project import ROOT
from tests.support.readers import search
from tests.support.sites.builds import AS_OF, NO_LIMITS, build_now, dump_head, files, make_config

VARIANTS = get_args(Variant)
SHOW_FILLS = ("PublicMarketListItem", "PublicMarketDetailMarket", "PublicMarketSignal")
BINARY = {"type": "string", "format": "binary"}
#: The market of the examples, which is not among those made up here.
MISSING_ID = "3f0c8a52-6d1b-4c7e-9a34-5b8e2f7d1c60"
TEMPLATE: Final = yaml.safe_load((ROOT / "generator/api/openapi.yaml").read_text("utf-8"))
Validator = Callable[[dict[str, Any]], Draft202012Validator]


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Variant:
    found: Variant = request.param
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, variant: Variant) -> Path:
    folder = tmp_path_factory.mktemp("openapi")
    seed(folder / "markets.db", as_of=AS_OF, markets=40)
    with limits.only(limits.FEW):
        build_now(make_config(folder, variant=variant, categories="politics"))
    return folder


@pytest.fixture(scope="module")
def published(folder: Path) -> dict[str, bytes]:
    """Every file below v1, by its key."""
    return files(folder / "output")


@pytest.fixture(scope="module")
def document(published: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(published[keys.OPENAPI])
    return found


@pytest.fixture(scope="module")
def validator(document: dict[str, Any]) -> Validator:
    """Make a validator of a schema of the document, including `$ref` and `format`."""
    formats = FormatChecker()
    assert {"uuid", "date", "date-time"} <= formats.checkers.keys()

    def make(schema: dict[str, Any]) -> Draft202012Validator:
        return Draft202012Validator({**schema, "components": document["components"]}, format_checker=formats)

    return make


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = [operation for path in document["paths"].values() for operation in path.values()]
    return {operation["operationId"]: operation for operation in found}


def responses(document: dict[str, Any], operation: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for status, response in operation["responses"].items():
        name = response.get("$ref", "").removeprefix("#/components/responses/")
        yield int(status), document["components"]["responses"][name] if name else response


def exemplified(part: object, where: str = "") -> Iterator[tuple[str, dict[str, Any], list[Any]]]:
    """Everything that has a schema, and its examples: parameters, headers, bodies."""
    if isinstance(part, dict):
        if isinstance(part.get("schema"), dict):
            named = [example["value"] for example in part.get("examples", {}).values()]
            yield where, part["schema"], named + ([part["example"]] if "example" in part else [])
        for key, value in part.items():
            if key not in {"schemas", "value", "example"}:
                yield from exemplified(value, f"{where}/{key}")
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from exemplified(value, f"{where}/{number}")


# ── the document itself ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_document_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(document).validate()
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.0.0")


#: Values of the settings that decide what is in the document, other than the usual ones, and the operations that they
#: switch off and on.
SETTINGS: Final[list[tuple[dict[str, Any], str, str]]] = [
    ({"search": "off"}, "", ""),
    ({"search": "title"}, "", ""),
    ({"layout": "chunks"}, "", ""),
    ({"base_url": "https://example.org/api"}, "", ""),
    ({"market_url": "https://example.org/{id}"}, "", ""),
    ({"market_url": "https://example.org/{key}"}, "", ""),
    ({"fills_window_step": 0}, "", ""),
    ({"detail": {"order_book": False}}, "", ""),
    ({"prices_file": False}, "getPrices", ""),
    ({"feeds": {"enabled": False}}, "getJsonFeed getAtomFeed", ""),
    ({"changes": {"enabled": False}}, "getChanges getChangeStep", ""),
    ({"dumps": {"ndjson": False}}, "getAttachSql getChanges getChangeStep getDataset getDump getMarketsNdjson", ""),
    ({"dumps": {"parquet": True, "fills": True}}, "", "getMarketsParquet getTableParquet getCandlesParquet"),
    (
        {"dumps": {"parquet": True}, "history": {"public": True}},
        "",
        "getMarketsParquet getTableParquet getCandlesParquet getHistory",
    ),
    ({"questions": {"enabled": True}}, "", "listQuestions getQuestion getQuestionsNdjson"),
    ({"questions": {"enabled": True, "lists": False}, "layout": "chunks"}, "", "getQuestion getQuestionsNdjson"),
    (
        {"questions": {"enabled": True, "lists": False}, "dumps": {"parquet": True}},
        "",
        "getQuestion getQuestionsNdjson getQuestionsParquet getMarketsParquet getTableParquet getCandlesParquet",
    ),
]


@pytest.mark.parametrize(("settings", "absent", "added"), SETTINGS)
def test_with_any_settings_the_template_is_filled_in_with_what_they_switch_on(
    variant: Variant, settings: dict[str, Any], absent: str, added: str
) -> None:
    usual, made = (openapi(Config.model_validate({"variant": variant, **chosen})) for chosen in ({}, settings))
    OpenAPIV31SpecValidator(made).validate()
    assert operations(usual).keys() - operations(made).keys() == {*absent.split()}
    assert operations(made).keys() - operations(usual).keys() == {*added.split()}
    tags = {tag for operation in operations(made).values() for tag in operation["tags"]}
    assert [tag["name"] for tag in made["tags"] if tag["name"] not in tags] == []
    text = json.dumps(made)
    assert [name for name in made["components"]["schemas"] if f'schemas/{name}"' not in text] == []
    assert re.findall(r'\{\{\w|\[\[\w|\w\]\]|"if |"\.\.\."|"x-', text) == []


def test_files_of_downloads_are_described_where_they_are_served(tmp_path: Path) -> None:
    made = openapi(make_config(tmp_path, dumps__base_url="https://files.example.org"))
    elsewhere = {path for path, item in made["paths"].items() if "servers" in item}
    assert elsewhere == {"/v1/dumps/markets/{digest}.ndjson.gz", "/v1/changes/{digest}.ndjson.gz"}
    assert all(made["paths"][path]["servers"] == [{"url": "https://files.example.org"}] for path in elsewhere)


def test_the_values_of_parameters_are_the_contracts(document: dict[str, Any]) -> None:
    """Which parameters, statuses and properties there are, and what may be null, the accepted contract says."""
    schemas = document["components"]["schemas"]
    assert schemas["StatusFilter"]["enum"] == [*contract.STATUS_FILTERS]
    assert schemas["Sort"]["enum"] == [*contract.SORTS]
    assert schemas["MarketStatus"]["enum"] == [*contract.MARKET_STATUSES]
    assert schemas["Resolution"]["enum"] == [*contract.RESOLUTIONS]
    limit = next(one["schema"] for one in operations(document)["listMarkets"]["parameters"] if one["name"] == "limit")
    bounds = {"minimum": contract.LIMIT_MIN, "maximum": contract.LIMIT_MAX, "default": contract.LIMIT_DEFAULT}
    assert limit == {"type": "integer", **bounds}


@pytest.mark.parametrize("searched", ["title", "title+description"])
def test_a_search_is_described_with_its_limits_and_with_examples_that_can_be_searched(
    searched: str, tmp_path: Path
) -> None:
    made = openapi(make_config(tmp_path, variant="extended", search=searched))
    parameters = {parameter["name"]: parameter for parameter in operations(made)["listMarkets"]["parameters"]}
    q = parameters["q"]
    assert q["schema"] == {"type": "string", "minLength": 1, "maxLength": contract.Q_LENGTH}
    shown = [example["value"] for example in q["examples"].values()]
    assert len(shown) >= 4
    assert all(map(search.is_searchable, shown))
    assert ("title or description" in q["description"]) == (searched == "title+description")
    for settings in ({"search": searched}, {"variant": "extended", "search": "off"}):
        without = openapi(make_config(tmp_path, **settings))
        assert "q" not in {parameter["name"] for parameter in operations(without)["listMarkets"]["parameters"]}


def test_every_schema_and_property_is_described_for_people_who_lack_the_contract(
    document: dict[str, Any], variant: Variant, tmp_path: Path
) -> None:
    used = set()
    everything: dict[str, Any] = {"dumps__parquet": True, "dumps__fills": True, "questions__enabled": True}
    everything |= {"license": "CC0-1.0", "publisher__name": "Example", "history__public": True}
    full = openapi(make_config(tmp_path, variant=variant, **everything))
    known = [*full["components"]["schemas"].items(), *document["components"]["schemas"].items()]
    for name, schema in known:
        assert schema["description"].endswith(".")
        for key, value in schema.get("properties", {}).items():
            assert value["description"].endswith(".")
            used |= {key, f"{name}.{key}"}
    assert "§" not in json.dumps(document, ensure_ascii=False)
    assert variant == "core" or TEMPLATE["x-meanings"].keys() <= used


def test_what_is_configured_is_said(tmp_path: Path) -> None:
    settings = make_config(
        tmp_path,
        base_url="https://api.example.org",
        rate_limit__requests=7,
        rate_limit__searches=3,
        rate_limit__window="90 s",
        cursor__lifetime="2 d",
        snapshot__size=9,
        detail__recent_fills=11,
        detail__order_book="false",
        fills_window_step="15 min",
    )
    made = openapi(settings)
    assert [server["url"] for server in made["servers"]] == ["https://api.example.org", "http://127.0.0.1:8000"]
    assert "7 requests in 90 seconds; cached" in made["info"]["description"]
    extended = openapi(settings.model_copy(update={"variant": "extended"}))
    assert "7 requests in 90 seconds, 3 of which may be searches (`q`); cached" in extended["info"]["description"]
    described = {name: operation["description"] for name, operation in operations(made).items()}
    assert "readable for 2 days at least" in described["listMarkets"]
    assert "at most 9 markets" in described["getSnapshot"]
    assert "at most 11 recent fills" in described["getMarket"]
    assert "order book is not published" in described["getMarket"]
    for name in SHOW_FILLS:
        text = made["components"]["schemas"][name]["properties"]["fills24h"]["description"]
        assert text.endswith(", and up to 15 minutes before: they leave the count in steps of 15 minutes.")
    too_many = made["components"]["responses"]["TooManyRequests"]
    assert too_many["headers"]["Retry-After"]["example"] == 90


# ── examples and links ────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_has_examples_and_they_fit_their_schemas(
    document: dict[str, Any], validator: Validator, variant: Variant
) -> None:
    checked = 0
    for where, schema, examples in exemplified(document):
        if schema == BINARY:
            continue
        assert examples, f"{where} has no example"
        for example in examples:
            validator(schema).validate(example)
            checked += 1
    assert checked == {"core": 106, "extended": 116}[variant]


@pytest.mark.parametrize("searched", ["off", "title"])
def test_examples_of_questions_fit_their_schemas_and_their_sums_are_right(
    variant: Variant, searched: str, tmp_path: Path
) -> None:
    made = openapi(make_config(tmp_path, variant=variant, search=searched, questions__enabled=True))
    found = {name: operations(made)[name] for name in ("listQuestions", "getQuestion")}
    checked = 0
    for where, schema, examples in exemplified(found):
        assert examples, where
        for example in examples:
            whole = {**schema, "components": made["components"]}
            Draft202012Validator(whole, format_checker=FormatChecker()).validate(example)
            checked += 1
    assert checked == {"core": 31, "extended": 35}[variant]
    detail = found["getQuestion"]["responses"]["200"]["content"]["application/json"]["examples"]["question"]["value"]
    page = found["listQuestions"]["responses"]["200"]["content"]["application/json"]["examples"]["firstPage"]["value"]
    items = [member["market"] for member in detail["markets"]]
    for name in ("volume", "traderCount", "fills24h"):
        assert detail["question"][name] == sum(item[name] for item in items)
    assert detail["question"]["lastActivityAt"] == max(item["lastActivityAt"] for item in items)
    single, row = page["items"]
    shown = [{name: market[name] for name in ("id", "prob", "status", "resolution")} for market in items]
    assert [{name: value for name, value in market.items() if name != "label"} for market in row["markets"]] == shown
    assert {**row, "description": detail["question"]["description"]} == {
        **detail["question"],
        "markets": row["markets"],
    }
    assert single["kind"] == "single"
    assert_errors(found, made, variant, can_search=variant == "extended" and searched != "off")


def test_a_site_without_questions_says_nothing_of_them(variant: Variant, tmp_path: Path) -> None:
    for settings in ({}, {"dumps__parquet": True, "dumps__fills": True}, {"layout": "chunks"}):
        text = json.dumps(openapi(make_config(tmp_path, variant=variant, **settings)))
        assert re.findall(r'"[^" ]*(?:[Qq]uestions|Question[A-Z])[^" ]*"', text) == []


def test_every_response_has_a_body_and_errors_have_the_edges_own(document: dict[str, Any], variant: Variant) -> None:
    assert_errors(operations(document), document, variant, can_search=variant == "extended")


def assert_errors(
    found: dict[str, dict[str, Any]], document: dict[str, Any], variant: Variant, *, can_search: bool
) -> None:
    for operation in found.values():
        for status, response in responses(document, operation):
            (media,) = response["content"].values()
            if media["schema"] == BINARY:
                continue
            bodies = [example["value"] for example in media["examples"].values()]
            assert bodies
            for body in bodies if status >= 400 else []:
                error = ErrorResponse.model_validate(body)
                named = faults(error, variant, can_search=can_search)
                refusal = contract.invalid(*named, variant=variant, can_search=can_search)
                assert error == (refusal if status == 400 else contract.FIXED_ERRORS[status])


def test_the_example_cursor_is_one_that_could_have_been_minted(document: dict[str, Any]) -> None:
    listing = operations(document)["listMarkets"]
    pages = listing["responses"]["200"]["content"]["application/json"]["examples"]
    cursor = pages["firstPage"]["value"]["nextCursor"]
    assert cursors.read(keys.list_name("open", "popular"), cursor).position == 2
    (given,) = [parameter["examples"] for parameter in listing["parameters"] if parameter["name"] == "cursor"]
    assert given["nextPage"]["value"] == cursor
    assert cursor in listing["responses"]["200"]["headers"]["Link"]["example"]


# ── published files ───────────────────────────────────────────────────────────────────────────────────────────────


def body_name(key: str) -> str:
    folders = {
        keys.LISTS: "PublicMarketList", keys.DETAILS: "PublicMarketDetail", keys.SLUGS: "PublicMarketDetail",
        keys.QUESTION_LISTS: "QuestionList", keys.QUESTIONS: "QuestionDetail", keys.ERRORS: "ErrorResponse",
        keys.FEEDS: "Feed",
    }  # fmt: skip
    for folder, name in folders.items():
        if key.startswith(f"{folder}/"):
            return name
    return {
        keys.SNAPSHOT: "PublicMarketSnapshot", keys.PRICES: "Prices", keys.BUILD: "BuildRecord",
        keys.SITE_INDEX: "SiteIndex", keys.CHANGELOG: "Changelog",
        keys.head(keys.DUMPS): "DumpHead",
        keys.head(keys.CHANGES): "ChangesHead",
    }[key]  # fmt: skip


def is_described(key: str) -> bool:
    """Whether the object has a schema: the search index and the indexes of downloads are not for readers."""
    folders = tuple(f"{keys.list_prefix(name)}/" for name in (keys.SEARCH, *keys.DOWNLOADS))
    return key.endswith(keys.HEAD if key.startswith(folders[1:]) else ".json") and not (
        key in (keys.OPENAPI, keys.DATASET) or key.startswith(folders[0])
    )


def test_every_published_file_fits_its_schema(published: dict[str, bytes], validator: Validator) -> None:
    # First pages whose limit exceeds the list are the same bytes.
    shown = {key: body for key, body in published.items() if is_described(key)}
    distinct = {(body_name(key), body) for key, body in shown.items()}
    checks = {name: validator(ref(name)) for name in {name for name, _ in distinct}}
    assert len(checks) == 11
    assert len(distinct) > 200
    for name, body in distinct:
        checks[name].validate(json.loads(body))


def test_every_published_file_of_a_site_with_questions_fits_its_schema(variant: Variant, tmp_path: Path) -> None:
    sites.troubled(tmp_path / "markets.db")
    with limits.only(limits.FEW):
        build_now(make_config(tmp_path, variant=variant, guards__max_invalid=1))
    found = files(tmp_path / "output")
    made = json.loads(found[keys.OPENAPI])
    bodies = {(body_name(key), body) for key, body in found.items() if is_described(key)}
    names = {name for name, _ in bodies}
    assert {"QuestionList", "QuestionDetail"} <= names
    for name, body in bodies:
        schema = {**ref(name), "components": made["components"]}
        Draft202012Validator(schema, format_checker=FormatChecker()).validate(json.loads(body))
    record, index = (json.loads(found[key]) for key in (keys.BUILD, keys.SITE_INDEX))
    named = dump_head(tmp_path / "output").questions
    assert named is not None
    definitions = gzip.decompress(found[named.ndjson.key]).splitlines()
    assert record["questions"]["count"] == len(definitions) > 10
    assert record["questions"]["lists"].keys() == record["lists"].keys()
    assert all("/questions" not in name for name in record["lists"])
    assert index["questions"].endswith("/v1/public/questions")


# ── programs that read the document ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[ModuleType]:
    """The package that openapi-python-client generates from the published file."""
    # The generator knows no other types than JSON, text and bytes.
    known = {
        "application/gzip": "application/octet-stream",
        "application/atom+xml": "text/xml",
        "application/sql": "text/plain",
    }
    settings = json.dumps({"post_hooks": [], "content_type_overrides": known})
    (folder / "client.yaml").write_text(settings, "utf-8")
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--meta", "none"]
    document = folder / "output" / keys.OPENAPI
    package = folder / "generated_client"
    paths = ["--path", document, "--output-path", package, "--config", folder / "client.yaml"]
    done = subprocess.run([*generate, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "arning" not in done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("generated_client")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "generated_client"]:
            del sys.modules[name]


def test_a_generated_python_client_reads_every_market(client: ModuleType, folder: Path, variant: Variant) -> None:
    local = Local(make_config(folder, variant=variant, categories="politics", **NO_LIMITS))

    def answer(request: httpx.Request) -> httpx.Response:
        found = local.ask(request.url.raw_path.decode())
        return httpx.Response(found.status, content=found.body)

    caller = client.Client(base_url="http://edge", httpx_args={"transport": httpx.MockTransport(answer)})

    def call(tag: str, operation: str, *arguments: Any, **parameters: Any) -> Any:
        module = importlib.import_module(f"generated_client.api.{tag}.{operation}")
        return module.sync(*arguments, client=caller, **parameters)

    enums = importlib.import_module("generated_client.models")
    walk = {"status": enums.StatusFilter.ALL, "sort": enums.Sort.NEW, "limit": 10}
    page = call("markets", "list_markets", **walk)
    items = list(page.items)
    while page.next_cursor is not None:
        page = call("markets", "list_markets", **walk, cursor=page.next_cursor)
        items += page.items
    build = call("build", "get_build")
    assert len({item.id for item in items}) == len(items) == build.lists.additional_properties["all/new"] > 20
    for item in items:
        detail = call("markets", "get_market", item.id)
        assert (detail.market.id, detail.market.question) == (item.id, item.question)
        if slug := item.to_dict().get("slug"):
            assert call("markets", "get_market", slug) == detail
    head = call("dumps", "get_dump")
    digest = head.markets[0].name.removeprefix("markets/").removesuffix(".ndjson.gz")
    dumped = gzip.decompress(call("dumps", "get_markets_ndjson", digest).payload.read()).splitlines()
    assert {json.loads(line)["id"] for line in dumped} == {str(item.id) for item in items}
    assert call("markets", "get_market", MISSING_ID).error == "not found"
