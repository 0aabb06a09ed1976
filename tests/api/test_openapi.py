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

from generator.api import changelog, contract, cursors, downloads, feeds, keys, prices, slugs
from generator.api.contract import ErrorResponse, Variant, encode
from generator.api.openapi import ref
from generator.config.settings import Config
from generator.demo.database import seed
from generator.site import site_index
from generator.site.families import openapi
from tests.support.edges.cases import faults
from tests.support.project import ROOT
from tests.support.readers import search
from tests.support.sites.builds import AS_OF, build_now, files, make_config

VARIANTS = get_args(Variant)
SHOW_FILLS = ("PublicMarketListItem", "PublicMarketDetailMarket", "PublicMarketSignal")
BINARY = {"type": "string", "format": "binary"}
#: The market of the examples, which is not among those made up here.
MISSING_ID = "3f0c8a52-6d1b-4c7e-9a34-5b8e2f7d1c60"
TEMPLATE: Final = yaml.safe_load((ROOT / "generator/api/openapi.yaml").read_text("utf-8"))
FIRST_LINK = {"listMarkets": "firstPage", "getSnapshot": "groups"}
Validator = Callable[[dict[str, Any]], Draft202012Validator]


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Variant:
    found: Variant = request.param
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, variant: Variant) -> Path:
    folder = tmp_path_factory.mktemp("openapi")
    seed(folder / "markets.db", as_of=AS_OF, markets=40)
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


def models() -> dict[str, type[contract.Wire]]:
    modules = (changelog, contract, downloads, feeds, prices, site_index)
    named = [value for module in modules for value in vars(module).values()]
    found = {model.__name__: model for model in named if isinstance(model, type) and issubclass(model, contract.Wire)}
    bases = {"Wire", "Closed", "MarketFields", "DumpFile", "Head"}
    return {name: model for name, model in found.items() if name not in bases}


# ── the document itself ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_document_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(document).validate()
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.0.0")


def test_operations_paths_and_statuses_are_the_contracts(document: dict[str, Any], variant: Variant) -> None:
    reference = {"core": "{marketId}", "extended": "{marketRef}"}[variant]
    assert {
        (path, operation["operationId"], tuple(operation["responses"]))
        for path, item in document["paths"].items()
        for operation in item.values()
    } == {
        ("/v1/public/markets", "listMarkets", ("200", "400", "405", "429", "503")),
        ("/v1/public/markets/snapshot", "getSnapshot", ("200", "405", "429", "503")),
        (f"/v1/public/markets/{reference}", "getMarket", ("200", "400", "404", "405", "429", "503")),
        ("/v1/prices.json", "getPrices", ("200", "404", "405", "429", "503")),
        ("/v1/build.json", "getBuild", ("200", "405", "429", "503")),
        ("/v1/", "getIndex", ("200", "405", "429", "503")),
        ("/v1/llms.txt", "getLlmsText", ("200", "405", "429", "503")),
        ("/v1/changelog.json", "getChangelog", ("200", "405", "429", "503")),
        ("/v1/feeds/{feed}.json", "getJsonFeed", ("200", "404", "405", "429", "503")),
        ("/v1/feeds/{feed}.atom", "getAtomFeed", ("200", "404", "405", "429", "503")),
        ("/v1/dumps/head.json", "getDump", ("200", "405", "429", "503")),
        ("/v1/dumps/markets/{digest}.ndjson.gz", "getMarketsNdjson", ("200", "404", "405", "429", "503")),
        ("/v1/changes/head.json", "getChanges", ("200", "405", "429", "503")),
        ("/v1/changes/{digest}.ndjson.gz", "getChangeStep", ("200", "404", "405", "429", "503")),
    }
    assert document["security"] == []


#: Values of the settings that decide what is in the document, other than the usual ones.
SETTINGS: Final[list[dict[str, Any]]] = [
    {},
    {"search": "off"},
    {"search": "title"},
    {"layout": "chunks"},
    {"base_url": "https://example.org/api"},
    {"market_url": "https://example.org/{id}"},
    {"market_url": "https://example.org/{key}"},
    {"fills_window_step": 0},
    {"prices_file": False},
    {"feeds": {"enabled": False}},
    {"changes": {"enabled": False}},
    {"dumps": {"ndjson": False}},
    {"dumps": {"parquet": True, "base_url": "https://files.example.org"}},
    {"dumps": {"parquet": True, "fills": True, "base_url": "https://files.example.org"}},
    {"detail": {"order_book": False}},
]


