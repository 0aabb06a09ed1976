"""Makes `public_markets_client/models.py`, the types of the API, from its OpenAPI documents; `make bless` writes it."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

#: The first line of the module that is generated.
HEADER = "# Generated from OpenAPI by generate_models.py; do not edit, run `make bless`.\n"
#: The names of the types by those of their schemas; what a type refers to stands before it. One name may stand for
#: several schemas, as sites differ by their settings: what only some of these have, or require, is optional.
TYPES = {
    "StatusFilter": "Status",
    "Sort": "Sort",
    "PublicMarketListItem": "Market",
    "FxFamilyMember": "FxFamilyMember",
    "PublicMarketDetailMarket": "FullMarket",
    "OrderBookLevel": "OrderBookLevel",
    "OrderBook": "OrderBook",
    "PublicRecentFill": "Fill",
    "ProbabilityPoint": "ProbabilityPoint",
    "PublicMarketDetail": "MarketDetail",
    "PublicMarketSignal": "Signal",
    "PublicMarketSnapshot": "Snapshot",
    "MarketPrice": "Price",
    "Prices": "Prices",
    "Category": "Category",
    "QuestionTotals": "QuestionTotals",
    "BuildRecord": "Build",
    "PublicMarketList": "Page",
    "QuestionMarket": "QuestionMarket",
    "QuestionListItem": "Question",
    "QuestionList": "QuestionPage",
    "QuestionSummary": "QuestionSummary",
    "QuestionMember": "QuestionMember",
    "QuestionDetail": "QuestionDetail",
    "MarketsFile": "MarketsFile",
    "PeriodFile": "PeriodFile",
    "DefinitionsFile": "DefinitionsFile",
    "Definitions": "Definitions",
    "NumberedDefinitions": "NumberedDefinitions",
    "DumpHead": "DumpHead",
    "Step": "Step",
    "ChangesHead": "ChangesHead",
}
#: Types that have all that another has, and more.
BASES = {"FullMarket": "Market", "NumberedDefinitions": "Definitions"}
_BEGINNING = '''"""The objects of the API, frozen, and nothing else; what is absent or null in JSON is None.

States, outcomes and other enumerations are plain text: a value that is new is no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from public_markets_client.decoding import Extensible

'''
_ANNOTATIONS = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"}
_TIMES = {"date-time": "datetime", "date": "date"}
_WIDTH = 120

_Json = Mapping[str, Any]
#: The annotations and descriptions of properties, by their names in JSON.
_Fields = dict[str, tuple[str, str]]


def module(document: _Json) -> str:
    """The text of the module, for a site with this document; raise ValueError if no type says what a schema does."""
    site = document["components"]["schemas"]
    if missing := TYPES.keys() - site.keys():
        raise ValueError(f"there is no schema for {', '.join(sorted(missing))}: remove it from TYPES")
    schemas = {name: site[schema] for schema, name in TYPES.items()}
    fields = {name: _fields(schema, site) for name, schema in schemas.items()}
    exported = _wrapped(", ".join(f'"{name}"' for name in sorted(schemas)), "    ")
    definitions = (_definition(name, found, fields) for name, found in schemas.items())
    return f"{HEADER}{_BEGINNING}__all__ = [\n{exported},\n]  # fmt: skip\n\n{''.join(definitions)}"


def _fields(schema: _Json, site: _Json) -> _Fields:
    fields: _Fields = {}
    for key, value in schema.get("properties", {}).items():
        annotation = _annotation(value, site)
        optional = f"{annotation.removesuffix(' | None')} | None = None"
        is_required = key in schema.get("required", ())
        fields[key] = (annotation if is_required else optional, _in_python(value["description"]))
    return fields


def _annotation(schema: _Json, site: _Json) -> str:
    match schema:
        case {"$ref": reference}:
            name = reference.rpartition("/")[2]
            return TYPES.get(name) or _annotation(site[name], site)
        case {"anyOf": [value, {"type": "null"}]}:
            return f"{_annotation(value, site)} | None"
        case {"type": "array", "items": value}:
            return f"tuple[{_annotation(value, site)}, ...]"
        case {"type": "object", "additionalProperties": dict() as value}:
            return f"Mapping[str, {_annotation(value, site)}]"
        case {"type": kind} if kind in _ANNOTATIONS:
            return _TIMES.get(schema.get("format", ""), _ANNOTATIONS[kind])
    raise ValueError(f"no annotation says {schema}: write one, or name the schema in TYPES")


def _definition(name: str, schema: _Json, fields: Mapping[str, _Fields]) -> str:
    """A type as it is defined, with the blank lines around it; the `fields` are those of all types."""
    description = _in_python(schema["description"])
    if "enum" in schema:
        values = ", ".join(f'"{value}"' for value in schema["enum"])
        return f"#: {description}\n{name} = Literal[{values}]\n"
    base = BASES.get(name, "Extensible")
    inherited = fields.get(base, {})
    if not inherited.items() <= fields[name].items():
        raise ValueError(f"{name} has not all that {base} has, or has it otherwise")
    paragraphs = [_wrapped(one, "    ") for one in description.split("\n\n")]
    end = "" if len(paragraphs) == 1 else "\n    "
    docstring = "\n\n".join(paragraphs).replace("    ", '    """', 1) + f'{end}"""'
    lines = "".join(_line(key, *field) for key, field in fields[name].items() if key not in inherited)
    return f"\n\n@dataclass(frozen=True, kw_only=True)\nclass {name}({base}):\n{docstring}\n\n{lines}"


def _line(key: str, annotation: str, description: str) -> str:
    """A field and its description: beside it, or above it where that is too long."""
    if "Mapping" in annotation:  # which has no hash
        kind, is_optional, _ = annotation.partition(" = ")
        annotation = f"{kind} = field({'default=None, ' if is_optional else ''}hash=False)"
    code = f"    {snake_case(key)}: {annotation}"
    beside = f"{code}  # {description}"
    return f"{beside}\n" if len(beside) <= _WIDTH else f"{_wrapped(description, '    # ')}\n{code}\n"


def _in_python(description: str) -> str:
    """What a description says, with names as they are in Python."""
    return re.sub(r"\bnull\b", "None", re.sub(r"`[a-z]\w*`", lambda name: snake_case(name[0]), description))


def snake_case(name: str) -> str:
    """The name in Python of a property: close_time for closeTime."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
