"""The OpenAPI 3.1 document of the read API: `openapi.yaml`, filled in, with the schemas of the contract's models."""

import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from generator import __version__
from generator.api import changelog, contract, downloads, feeds, history, keys, licensing, links, questions, slugs
from generator.config.settings import Config
from generator.wording import span

JsonObject: TypeAlias = dict[str, Any]

#: The modules whose constants the template may name.
_CONSTANTS: Final = {
    "changelog": changelog, "contract": contract, "downloads": downloads, "feeds": feeds, "keys": keys,
    "questions": questions, "slugs": slugs,
}  # fmt: skip
#: An example of `v1/history.json`: outcomes of markets, their probabilities, and an as-of.
_RECORD: Final = (
    {str(number): history.Settled(number == 1, "2026-01-20T12:00:00.000Z") for number in range(3)},
    [("0", 0.25, 0.125), ("1", 0.75, 0.875), ("2", None, 0.375)],
    "2026-01-31T12:00:00.000Z",
)
#: Where `public-markets serve` listens, unless told otherwise.
_LOCAL_SERVER: Final = "http://127.0.0.1:8000"
#: Properties that say more than the core variant does, in any model but that of a category.
_EXTENDED: Final = contract.EXTENDED_PROPERTIES | {"search", "tags"}
#: The property of models that only sites with questions have.
_OF_QUESTIONS: Final = "questions"
#: The property of a closed model that only sites with a record of accuracy have.
_OF_HISTORY: Final = "SiteIndex.history"
#: The properties that only sites have which tell their licence, or their publisher.
_OF_LICENSE: Final = {"license", "_rights"}
_OF_PUBLISHER: Final = {"publisher", "FeedAuthor.url"}
#: The model whose properties the core variant has, too, although they are named like some of those.
_NOT_OF_MARKETS: Final = "Category"
_REF: Final = "#/components/schemas/"
#: A parameter in a path.
_PARAMETER: Final = re.compile(r"\{\w+\}")
#: Readers of the document do not have the contract.
_SECTION: Final = re.compile(r" \(contract §[^)]*\)")
#: What the template may have in a text, in this order; its first lines tell.
_CHOICE: Final = re.compile(r"\[\[([\w. ]+):(.*?)\]\]", re.DOTALL)
_VALUE: Final = re.compile(r"\{\{([\w.]+)(?::([^{}]+))?\}\}")


class Document(NamedTuple):
    """A document of a site: its path, the name of its kind, what readers find there, and the model of its JSON.

    `is_optional`: it may be absent, which is a 404. `tag` is the group of its operation.
    """

    path: str
    name: str
    sentence: str
    schema: type[BaseModel]
    is_optional: bool
    tag: str


class Described(NamedTuple):
    """What a site publishes: its index and `llms.txt`, which are examples, its documents, and the models of bodies."""

    site_index: BaseModel
    llms: str
    documents: Sequence[Document]
    bodies: tuple[type[BaseModel], ...]


def document(config: Config, site: Described) -> JsonObject:
    """The document for a site with these settings, as JSON values."""
    values = _values(config, site)
    shared = _template()["x-shared"]
    values["texts"] = _filled(shared["texts"], values)
    values["choices"] = {name: _listed(shared[name]) for name in ("statuses", "question_statuses", "sorts")}
    made: JsonObject = _filled(_template(), values)
    del made["x-shared"]
    described = [re.compile(_PARAMETER.sub("[^/]+", path)) for path in made["paths"]]
    others = [one for one in site.documents if not any(path.fullmatch(one.path) for path in described)]
    made["paths"] |= {one.path: {"get": _get_document(one)} for one in others}
    meanings, components = made.pop("x-meanings"), made["components"]
    known = {**_schemas(config, site.bodies, meanings, components["schemas"]), **components["schemas"]}
    components["schemas"] = _used(known, {**made, "components": components["responses"]})
    return made