def test_with_any_settings_the_whole_template_is_filled_in(variant: Variant) -> None:
    for settings in SETTINGS:
        made = openapi(Config.model_validate({"variant": variant, **settings}))
        left = re.findall(r'\{\{\w|\[\[\w|\w\]\]|"if |"\.\.\."|"x-', json.dumps(made))
        assert left == [], settings
        if "dumps" in settings:
            OpenAPIV31SpecValidator(made).validate()


def test_no_key_of_the_template_hides_another() -> None:
    def check(node: yaml.Node) -> int:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        names = [key.value for key, _ in pairs]
        assert len(names) == len({*names}), f"{node.start_mark}: one of these comes twice: {names}"
        parts = [value for _, value in pairs] or (node.value if isinstance(node, yaml.SequenceNode) else [])
        return len(names) + sum(map(check, parts))

    root = yaml.compose((ROOT / "generator/api/openapi.yaml").read_text("utf-8"))
    assert root
    assert check(root) > 1000


@pytest.mark.parametrize(
    ("settings", "absent", "added"),
    [
        ({"feeds__enabled": False}, {"getJsonFeed", "getAtomFeed"}, set()),
        ({"prices_file": False}, {"getPrices"}, set()),
        ({"changes__enabled": False}, {"getChanges", "getChangeStep"}, set()),
        (
            {"dumps__ndjson": False, "changes__enabled": False},
            {"getChanges", "getChangeStep", "getDump", "getMarketsNdjson"},
            set(),
        ),
        ({"dumps__parquet": True}, set(), {"getMarketsParquet", "getTableParquet", "getCandlesParquet"}),
    ],
)
def test_only_what_the_settings_switch_on_is_described(
    tmp_path: Path, settings: dict[str, Any], absent: set[str], added: set[str]
) -> None:
    usual, made = (openapi(make_config(tmp_path, **chosen)) for chosen in ({}, settings))
    OpenAPIV31SpecValidator(made).validate()
    assert operations(usual).keys() - operations(made).keys() == absent
    assert operations(made).keys() - operations(usual).keys() == added
    tags = {tag for operation in operations(made).values() for tag in operation["tags"]}
    assert [tag["name"] for tag in made["tags"] if tag["name"] not in tags] == []
    text = json.dumps(made)
    assert [name for name in made["components"]["schemas"] if f'schemas/{name}"' not in text] == []


def test_files_of_downloads_are_described_where_they_are_served(tmp_path: Path) -> None:
    made = openapi(make_config(tmp_path, dumps__base_url="https://files.example.org"))
    elsewhere = {path for path, item in made["paths"].items() if "servers" in item}
    assert elsewhere == {"/v1/dumps/markets/{digest}.ndjson.gz", "/v1/changes/{digest}.ndjson.gz"}
    assert all(made["paths"][path]["servers"] == [{"url": "https://files.example.org"}] for path in elsewhere)


