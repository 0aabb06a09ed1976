"""Frozen settings from `config.yaml`, the environment and `--set`, in rising precedence.

Every mistake is reported, each with its place, in one error. No message quotes a value: it may hold a password.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeGuard
from urllib.parse import urlsplit

import pydantic
import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from generator.errors import ConfigError

ENVIRONMENT_PREFIX: Final = "PUBLIC_MARKETS_"
DEMO_DATABASE: Final = "sqlite:///demo.db"

_SOURCE_SCHEMES = ("sqlite", "postgresql", "postgresql+psycopg", "postgres")
# As SQLAlchemy splits a URL: a password may hold `/`, `?` and `#`, where urllib would end the host.
_PASSWORD = re.compile(r"[^:]*://[^:/]*:[^@]+@|.*[?&](ssl)?password=", re.IGNORECASE)
_TARGET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?|(?!.*://).+")
_ISO_DURATION = r"P(?=[0-9T])([0-9]{1,9}D)?(T(?=[0-9])([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}S)?)?"
_DURATION = re.compile(rf"^([0-9]{{1,9}} *(s|min|m|h|d)|{_ISO_DURATION})$")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def _one_line(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError("write one line of printable text")
    return text


def _web_url(text: str) -> str:
    with suppress(ValueError):  # from urlsplit, of brackets and ports
        url = urlsplit(_one_line(text))
        is_bare = url.username is None and url.port != 0 and not set(text) & set("?# \\")
        if is_bare and url.scheme in ("http", "https") and url.hostname:
            return text.rstrip("/")
    raise ValueError("write an http:// or https:// address without user, query and fragment")


def _source_url(secret: SecretStr, info: pydantic.ValidationInfo) -> SecretStr:
    url = secret.get_secret_value()
    if info.context == "file" and _PASSWORD.match(url):
        remedy = f"remove it here and set {_variable('source.url')}"
        raise ValueError(f"secrets come from the environment, never from the file, and this holds a password: {remedy}")
    if not url.isprintable() or url.partition("://")[0] not in _SOURCE_SCHEMES:
        raise ValueError(f"write a database URL, beginning with {'://, '.join(_SOURCE_SCHEMES)}://")
    return secret


def _duration(value: object) -> timedelta:
    """Read whole seconds, `6 h`, `90 min` or the ISO 8601 form `PT6H`."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str) and _DURATION.fullmatch(value):
        parts = re.findall(r"([0-9]+) *(min|[smhd])", value.lower())
        value = sum(int(count) * _SECONDS[unit] for count, unit in parts)
    if type(value) is int and abs(value) < 10**9:  # True is an instance of int, too; more overflows a timedelta
        return timedelta(seconds=value)
    raise ValueError("write a duration: a number of seconds, or like 45 s, 90 min, 6 h, 2 d, PT6H")


def _history_points(count: int) -> int:
    if count == 1:
        raise ValueError("write 0 for none, or at least 2: the first and the last point are always kept")
    return count


def _target(text: str) -> str:
    if not _TARGET.fullmatch(text):
        raise ValueError("write s3://bucket/prefix or a directory")
    return text


def _folder(value: object) -> object:
    return Path(_one_line(value)) if isinstance(value, str) else value


Line = Annotated[str, AfterValidator(_one_line)]
WebUrl = Annotated[str, AfterValidator(_web_url), WithJsonSchema({"type": "string", "pattern": "^https?://"})]
DurationSchema = WithJsonSchema({"type": ["integer", "string"], "pattern": _DURATION.pattern})
Duration = Annotated[timedelta, BeforeValidator(_duration), DurationSchema]
HistoryPoints = Annotated[
    int, Field(ge=0, le=10_000, json_schema_extra={"not": {"const": 1}}), AfterValidator(_history_points)
]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """Base of all settings: nothing unknown, nothing guessed, nothing changed later, no value in an error."""

    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class Source(Section):
    """The database that is read."""

    url: Annotated[SecretStr, AfterValidator(_source_url), WithJsonSchema({"type": "string"})] = Field(
        SecretStr(DEMO_DATABASE),
        description="SQLAlchemy URL of the database, sqlite or postgresql; a password belongs in the environment.",
        json_schema_extra={"default": DEMO_DATABASE},
    )
    # BaseModel has a method named schema.
    schema_: Line | None = Field(
        None, alias="schema", description="Database schema of the relations; null: the connection's own."
    )