def _get_document(one: Document) -> JsonObject:
    """The operation of a document of which the template says nothing: what its kind says of itself."""
    headline = one.sentence[:1].upper() + one.sentence[1:]
    refused = {"404": "NotFound"} if one.is_optional else {}
    refused |= {"405": "MethodNotAllowed", "429": "TooManyRequests", "503": "Unavailable"}
    answer = {"description": f"The {one.name}.", "content": {"application/json": {"schema": ref(one.schema.__name__)}}}
    return {
        "operationId": to_camel(f"get_{one.name}"),
        "summary": headline,
        "description": f"{headline}.",
        "tags": [one.tag],
        "responses": {"200": answer}
        | {status: {"$ref": f"#/components/responses/{name}"} for status, name in refused.items()},
    }


def meaning(model: str, name: str) -> str:
    """What a property of a model means on every site, without what depends on settings."""
    known = _template()["x-meanings"]
    return _CHOICE.sub("", known.get(f"{model}.{name}") or known[name])


def ref(name: str) -> JsonObject:
    """A reference to the named schema."""
    return {"$ref": f"{_REF}{name}"}


# ── the template ──────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _template() -> JsonObject:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the former is six times as fast, where there is one
    found: JsonObject = yaml.load(pkgutil.get_data(__name__, "openapi.yaml") or b"", loader)  # noqa: S506 - both are safe
    return found


def _values(config: Config, site: Described) -> JsonObject:
    """What the template may name, or begin a name with."""
    is_core = config.variant == "core"
    reference, question = contract.market_parameter(config.variant), contract.question_parameter(config.variant)
    own = contract.question_errors(can_search=config.can_search)
    faults = [*contract.parameter_errors(config.variant, can_search=config.can_search), question, *own]
    refusal = contract.invalid(*faults, variant=config.variant, can_search=config.can_search)
    refusals = dict(zip(faults, _json(refusal)["details"], strict=True))
    page = links.uri_template(config.market_url)
    publisher = licensing.Publisher.of(config)
    local = _LOCAL_SERVER + urlsplit(config.base_url).path
    return {
        **_CONSTANTS,
        "config": config,
        "core": is_core,
        "extended": not is_core,
        "is_unsearchable": not is_core and not config.can_search,
        "pages": config.layout == "pages",
        "searched": " or ".join(config.search_texts),
        "window_seconds": int(config.rate_limit.window.total_seconds()),
        "reference": reference,
        "refusals": refusals,
        "refused_market": refusals[reference],
        "question_reference": question,
        "refused_question": refusals[question],
        "refused_q": refusals[next(iter(own), "q")],
        "local": local,
        "is_local": config.base_url == local,
        "page": page,
        "page_name": page and links.name_in(page),
        "index": _json(site.site_index),
        "llms": site.llms,
        "license": config.license and licensing.in_openapi(config.license),
        "publisher": publisher and publisher.model_dump(),
        "oldest": _json(changelog.published().entries[-1]),
        "record": _json(history.make(*_RECORD)),
        "version": __version__,
    }


def _filled(part: Any, values: JsonObject) -> Any:
    """A part of the template with these values, without what is there under other conditions."""
    if isinstance(part, str):
        return _text(part, values)
    if isinstance(part, list):
        return [item for item in (_filled(item, values) for item in part) if item != {}]
    if not isinstance(part, dict):
        return part
    found = JsonObject()
    for key, content in part.items():
        if key == "..." or (key.startswith("if ") and _holds(key[3:], values)):
            found |= _filled(content, values)
        elif not key.startswith("if "):
            found[_text(key, values)] = _filled(content, values)
    return found


def _listed(examples: JsonObject) -> str:
    """What each value of a parameter means, as a list."""
    return "\n".join(f"- `{value}`: {example['summary']}" for value, example in examples.items())