def test_parameters_are_the_contracts(document: dict[str, Any], variant: Variant) -> None:
    parameters = {parameter["name"]: parameter for parameter in operations(document)["listMarkets"]["parameters"]}
    assert list(parameters) == [
        "status", "sort", "limit", "cursor",
        *(["category", "q"] if variant == "extended" else []),
    ]  # fmt: skip
    assert not any(parameter["required"] for parameter in parameters.values())
    schemas = document["components"]["schemas"]
    assert schemas["StatusFilter"]["enum"] == list(contract.STATUS_FILTERS)
    assert schemas["Sort"]["enum"] == list(contract.SORTS)
    assert schemas["MarketStatus"]["enum"] == list(contract.MARKET_STATUSES)
    assert schemas["Resolution"]["enum"] == list(get_args(contract.Resolution))
    assert schemas["Direction"]["enum"] == list(get_args(contract.Direction))
    assert parameters["status"]["schema"] == {"$ref": "#/components/schemas/StatusFilter", "default": "open"}
    assert parameters["sort"]["schema"] == {"$ref": "#/components/schemas/Sort"}, "its default depends on the status"
    assert parameters["limit"]["schema"] == {
        "type": "integer",
        "minimum": contract.LIMIT_MIN,
        "maximum": contract.LIMIT_MAX,
        "default": contract.LIMIT_DEFAULT,
    }
    for name, values in (("status", contract.STATUS_FILTERS), ("sort", contract.SORTS)):
        shown = [(example["value"], example["summary"]) for example in parameters[name]["examples"].values()]
        assert [value for value, _ in shown] == list(values)
        assert "\n".join(f"- `{value}`: {meaning}" for value, meaning in shown) in parameters[name]["description"]
    assert set(contract.DEFAULT_SORT.values()) == {"popular", "ended"}
    popular, ended = (
        ", ".join(f"`{status}`" for status, sort in contract.DEFAULT_SORT.items() if sort == chosen)
        for chosen in ("popular", "ended")
    )
    default = f"`popular` with status {popular}; `ended` with status {ended}."
    assert parameters["sort"]["description"].endswith(default)


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


def described(variant: Variant) -> dict[str, dict[str, Any]]:
    """The fields of every model that the variant has."""
    added = ("slug", "category", "categories", "creationSource", "sponsor", "tags", "search")
    extended = () if variant == "extended" else added
    return {
        name: {
            field.alias or key: field
            for key, field in model.model_fields.items()
            if (field.alias or key) not in extended or name == "Category"
        }
        for name, model in models().items()
        if variant == "extended" or name != "Category"
    }


def test_properties_and_closed_objects_are_the_models(document: dict[str, Any], variant: Variant) -> None:
    schemas, known = document["components"]["schemas"], described(variant)
    assert len(known) == {"core": 28, "extended": 29}[variant]
    enums = {"MarketStatus", "Resolution", "StatusFilter", "Sort", "Direction", "ChangeKind", "FeedName", "DumpFormat"}
    assert schemas.keys() == known.keys() | enums
    for name, fields in known.items():
        assert list(schemas[name]["properties"]) == list(fields)
        assert schemas[name]["required"] == [alias for alias, field in fields.items() if field.is_required()]
        is_closed = issubclass(models()[name], contract.Closed)
        assert schemas[name].get("additionalProperties") == (False if is_closed else None)


@pytest.mark.parametrize("fills", [True, False])
def test_tables_have_files_by_period(tmp_path: Path, *, fills: bool) -> None:
    found = openapi(make_config(tmp_path, dumps__parquet=True, dumps__fills=fills))["paths"]
    paths = {item["get"]["operationId"]: path for path, item in found.items()}
    assert paths["getTableParquet"] == "/v1/dumps/{table}/{period}/{digest}.parquet"
    assert paths["getCandlesParquet"] == "/v1/dumps/candles/{length}/{period}/{digest}.parquet"
    table, *_ = found[paths["getTableParquet"]]["get"]["parameters"]
    assert table["schema"]["pattern"] == ("^(history|fills|closes)$" if fills else "^(history|closes)$")


def test_exactly_what_may_be_null_in_the_contract_may_be_null(document: dict[str, Any], validator: Validator) -> None:
    nullable = {
        f"{name}.{key}"
        for name, schema in document["components"]["schemas"].items()
        for key, schema in schema.get("properties", {}).items()
        if validator(schema).is_valid(None)
    }
    assert nullable == {
        *("PublicMarketListItem.resolution", "PublicMarketListItem.resolvedAt", "PublicMarketList.nextCursor"),
        *("PublicMarketDetailMarket.resolution", "PublicMarketDetailMarket.resolvedAt"),
        *("PublicMarketDetailMarket.description", "PublicMarketDetailMarket.tradingPauseReason"),
        *("PublicMarketDetailMarket.fxFamilyMember", "PublicRecentFill.price"),
    }


