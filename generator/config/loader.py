"""Loads the settings from `config.yaml`, the environment and `--set`, the last taking precedence.

One error reports all mistakes with their positions. No message quotes a value: it may be a password.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

import pydantic
import yaml
from pydantic_core import ErrorDetails

from generator.config import gone
from generator.config.gone import GONE
from generator.config.settings import DEMO_DATABASE, ENVIRONMENT_PREFIX, FORMER, KEYS, LISTS, SECTIONS, Config, variable
from generator.errors import ConfigError


def load(path: Path, *, overrides: Sequence[str] = (), environ: Mapping[str, str]) -> Config:
    """Load the settings; `overrides` are `dotted.key=value`. Raise one ConfigError with a line per mistake."""
    found = [*_without_default_source(_read_file(path)), *_read_environment(environ), *_read_overrides(overrides)]
    mistakes = [line for item in found for line in ([item] if isinstance(item, str) else _check(item))]
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    settings = (item for item in found if isinstance(item, _Setting) and item.key not in GONE)
    config = Config.model_validate(_nest({item.key: item.value for item in settings}))
    if conflict := config.conflict():
        raise ConfigError(conflict)
    return config


def from_environment(key: str, environ: Mapping[str, str]) -> str | None:
    """The text of one setting in the environment, or None; raise ConfigError if it is not a valid value."""
    found = next((value for name, value in environ.items() if name.upper() == variable(key)), None)
    if found is not None and (mistakes := _check(_Setting(variable(key), key, found, "environment"))):
        raise ConfigError(mistakes[0])
    return found


def _without_default_source(found: Iterable["_Setting | str"]) -> Iterator["_Setting | str"]:
    """Omit `source.url` where it only repeats the default, as the project's config.yaml does."""
    for item in found:
        if not (isinstance(item, _Setting) and item.key == "source.url" and item.value == DEMO_DATABASE):
            yield item


@dataclass(frozen=True, repr=False)
class _Setting:
    where: str
    key: str
    value: Any
    layer: Literal["file", "environment", "--set"]


def _check(setting: _Setting) -> list[str]:
    """Validate one setting alone, to report a mistake even if another layer overrides it."""
    if setting.key in GONE:
        refusal = gone.refusal(setting.key, setting.value)
        return [f"{setting.where}: {refusal}"] if refusal else []
    try:
        Config.model_validate(_nest({setting.key: setting.value}), context=setting.layer)
    except pydantic.ValidationError as error:
        return [f"{setting.where}: {_sentence(detail)}" for detail in error.errors(include_url=False)]
    return []


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = value
    return tree


_REMEDIES = {
    "bool_type": "write true or false, without quotes",
    "finite_number": "write a finite number",
    "float_type": "write a finite number, without quotes",
    "int_type": "write a whole number, without quotes",
    "is_instance_of": "write the path of a folder, in quotes if it looks like a number",
    "string_type": "write text, in quotes if it looks like a number",
}


#: Of `archive.days`, a former setting, and its section.
_NO_ARCHIVE = (
    "no archive of days is published any more; remove the setting, and see docs/dumps.md for a query that tells the "
    "prices of any day"
)


#: What to suggest: no section whose settings are all gone.
_CURRENT = frozenset({*KEYS, *(key.partition(".")[0] for key in KEYS)})


def _sentence(detail: ErrorDetails) -> str:
    if detail["input"] is None:
        return "has no value; give it one or remove it"
    message = _REMEDIES.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
    return message[0].lower() + message[1:]


def _unknown(key: str, known: Iterable[str], spell: Callable[[str], str] = str) -> str:
    if key.partition(".")[0] == "archive":
        return _NO_ARCHIVE
    close = difflib.get_close_matches(key, list(known), n=1)
    return f"unknown setting; did you mean {spell(close[0])}?" if close else "unknown setting; remove it"


def _shown(name: str) -> str:
    """Return the name if it looks like one; anything else may be a misplaced URL with a password."""
    return name if re.fullmatch(r"[\w.<-]{1,60}", name) else "…"


def _read_environment(environ: Mapping[str, str]) -> Iterator[_Setting | str]:
    keys = {variable(key): key for key in (*KEYS, *FORMER)}
    for name in sorted(environ):
        upper = name.upper()
        if upper in keys:
            yield _Setting(name, keys[upper], _read_text(keys[upper], environ[name]), "environment")
        elif upper.startswith(ENVIRONMENT_PREFIX):
            key = upper.removeprefix(ENVIRONMENT_PREFIX).replace("__", ".").lower()
            yield f"{_shown(name)}: {_unknown(key, KEYS, variable)}"


def _read_overrides(overrides: Sequence[str]) -> Iterator[_Setting | str]:
    for override in overrides:
        key, equals, text = override.partition("=")
        where = f"--set {_shown(key)}"
        if not equals:
            yield f"{where}: write it as dotted.key=value, such as --set schedule=60"
        elif key not in KEYS and key not in FORMER:
            yield f"{where}: {_unknown(key, KEYS)}"
        else:
            yield _Setting(where, key, _read_text(key, text), "--set")