def _text(text: str, values: JsonObject) -> Any:
    """The text filled in; a text that is only the name of a value becomes that."""
    text = _CHOICE.sub(lambda found: found[2] if _holds(found[1], values) else "", text)
    if whole := _VALUE.fullmatch(text):
        return _value(whole[1], values)
    return _VALUE.sub(lambda found: format(_value(found[1], values), found[2] or ""), text)


def _json(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True)


def _holds(condition: str, values: JsonObject) -> bool:
    name = condition.removeprefix("not ")
    return bool(_value(name, values)) == (name == condition)


def _value(name: str, values: JsonObject) -> Any:
    """The value of a name such as `config.schedule`; a duration in words, but None if it is 0."""
    first, _, rest = name.partition(".")
    found = values[first]
    if rest:
        found = found[rest] if isinstance(found, Mapping) else attrgetter(rest)(found)
    if isinstance(found, timedelta):
        return span(found) if found else None
    return [*found] if isinstance(found, tuple) else found


# ── the schemas ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _Untitled(GenerateJsonSchema):
    """Omits the titles that pydantic derives from property names, as they are redundant."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic names it
        """Never."""
        return False


@cache
def _generated(bodies: Sequence[type[BaseModel]]) -> JsonObject:
    """Every schema as pydantic generates it, with the models that bodies contain.

    Once, as that takes longer than the rest of the document.
    """
    _, generated = models_json_schema(
        [(model, "serialization") for model in bodies], ref_template=f"{_REF}{{model}}", schema_generator=_Untitled
    )
    found: JsonObject = generated["$defs"]
    return found


def _schemas(
    config: Config, bodies: Sequence[type[BaseModel]], meanings: Mapping[str, str], enums: JsonObject
) -> JsonObject:
    """The schemas of all models by name, with named enumerations.

    For unnamed ones, client generators create a type per use.
    """
    omitted = frozenset[str]() if config.variant == "extended" else _EXTENDED
    if not config.has_questions:
        omitted |= {_OF_QUESTIONS}
    if not config.history.public:
        omitted |= {_OF_HISTORY}
    if not config.license:
        omitted |= _OF_LICENSE
    if not config.publisher.shown_name:
        omitted |= _OF_PUBLISHER
    named = {tuple(schema["enum"]): name for name, schema in enums.items()}
    found = JsonObject()
    for name, schema in _generated(bodies).items():
        properties = {
            key: {
                "description": value.get("description") or meanings.get(f"{name}.{key}") or meanings[key],
                **_named(_present(value), named),
            }
            for key, value in schema["properties"].items()
            if not omitted & {key, f"{name}.{key}"} or name == _NOT_OF_MARKETS
        }
        found[name] = {**schema, "description": _SECTION.sub("", schema["description"]), "properties": properties}
        del found[name]["title"]
    return found


def _present(schema: JsonObject) -> JsonObject:
    """The schema of what is there: a default of None means that it may be absent, and on the wire it is never null."""
    if schema.get("default", ...) is None:
        found: JsonObject = next(choice for choice in schema["anyOf"] if choice.get("type") != "null")
        return found
    return schema


def _named(schema: JsonObject, enums: Mapping[tuple[str, ...], str]) -> JsonObject:
    if name := enums.get(tuple(schema.get("enum", ()))):
        return ref(name)
    if "anyOf" in schema:
        return {**schema, "anyOf": [_named(choice, enums) for choice in schema["anyOf"]]}
    return schema


def _used(known: JsonObject, part: JsonObject) -> JsonObject:
    """Those of the `known` schemas that a part of the document uses, sorted by name."""
    names, found = set[str](), {*_references(part)}
    while new := found - names:
        names |= new
        found = {reference for name in new for reference in _references(known[name])}
    return {name: known[name] for name in sorted(names)}


def _references(part: Any) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    if isinstance(part, dict):
        if str(part.get("$ref", "")).startswith(_REF):
            yield part["$ref"].removeprefix(_REF)
        part = part.values()
    elif not isinstance(part, list):
        return
    for value in part:
        yield from _references(value)