def test_every_schema_and_property_is_described_for_people_who_lack_the_contract(
    document: dict[str, Any], variant: Variant, tmp_path: Path
) -> None:
    used = set()
    full = openapi(make_config(tmp_path, variant=variant, dumps__parquet=True, dumps__fills=True))
    known = [*full["components"]["schemas"].items(), *document["components"]["schemas"].items()]
    for name, schema in known:
        assert schema["description"].endswith(".")
        for key, value in schema.get("properties", {}).items():
            assert value["description"].endswith(".")
            used |= {key, f"{name}.{key}"}
    assert "§" not in json.dumps(document, ensure_ascii=False)
    assert variant == "core" or TEMPLATE["x-meanings"].keys() <= used


@pytest.mark.parametrize(("step", "more"), [("0", None), ("1 h", "1 hour"), ("15 min", "15 minutes"), ("1 d", "1 day")])
def test_the_description_of_fills24h_tells_the_step_of_its_window(tmp_path: Path, step: str, more: str | None) -> None:
    found = openapi(make_config(tmp_path, fills_window_step=step))["components"]["schemas"]
    texts = {found[name]["properties"]["fills24h"]["description"] for name in SHOW_FILLS}
    assert len(SHOW_FILLS) == sum("fills24h" in schema.get("properties", {}) for schema in found.values())
    plain = "Trades within the 24 hours before this data was read"
    assert texts == {
        f"{plain}, and up to {more} before: they leave the count in steps of {more}." if more else f"{plain}."
    }


#: Texts that the program makes; every other text without a format is somebody's writing.
OURS = {"nextCursor", "search", "slug", "generator", "layout", "variant", "path", "message", "error"}
OURS |= {"version", "content_text", "Feed.title", "Feed.description", "FeedAuthor.name"}
OURS |= {"ChangelogEntry.text", "ChangelogEntry.where"}
OURS |= {f"{model}.name" for model in ("MarketsFile", "PeriodFile", "Step")}


def test_a_text_that_somebody_wrote_is_said_to_be_no_html(document: dict[str, Any], variant: Variant) -> None:
    foreign = {
        f"{name}.{key}"
        for name, schema in document["components"]["schemas"].items()
        for key, value in schema.get("properties", {}).items()
        if not {key, f"{name}.{key}"} & OURS and any(part == {"type": "string"} for part in texts(value))
    }
    said = {
        f"{name}.{key}"
        for name, schema in document["components"]["schemas"].items()
        for key, value in schema.get("properties", {}).items()
        if value["description"].endswith(" Plain text, not HTML.")
    }
    assert foreign == said
    assert len(said) == {"core": 9, "extended": 17}[variant]
    everything = document["info"]["description"]
    assert "plain text, not HTML: escape them before you put them into a page" in everything