class Snapshot(Section):
    """The landing page's groups."""

    size: int = Field(6, ge=0, le=100, description="Markets in each group.")


class Detail(Section):
    """What is published of a single market."""

    order_book: bool = Field(default=True, description="Whether to publish public resting orders, summed per price.")
    recent_fills: int = Field(50, ge=0, le=1000, description="Most fills to publish, newest first.")
    history_points: HistoryPoints = Field(
        500, description="Most points of the probability history; not 1, as the first and the last are always kept."
    )


class Cursor(Section):
    """Walks through a list."""

    lifetime: Duration = Field(
        timedelta(hours=6),
        ge=timedelta(minutes=1),
        le=timedelta(days=366),
        description="How long a replaced list stays for those who are still walking through it.",
    )


class RateLimit(Section):
    """What the edge grants one address."""

    requests: int = Field(300, ge=1, description="Requests per window and address.")
    window: Duration = Field(timedelta(seconds=60), ge=timedelta(seconds=1), description="Length of the window.")


class Guards(Section):
    """States that look like an accident and are refused."""

    max_shrink: Share = Field(0.2, description="Largest share of the published markets that one run may lose.")
    max_invalid: Share = Field(0.01, description="Largest share of the markets that may break the contract.")
    max_monthly_cost: float = Field(100.0, ge=0, description="Largest estimated cost of publishing, in USD per month.")


class Publish(Section):
    """Where the files go."""

    target: Annotated[Line, AfterValidator(_target)] | None = Field(
        None, description="s3://bucket/prefix or a directory; null: nowhere yet."
    )
    endpoint_url: WebUrl | None = Field(None, description="Address of an S3-compatible store; null: Amazon's own.")


class Config(Section):
    """Settings of the public-markets job."""

    base_url: WebUrl = Field("http://127.0.0.1:8000", description="Address under which readers reach the API.")
    source: Source = Field(default_factory=Source)
    output: Annotated[Path, BeforeValidator(_folder)] = Field(Path("output"), description="Folder a build writes.")
    variant: Literal["core", "extended"] = Field(
        "core", description="Which form of the API to publish: core, or extended."
    )
    layout: Literal["pages", "chunks"] = Field(
        "pages", description="How a list becomes objects: pages for every edge, chunks for edges that can read objects."
    )
    schedule: int = Field(60, ge=1, description="Minutes between builds, as cron has it; costs are estimated with it.")
    snapshot: Snapshot = Field(default_factory=Snapshot)
    detail: Detail = Field(default_factory=Detail)
    cursor: Cursor = Field(default_factory=Cursor)
    rate_limit: RateLimit = Field(default_factory=RateLimit)
    guards: Guards = Field(default_factory=Guards)
    publish: Publish = Field(default_factory=Publish)


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{key}.")
        else:
            yield key, field


#: Every setting by its dotted key; a FieldInfo knows its default and description.
KEYS: Final[Mapping[str, FieldInfo]] = dict(_fields(Config))
_SECTIONS = frozenset(key.partition(".")[0] for key in KEYS if "." in key)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of `config.yaml`; draft 7 is what the YAML support of editors knows best."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", **Config.model_json_schema()}


def load(path: Path, *, overrides: Sequence[str] = (), environ: Mapping[str, str]) -> Config:
    """Read the settings; `overrides` are `dotted.key=value`. Raise one ConfigError with a line for every mistake."""
    found = [*_read_file(path), *_read_environment(environ), *_read_overrides(overrides)]
    mistakes = [line for item in found for line in ([item] if isinstance(item, str) else _check(item))]
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return Config.model_validate(_nest({item.key: item.value for item in found if isinstance(item, _Setting)}))