def _read_text(key: str, text: str) -> Any:
    """Parse a variable or an override by the type of its key: no quotes distinguish the text `123` from the number."""
    annotation = GONE[key].type if key in GONE else KEYS[key].annotation if key in KEYS else str
    is_text = {bool, int, float, timedelta}.isdisjoint(_types(annotation))
    return text if text and is_text else _read_scalar(text.strip())


def _types(annotation: Any) -> Iterator[Any]:
    """The type of a setting, or the types that it may have."""
    if get_origin(annotation) is Annotated:
        yield from _types(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for one in get_args(annotation):
            yield from _types(one)
    else:
        yield annotation


def _read_scalar(text: str) -> Any:
    """Parse an unquoted scalar as YAML 1.2 (and editors) do: `no` and dates are text, `010` is ten."""
    words = {"": None, "~": None, "null": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    if re.fullmatch(r"[-+.0-9eE]+", text):
        for number in (int, float):
            with suppress(ValueError):
                return number(text)
    return text


def _read_file(path: Path) -> Iterator[_Setting | str]:
    try:
        # BaseLoader leaves untagged scalars as text: PyYAML resolves them as YAML 1.1, where `no` and `1:30` surprise.
        root = yaml.compose(path.read_bytes().decode("utf-8-sig"), Loader=yaml.BaseLoader)
    except (OSError, yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        yield f"{path}{_explain(error)}"
    else:
        if root is not None:
            yield from _read_mapping(root, path)


def _explain(error: Exception) -> str:
    """Say why the file cannot be read. PyYAML's own message quotes the line, which may hold a password."""
    match error:
        case OSError():
            remedy = "name a file with --config, or create it: an empty file means all defaults"
            return f": {(error.strerror or 'cannot be read').lower()}; {remedy}"
        case UnicodeDecodeError():
            return f": is not UTF-8 at byte {error.start + 1}; save it as UTF-8"
        case yaml.reader.ReaderError():
            return f": is not YAML: character {error.position + 1} is a control character; remove it"
        case yaml.MarkedYAMLError():
            is_tab = "\\t" in (error.problem or "")
            reason = ", ".join(filter(None, [error.context, error.problem]))
            return (
                f"{_position(error.problem_mark)}: is not YAML: {'indent with spaces, not tabs' if is_tab else reason}"
            )
        case RecursionError():
            return ": is nested too deeply; settings have two levels"
        case _:  # PyYAML passes any number in an escape to chr()
            return ": is not YAML: an escape sequence is not a character; correct what follows the backslash"


def _position(mark: yaml.Mark | None) -> str:
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _read_mapping(node: yaml.Node, path: Path, section: str = "") -> Iterator[_Setting | str]:
    if _is_plain(node) and _value(node) is None:
        return  # an empty file, or a section with all keys commented out
    if not isinstance(node, yaml.MappingNode) or node.tag != "tag:yaml.org,2002:map":
        where = f"{path}{_position(node.start_mark)} {section}".rstrip()
        yield f"{where}: write settings here, one `key: value` per line"
        return
    seen: set[str] = set()
    for key_node, value in node.value:
        name = key_node.value if _is_plain(key_node) else "…"
        key = f"{section}.{name}" if section else name
        where = f"{path}{_position(key_node.start_mark)} {_shown(key)}"
        if key in seen:
            yield f"{where}: is set twice; remove one of the two"
        elif key in SECTIONS:
            yield from _read_mapping(value, path, key)
        elif "." in name:
            yield f"{where}: write the part before the dot as a section, and indent the rest below it"
        elif key in KEYS or key in FORMER:
            yield _read_value(value, key, f"{path}{_position(value.start_mark)} {key}")
        else:
            yield f"{where}: {_unknown(key, _CURRENT)}"
        seen.add(key)


def _read_value(node: yaml.Node, key: str, where: str) -> _Setting | str:
    if key in LISTS:
        return _read_list(node, key, where)
    # Lists and mappings are not expanded, so multiplying aliases cost nothing.
    if not _is_plain(node):
        return f"{where}: write a single value, without a YAML tag"
    return _Setting(where, key, _value(node), "file")


def _read_list(node: yaml.Node, key: str, where: str) -> _Setting | str:
    """Read a list of texts, or comma-separated text as in a variable."""
    if isinstance(node, yaml.SequenceNode) and all(map(_is_plain, node.value)):
        return _Setting(where, key, [item.value for item in node.value], "file")
    if not _is_plain(node):
        return f"{where}: write a list of texts, without YAML tags"
    return _Setting(where, key, None if _value(node) is None else node.value, "file")


def _is_plain(node: yaml.Node) -> TypeGuard[yaml.ScalarNode]:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str"


def _value(node: yaml.ScalarNode) -> Any:
    return node.value if node.style else _read_scalar(node.value)