def texts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a property may hold, apart from null and its description: itself, its choices or its items."""
    for part in schema.get("anyOf", [schema.get("items", schema)]):
        yield {key: part[key] for key in part.keys() & {"type", "format", "enum", "pattern"}}


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
    )
    made = openapi(settings)
    assert made["servers"][0] == {"url": "https://api.example.org"}
    assert "7 requests in 90 seconds; cached" in made["info"]["description"]
    extended = openapi(settings.model_copy(update={"variant": "extended"}))
    assert "7 requests in 90 seconds, 3 of which may be searches (`q`); cached" in extended["info"]["description"]
    described = {name: operation["description"] for name, operation in operations(made).items()}
    assert "readable for 2 days at least" in described["listMarkets"]
    assert "at most 9 markets" in described["getSnapshot"]
    assert "at most 11 recent fills" in described["getMarket"]
    assert "order book is not published" in described["getMarket"]
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
    assert checked == {"core": 98, "extended": 108}[variant]


def test_every_response_has_a_body_and_errors_have_the_edges_own(document: dict[str, Any], variant: Variant) -> None:
    for operation in operations(document).values():
        for status, response in responses(document, operation):
            (media,) = response["content"].values()
            if media["schema"] == BINARY:
                continue
            bodies = [example["value"] for example in media["examples"].values()]
            assert bodies
            for body in bodies if status >= 400 else []:
                error = ErrorResponse.model_validate(body)
                can_search = variant == "extended"
                named = faults(error, variant, can_search=can_search)
                refusal = contract.invalid(*named, variant=variant, can_search=can_search)
                assert error == (refusal if status == 400 else contract.FIXED_ERRORS[status])


def test_the_largest_object_of_prices_is_named(document: dict[str, Any]) -> None:
    megabytes, rest = divmod(prices.MOST_BYTES, 1_000_000)
    assert rest == 0
    assert f"would be larger than {megabytes} MB" in operations(document)["getPrices"]["description"]


def test_limits_may_not_be_circumvented(document: dict[str, Any]) -> None:
    assert "must not get around the limit" in document["info"]["description"]


@pytest.mark.parametrize(
    ("base_url", "urls"),
    [
        ("https://example.org/api", ["https://example.org/api", "http://127.0.0.1:8000/api"]),
        ("http://127.0.0.1:8000", ["http://127.0.0.1:8000"]),
    ],
)
def test_the_local_server_is_named(base_url: str, urls: list[str], tmp_path: Path) -> None:
    servers = openapi(make_config(tmp_path, base_url=base_url))["servers"]
    assert [server["url"] for server in servers] == urls
    assert servers[-1]["description"] == "Local development server"


def test_errors_promise_the_headers_that_come_with_them(document: dict[str, Any]) -> None:
    headers = {name: response.get("headers", {}) for name, response in document["components"]["responses"].items()}
    assert headers["MethodNotAllowed"]["Allow"]["example"] == "GET, HEAD, OPTIONS"
    assert headers["TooManyRequests"]["Retry-After"]["example"] == 60
    assert headers["Unavailable"]["Retry-After"]["example"] == 10
    assert all(header["required"] for named in headers.values() for header in named.values())


def test_links_lead_from_the_examples_to_parameters_that_exist(document: dict[str, Any], variant: Variant) -> None:
    followed = []
    for name, operation in operations(document).items():
        response = operation["responses"]["200"]
        for link in response.get("links", {}).values():
            target = {parameter["name"] for parameter in operations(document)[link["operationId"]]["parameters"]}
            assert link["parameters"].keys() <= target
            for parameter, expression in link["parameters"].items():
                source, _, place = expression.partition("#/" if "#" in expression else "query.")
                if source == "$response.body":
                    body = response["content"]["application/json"]["examples"][FIRST_LINK[name]]["value"]
                    for step in place.split("/"):
                        body = body[int(step) if step.isdigit() else step]
                    followed.append((link["operationId"], parameter, isinstance(body, str)))
                else:
                    assert (source, place) == ("$request.", parameter)
                    assert parameter in {known["name"] for known in operation["parameters"]}
    parameter = contract.market_parameter(variant)
    assert sorted(followed) == [("getMarket", parameter, True)] * 3 + [("listMarkets", "cursor", True)]


def test_the_example_cursor_is_one_that_could_have_been_minted(document: dict[str, Any]) -> None:
    listing = operations(document)["listMarkets"]
    pages = listing["responses"]["200"]["content"]["application/json"]["examples"]
    cursor = pages["firstPage"]["value"]["nextCursor"]
    assert cursors.read(keys.list_name("open", "popular"), cursor).position == 2
    (given,) = [parameter["examples"] for parameter in listing["parameters"] if parameter["name"] == "cursor"]
    assert given["nextPage"]["value"] == cursor
    assert cursor in listing["responses"]["200"]["headers"]["Link"]["example"]


def test_the_example_categories_have_the_slugs_of_their_names(document: dict[str, Any], variant: Variant) -> None:
    (build,) = operations(document)["getBuild"]["responses"]["200"]["content"]["application/json"]["examples"].values()
    shown = {one["slug"]: one["name"] for one in build["value"].get("categories", ())}
    assert shown == {slugs.of_category(name): name for name in shown.values()}
    assert len(shown) == {"core": 0, "extended": 2}[variant]
    if shown:
        parameters = {parameter["name"]: parameter for parameter in operations(document)["listMarkets"]["parameters"]}
        assert {example["value"] for example in parameters["category"]["examples"].values()} == shown.keys() | {
            *shown.values()
        }


# ── published files ───────────────────────────────────────────────────────────────────────────────────────────────


def body_name(key: str) -> str:
    if key.startswith(keys.LISTS):
        return "PublicMarketList"
    if key.startswith((keys.DETAILS, keys.SLUGS)):
        return "PublicMarketDetail"
    if key.startswith(keys.ERRORS):
        return "ErrorResponse"
    if key.startswith(keys.FEEDS):
        return "Feed"
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
        key == keys.OPENAPI or key.startswith(folders[0])
    )


def test_every_published_file_fits_its_schema(published: dict[str, bytes], validator: Validator) -> None:
    # First pages whose limit exceeds the list are the same bytes.
    shown = {key: body for key, body in published.items() if is_described(key)}
    distinct = {(body_name(key), body) for key, body in shown.items()}
    checks = {name: validator(ref(name)) for name in {name for name, _ in distinct}}
    assert len(checks) == 11
    assert len(distinct) > 500
    for name, body in distinct:
        checks[name].validate(json.loads(body))


# ── programs that read the document ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[ModuleType]:
    """The package that openapi-python-client generates from the published file."""
    # The generator knows no other types than JSON, text and bytes.
    known = {"application/gzip": "application/octet-stream", "application/atom+xml": "text/xml"}
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


def answer(request: httpx.Request, published: dict[str, bytes]) -> httpx.Response:
    """An edge's answers to the few requests below."""
    path, query = request.url.path.removeprefix("/"), request.url.params
    if path == keys.MARKETS:
        name, limit = keys.list_name("all", "new"), int(query["limit"])
        assert (query["status"], query["sort"]) == ("all", "new")
        if "cursor" not in query:
            return httpx.Response(200, content=published[keys.first_page(name, limit)])
        place = cursors.read(name, query["cursor"])
        return httpx.Response(200, content=published[keys.page(name, place.generation, limit, place.position)])
    if (key := {"v1/": keys.SITE_INDEX}.get(path, path)) in published:
        return httpx.Response(200, content=published[key])
    reference = path.rpartition("/")[2]
    by_id, by_slug = keys.detail(reference), keys.detail_by_slug(reference)
    key = keys.SNAPSHOT if f"{path}.json" == keys.SNAPSHOT else by_slug if by_slug in published else by_id
    if key in published:
        return httpx.Response(200, content=published[key])
    return httpx.Response(404, content=published[keys.error(404)])