@dataclass(frozen=True, repr=False)
class _Setting:
    where: str
    key: str
    value: Any
    layer: Literal["file", "environment", "--set"]


def _check(setting: _Setting) -> list[str]:
    """Try a setting on its own, so that a mistake shows even where another layer overrides it."""
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


def _sentence(detail: ErrorDetails) -> str:
    if detail["input"] is None:
        return "has no value; give it one or remove it"
    message = _REMEDIES.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
    return message[0].lower() + message[1:]


def _unknown(key: str, known: Iterable[str], spell: Callable[[str], str] = str) -> str:
    close = difflib.get_close_matches(key, list(known), n=1)
    return f"unknown setting; did you mean {spell(close[0])}?" if close else "unknown setting; remove it"


def _shown(name: str) -> str:
    """Return the name if it looks like one; what does not may be a URL with a password that lost its place."""
    return name if re.fullmatch(r"[\w.<-]{1,60}", name) else "…"


def _variable(key: str) -> str:
    return ENVIRONMENT_PREFIX + key.replace(".", "__").upper()


def _read_environment(environ: Mapping[str, str]) -> Iterator[_Setting | str]:
    keys = {_variable(key): key for key in KEYS}
    for name in sorted(environ):
        variable = name.upper()
        if variable in keys:
            yield _Setting(name, keys[variable], _read_text(keys[variable], environ[name]), "environment")
        elif variable.startswith(ENVIRONMENT_PREFIX):
            key = variable.removeprefix(ENVIRONMENT_PREFIX).replace("__", ".").lower()
            yield f"{_shown(name)}: {_unknown(key, KEYS, _variable)}"


def _read_overrides(overrides: Sequence[str]) -> Iterator[_Setting | str]:
    for override in overrides:
        key, equals, text = override.partition("=")
        where = f"--set {_shown(key)}"
        if not equals:
            yield f"{where}: write it as dotted.key=value, such as --set schedule=60"
        elif key not in KEYS:
            yield f"{where}: {_unknown(key, KEYS)}"
        else:
            yield _Setting(where, key, _read_text(key, text), "--set")


def _read_text(key: str, text: str) -> Any:
    """Read the value of a variable or an override, which has no quotes to tell the text `123` from the number."""
    is_text = KEYS[key].annotation not in (bool, int, float, timedelta)
    return text if text and is_text else _read_scalar(text.strip())


def _read_scalar(text: str) -> Any:
    """Read an unquoted scalar as YAML 1.2 and thus editors do: `no` and dates are text, `010` is ten."""
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
        # Without a resolver every untagged scalar is text: PyYAML's is for YAML 1.1, where `no` and `1:30` surprise.
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
            remedy = "name a file with --config, or create it: an empty one means all defaults"
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
        case _:  # PyYAML hands any number in an escape to chr()
            return ": is not YAML: holds an escape that is no character; correct what follows the backslash"


def _position(mark: yaml.Mark | None) -> str:
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _read_mapping(node: yaml.Node, path: Path, section: str = "") -> Iterator[_Setting | str]:
    if _is_plain(node) and _value(node) is None:
        return  # nothing, or a section with all its keys commented out
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
        elif key in _SECTIONS:
            yield from _read_mapping(value, path, key)
        elif "." in name:
            yield f"{where}: write what precedes the dot as a section and the rest indented below it"
        elif key in KEYS:
            yield _read_value(value, key, f"{path}{_position(value.start_mark)} {key}")
        else:
            yield f"{where}: {_unknown(key, [*KEYS, *_SECTIONS])}"
        seen.add(key)


def _read_value(node: yaml.Node, key: str, where: str) -> _Setting | str:
    # Lists and mappings are not unfolded, so aliases that multiply them cost nothing.
    if not _is_plain(node):
        return f"{where}: write a single value, without a YAML tag"
    return _Setting(where, key, _value(node), "file")


def _is_plain(node: yaml.Node) -> TypeGuard[yaml.ScalarNode]:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str"


def _value(node: yaml.ScalarNode) -> Any:
    return node.value if node.style else _read_scalar(node.value)