def test_a_generated_python_client_reads_every_market(client: ModuleType, published: dict[str, bytes]) -> None:
    transport = httpx.MockTransport(lambda request: answer(request, published))
    caller = client.Client(base_url="http://edge", httpx_args={"transport": transport})

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
    assert [item.created_at for item in items] == sorted((item.created_at for item in items), reverse=True)
    for item in items:
        detail = call("markets", "get_market", item.id)
        assert (detail.market.id, detail.market.question) == (item.id, item.question)
        if slug := item.to_dict().get("slug"):
            assert call("markets", "get_market", slug) == detail
        assert detail.to_dict()["recentFills"] == [fill.to_dict() for fill in detail.recent_fills]
    snapshot = call("markets", "get_snapshot")
    assert {signal.id for signal in snapshot.fresh_markets} <= {item.id for item in items}
    head = call("dumps", "get_dump")
    digest = head.markets[0].name.removeprefix("markets/").removesuffix(".ndjson.gz")
    dumped = gzip.decompress(call("dumps", "get_markets_ndjson", digest).payload.read()).splitlines()
    assert {json.loads(line)["id"] for line in dumped} == {str(item.id) for item in items}
    assert call("changes", "get_changes").dump.to_dict() == head.markets[0].to_dict()
    feed = call("feeds", "get_json_feed", enums.FeedName.NEW)
    assert [entry.url.rpartition("/")[2] for entry in feed.items] == [str(item.id) for item in items[:50]]
    assert call("feeds", "get_atom_feed", enums.FeedName.NEW).count("<entry>") == len(feed.items)
    assert call("build", "get_index").feeds[0].json_feed == feed.feed_url
    missing = call("markets", "get_market", MISSING_ID)
    assert encode(missing.to_dict()) == published[keys.error(404)]
