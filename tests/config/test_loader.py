"""The settings: what is accepted, what is refused, and how every refusal reads."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from generator.config import settings as known
from generator.config.loader import load
from generator.config.settings import KEYS, Config
from generator.errors import ConfigError

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "generator" / "config" / "schema.json"
SECRET = "hunter2"  # noqa: S105 - the password that must never show
NO_DURATION = "write a duration: a number of seconds, or like 45 s, 90 min, 6 h, 2 d, PT6H"
NO_DATABASE = "write a database URL, beginning with sqlite://, postgresql://, postgresql+psycopg://, postgres://"
NO_LIST = "write a list of texts, without YAML tags"
NO_COMMAND = "write the program and its arguments as a list of texts"
CATEGORIES = "name each category once, in printable text, as a list or separated by commas"
IN_FILE = "holds a password, which must not be in the file; set PUBLIC_MARKETS_SOURCE__URL instead"
WITH_PASSWORD = f"postgresql://reader:{SECRET}@db.example/markets"


class Folder:
    """A place for one `config.yaml`, to be read as if it were the working directory."""

    def __init__(self, path: Path) -> None:
        self.file = path / "config.yaml"

    def load(self, text: str | bytes = "", *overrides: str, **environ: str) -> Config:
        self.file.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(self.file, overrides=overrides, environ=environ)

    def mistakes(self, text: str | bytes = "", *overrides: str, **environ: str) -> list[str]:
        try:
            self.load(text, *overrides, **environ)
        except ConfigError as error:
            return str(error).replace(str(self.file), "config.yaml").split("\n")
        return []


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def value_of(settings_: Config, key: str) -> Any:
    value: Any = settings_
    for name in key.split("."):
        value = getattr(value, "schema_" if name == "schema" else name)
    return value


# What is accepted


def test_the_config_file_of_the_project_says_exactly_the_defaults() -> None:
    assert load(ROOT / "config.yaml", environ={}) == Config()


def test_the_defaults_are_those_of_the_design() -> None:
    defaults = {key: value_of(Config(), key) for key in KEYS}
    assert defaults.pop("source.url").get_secret_value() == "sqlite:///demo.db"
    assert defaults == {
        "base_url": "http://127.0.0.1:8000",
        "source.schema": None,
        "output": Path("output"),
        "variant": "core",
        "categories": None,
        "layout": "pages",
        "schedule": 60,
        "snapshot.size": 6,
        "detail.order_book": True,
        "detail.recent_fills": 50,
        "detail.history_points": 500,
        "cursor.lifetime": timedelta(hours=6),
        "rate_limit.requests": 300,
        "rate_limit.window": timedelta(seconds=60),
        "guards.max_shrink": 0.2,
        "guards.max_invalid": 0.01,
        "guards.max_monthly_cost": 100,
        "publish.target": None,
        "publish.endpoint_url": None,
        "publish.client": "obstore",
        "publish.single_writer": False,
        "publish.lease": timedelta(minutes=5),
        "publish.cloudfront_distribution": None,
        "publish.purge_command": None,
        "publish.cache_fill": timedelta(seconds=60),
        "prices": None,
        "metrics": None,
    }


def test_the_config_file_of_the_project_shows_every_key_below_its_description() -> None:
    text = (ROOT / "config.yaml").read_text()
    tree = yaml.safe_load(text)
    shown = [
        key if not isinstance(value, dict) else f"{key}.{name}"
        for key, value in tree.items()
        for name in (value if isinstance(value, dict) else [key])
    ]
    assert shown == list(KEYS)
    lines = [line.strip() for line in text.splitlines()]
    for key, field in KEYS.items():
        assert f"# {field.description}" in lines, key
        assert lines[lines.index(f"# {field.description}") + 1].startswith(key.rpartition(".")[2] + ":"), key


def test_the_schema_file_is_current() -> None:
    current = json.dumps(known.schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("BLESS") == "1":
        SCHEMA.write_text(current, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == current, "the settings changed: run `make bless` and commit the schema"


def test_the_config_file_of_the_project_names_the_schema_and_follows_it() -> None:
    text = (ROOT / "config.yaml").read_text()
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert ROOT / named == SCHEMA
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "tree",
    [
        {"scedule": 5},
        {"schedule": 0},
        {"cursor": {"lifetime": "6 hours"}},
        {"detail": {"history_points": 1}},
        {"guards": 1},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(tree: dict[str, Any], folder: Folder) -> None:
    assert not jsonschema.Draft7Validator(known.schema()).is_valid(tree)
    assert len(folder.mistakes(json.dumps(tree))) == 1


def test_the_schema_describes_every_key() -> None:
    document = known.schema()
    for key, field in KEYS.items():
        section, _, name = key.rpartition(".")
        properties = (
            document["$defs"][document["properties"][section]["$ref"].rpartition("/")[2]] if section else document
        )
        assert properties["properties"][name]["description"] == field.description
        assert "default" in properties["properties"][name]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# only a comment\n",
        "---\n",
        "null\n",
        "~",
        "{}",
        "\ufeff",
        "source:\n",
        "guards:\n  # max_shrink: 1\n",
    ],
)
def test_an_empty_file_or_section_means_all_defaults(text: str, folder: Folder) -> None:
    assert folder.load(text) == Config()


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("base_url: https://api.example.org/markets///", "base_url", "https://api.example.org/markets"),
        ("base_url: http://[::1]:8000/", "base_url", "http://[::1]:8000"),
        ("source: {schema: no}", "source.schema", "no"),
        ("source: {schema: '123'}", "source.schema", "123"),
        ("output: /srv/markets", "output", Path("/srv/markets")),
        ("variant: extended", "variant", "extended"),
        (
            "categories: [crypto, 'u.s. 2024, elections', 2024, no]",
            "categories",
            ["crypto", "u.s. 2024, elections", "2024", "no"],
        ),
        ("categories:\n- crypto\n- us politics", "categories", ["crypto", "us politics"]),
        ("categories: crypto, us politics", "categories", ["crypto", "us politics"]),
        ("categories: 2024", "categories", ["2024"]),
        ("categories: []", "categories", []),
        ("categories: null", "categories", None),
        ("categories:", "categories", None),
        ("schedule: 010", "schedule", 10),
        ("detail: {order_book: False}", "detail.order_book", False),
        ("detail: {history_points: 0}", "detail.history_points", 0),
        ("detail: {history_points: 2}", "detail.history_points", 2),
        ("guards: {max_shrink: 1}", "guards.max_shrink", 1.0),
        ("guards: {max_invalid: .5}", "guards.max_invalid", 0.5),
        ("guards: {max_invalid: 1e-3}", "guards.max_invalid", 0.001),
        ("publish: {target: s3://my-bucket}", "publish.target", "s3://my-bucket"),
        ("publish: {target: s3://my-bucket/some/prefix}", "publish.target", "s3://my-bucket/some/prefix"),
        ("publish: {target: ../site}", "publish.target", "../site"),
        ("publish: {endpoint_url: https://s3.example.org/}", "publish.endpoint_url", "https://s3.example.org"),
        ("publish: {target: null}", "publish.target", None),
        ("publish: {lease: 1}", "publish.lease", timedelta(seconds=1)),
        ("publish: {purge_command: [purge, '--zone', a b]}", "publish.purge_command", ("purge", "--zone", "a b")),
        ("publish:\n  purge_command:\n    - purge\n    - 'true'", "publish.purge_command", ("purge", "true")),
        ("publish: {purge_command: [purge, 5]}", "publish.purge_command", ("purge", "5")),
        ("publish: {purge_command: purge --zone 'a b'}", "publish.purge_command", ("purge", "--zone", "a b")),
        ('{"schedule": 5, "snapshot": {"size": 0}}', "schedule", 5),
        ("schedule: 5\r\nvariant: core\r\n", "schedule", 5),
        ("snapshot: &same {size: 9}\nschedule: 7", "snapshot.size", 9),
        ("schedule: &n 12\nsnapshot:\n  size: *n", "snapshot.size", 12),
        ("%YAML 1.2\n---\nschedule: 5\n...\n", "schedule", 5),
    ],
)
def test_a_value_is_read_as_it_is_meant(text: str, key: str, expected: object, folder: Folder) -> None:
    assert value_of(folder.load(text), key) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", timedelta(seconds=90)),
        ("45 s", timedelta(seconds=45)),
        ("90 min", timedelta(minutes=90)),
        ("30m", timedelta(minutes=30)),
        ("6h", timedelta(hours=6)),
        ("6 h", timedelta(hours=6)),
        ("2 d", timedelta(days=2)),
        ("PT6H", timedelta(hours=6)),
        ("P1DT2H3M4S", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("P366D", timedelta(days=366)),
    ],
)
def test_a_duration_may_be_written_in_many_ways(text: str, expected: timedelta, folder: Folder) -> None:
    assert folder.load(f"rate_limit: {{window: {text}}}").rate_limit.window == expected
    assert folder.load("", f"rate_limit.window={text}").rate_limit.window == expected


@pytest.mark.parametrize(
    "text",
    [
        "1:30",
        "'90'",
        "6 hours",
        "-PT6H",
        "1.5",
        "PT",
        "P",
        "P1W",
        "P1M",
        "PT1.5H",
        "true",
        "6 H",
        "٦ h",
        "999999999 d",
        "9" * 5000,
    ],
)
def test_a_duration_that_could_be_misread_is_refused(text: str, folder: Folder) -> None:
    assert folder.mistakes(f"rate_limit: {{window: {text}}}") == [f"config.yaml:1:22 rate_limit.window: {NO_DURATION}"]


@pytest.mark.parametrize("scheme", ["sqlite", "postgresql", "postgresql+psycopg", "postgres"])
def test_a_source_may_be_sqlite_or_postgresql(scheme: str, folder: Folder) -> None:
    assert folder.load(f"source: {{url: '{scheme}:///x'}}").source.url.get_secret_value() == f"{scheme}:///x"


# Layers


def test_the_environment_overrides_the_file_and_an_option_overrides_both(folder: Folder) -> None:
    text = "schedule: 1\nsnapshot: {size: 1}\nlayout: chunks\n"
    environ = {"PUBLIC_MARKETS_SCHEDULE": "2", "PUBLIC_MARKETS_SNAPSHOT__SIZE": "2", "HOME": "/root"}
    loaded = folder.load(text, "schedule=3", **environ)
    assert (loaded.layout, loaded.snapshot.size, loaded.schedule) == ("chunks", 2, 3)


def test_the_last_of_several_options_counts(folder: Folder) -> None:
    assert folder.load("", "schedule=2", "schedule=3").schedule == 3


def test_variables_are_read_in_any_case(folder: Folder) -> None:
    named = folder.load("", PUBLIC_MARKETS_CATEGORIES=" crypto, u.s. 2024 elections ,7").categories
    assert named == ["crypto", "u.s. 2024 elections", "7"]
    assert folder.load("", "categories=[a,b]").categories == ["a", "b"]
    assert folder.load("categories: [a]", "categories=[]").categories == []
    assert folder.load("categories: [a]", PUBLIC_MARKETS_CATEGORIES="").categories is None
    assert folder.load("", public_markets_rate_limit__window="30 s").rate_limit.window == timedelta(seconds=30)


@pytest.mark.parametrize("text", ["123", "no", "null", "~", "1.5", "'quoted'"])
def test_text_from_outside_the_file_needs_no_quotes(text: str, folder: Folder) -> None:
    assert folder.load("", PUBLIC_MARKETS_SOURCE__SCHEMA=text).source.schema_ == text
    assert folder.load("", f"source.schema={text}").source.schema_ == text
    assert folder.load("", f"output={text}").output == Path(text)


def test_an_empty_value_from_outside_the_file_means_none(folder: Folder) -> None:
    text = "source: {schema: x}\npublish: {target: site}"
    loaded = folder.load(text, "publish.target=", PUBLIC_MARKETS_SOURCE__SCHEMA="")
    assert (loaded.source.schema_, loaded.publish.target) == (None, None)


def test_an_option_value_may_hold_equals_signs(folder: Folder) -> None:
    assert folder.load("", "source.url=sqlite:///a?b=c").source.url.get_secret_value() == "sqlite:///a?b=c"


@pytest.mark.parametrize("loaded", [Config(), Config().source, Config().guards])
def test_settings_cannot_be_changed(loaded: Config) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(loaded, next(iter(type(loaded).model_fields)), "x")


# What is refused, and where


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1", "1:1 a: unknown setting; remove it"),
        ("scedule: 5", "1:1 scedule: unknown setting; did you mean schedule?"),
        ("\n\nguards:\n  max_srink: 1", "4:3 guards.max_srink: unknown setting; did you mean guards.max_shrink?"),
        ("gaurds: {max_shrink: 1}", "1:1 gaurds: unknown setting; did you mean guards?"),
        ("max_shrink: 1", "1:1 max_shrink: unknown setting; did you mean guards.max_shrink?"),
        ("1: 2", "1:1 1: unknown setting; remove it"),
        ("? [a, b]\n: 1", "1:3 …: unknown setting; remove it"),
        ("!!python/name:os.system schedule: 5", "1:1 …: unknown setting; remove it"),
        ("source: {schema_: x}", "1:10 source.schema_: unknown setting; did you mean source.schema?"),
        (
            "guards.max_shrink: 1",
            "1:1 guards.max_shrink: write the part before the dot as a section, and indent the rest below it",
        ),
        ("x: &x {size: 1}\nsnapshot:\n  <<: *x", "1:1 x: unknown setting; remove it"),
        ("schedule: 5\nschedule: 6", "2:1 schedule: is set twice; remove one of the two"),
        ("guards: {}\nguards: {}", "2:1 guards: is set twice; remove one of the two"),
        ("snapshot:\n  size: 1\n  size: 1", "3:3 snapshot.size: is set twice; remove one of the two"),
        ("- schedule", "1:1: write settings here, one `key: value` per line"),
        ("text", "1:1: write settings here, one `key: value` per line"),
        ("''", "1:1: write settings here, one `key: value` per line"),
        ("!!python/object:os.x {}", "1:1: write settings here, one `key: value` per line"),
        ("guards: 5", "1:9 guards: write settings here, one `key: value` per line"),
        ("guards: [1]", "1:9 guards: write settings here, one `key: value` per line"),
        ("schedule: [60]", "1:11 schedule: write a single value, without a YAML tag"),
        ("schedule: {minutes: 60}", "1:11 schedule: write a single value, without a YAML tag"),
        ("schedule: !!int 60", "1:11 schedule: write a single value, without a YAML tag"),
        ("output: !!python/name:os.system x", "1:9 output: write a single value, without a YAML tag"),
        ("categories: [[a]]", "1:13 categories: write a list of texts, without YAML tags"),
        ("categories: {a: b}", "1:13 categories: write a list of texts, without YAML tags"),
        ("categories: [!!int 7]", "1:13 categories: write a list of texts, without YAML tags"),
        ("categories: [a, b, a]", f"1:13 categories: {CATEGORIES}"),
        ("categories: [a, '']", f"1:13 categories: {CATEGORIES}"),
        ("categories: a,,b", f"1:13 categories: {CATEGORIES}"),
        ('categories: ["a\\nb"]', f"1:13 categories: {CATEGORIES}"),
        ("schedule:", "1:10 schedule: has no value; give it one or remove it"),
        ("variant: ~", "1:10 variant: has no value; give it one or remove it"),
        ("schedule: '60'", "1:11 schedule: write a whole number, without quotes"),
        ("schedule: 2026-01-31", "1:11 schedule: write a whole number, without quotes"),
        ("schedule: 1.5", "1:11 schedule: write a whole number, without quotes"),
        ("schedule: true", "1:11 schedule: write a whole number, without quotes"),
        ("schedule: 0x10", "1:11 schedule: write a whole number, without quotes"),
        ("schedule: 0", "1:11 schedule: input should be greater than or equal to 1"),
        ("snapshot: {size: 101}", "1:18 snapshot.size: input should be less than or equal to 100"),
        ("detail: {order_book: yes}", "1:22 detail.order_book: write true or false, without quotes"),
        ("detail: {order_book: on}", "1:22 detail.order_book: write true or false, without quotes"),
        ("detail: {order_book: 1}", "1:22 detail.order_book: write true or false, without quotes"),
        ("detail: {recent_fills: 1001}", "1:24 detail.recent_fills: input should be less than or equal to 1000"),
        (
            "detail: {history_points: 1}",
            "1:26 detail.history_points: write 0, or at least 2, as the first and the last point are always kept",
        ),
        ("detail: {history_points: 10001}", "1:26 detail.history_points: input should be less than or equal to 10000"),
        ("cursor: {lifetime: 0}", "1:20 cursor.lifetime: input should be greater than or equal to 1 second"),
        ("cursor: {lifetime: 367 d}", "1:20 cursor.lifetime: input should be less than or equal to 366 days"),
        ("rate_limit: {window: 0}", "1:22 rate_limit.window: input should be greater than or equal to 1 second"),
        ("rate_limit: {requests: 0}", "1:24 rate_limit.requests: input should be greater than or equal to 1"),
        ("guards: {max_shrink: 1.5}", "1:22 guards.max_shrink: input should be less than or equal to 1"),
        ("guards: {max_shrink: '0.5'}", "1:22 guards.max_shrink: write a finite number, without quotes"),
        ("guards: {max_shrink: .nan}", "1:22 guards.max_shrink: write a finite number, without quotes"),
        ("guards: {max_monthly_cost: .inf}", "1:28 guards.max_monthly_cost: write a finite number, without quotes"),
        ("guards: {max_monthly_cost: 1e999}", "1:28 guards.max_monthly_cost: write a finite number"),
        ("guards: {max_monthly_cost: -1}", "1:28 guards.max_monthly_cost: input should be greater than or equal to 0"),
        ("variant: full", "1:10 variant: input should be 'core' or 'extended'"),
        ("layout: 5", "1:9 layout: input should be 'pages' or 'chunks'"),
        ("output: 5", "1:9 output: write the path of a folder, in quotes if it looks like a number"),
        ("output: ''", "1:9 output: write one line of printable text"),
        ('output: "a\\0b"', "1:9 output: write one line of printable text"),
        ("source: {schema: 5}", "1:18 source.schema: write text, in quotes if it looks like a number"),
        ("publish: {target: gs://bucket}", "1:19 publish.target: write s3://bucket/prefix or a directory"),
        ("publish: {target: 's3:///prefix'}", "1:19 publish.target: write s3://bucket/prefix or a directory"),
        ("publish: {lease: 0}", "1:18 publish.lease: input should be greater than or equal to 1 second"),
        ("publish: {client: curl}", "1:19 publish.client: input should be 'obstore' or 'boto3'"),
        ("publish: {purge_command: []}", f"1:26 publish.purge_command: {NO_COMMAND}"),
        ("publish: {purge_command: 'purge \"x'}", f"1:26 publish.purge_command: {NO_COMMAND}"),
        ("publish: {purge_command: {a: b}}", f"1:26 publish.purge_command: {NO_LIST}"),
        ("publish: {purge_command: [[a]]}", f"1:26 publish.purge_command: {NO_LIST}"),
        ("source: {url: 'mysql://h/db'}", f"1:15 source.url: {NO_DATABASE}"),
        ("source:\n  url: 5", "2:8 source.url: write text, in quotes if it looks like a number"),
        ("a: b: c", "1:5: is not YAML: mapping values are not allowed here"),
        ("schedule: 5\n\tlayout: pages", "2:1: is not YAML: indent with spaces, not tabs"),
        ("a: *b", "1:4: is not YAML: found undefined alias 'b'"),
        (
            "a: 1\n---\nb: 2",
            "2:1: is not YAML: expected a single document in the stream, but found another document",
        ),
        ("output: 'x", "1:11: is not YAML: while scanning a quoted scalar, found unexpected end of stream"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(text: str, line: str, folder: Folder) -> None:
    assert folder.mistakes(text)[0] == f"config.yaml:{line}"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "example.org",
        "//x",
        "http://",
        "http://[",
        "http://x:port",
        "http://x:99999",
        "https://a b",
        "https://user@example.org",
        "https://x/#a",
        "https://x/?a=b",
        "https://x?",
    ],
)
@pytest.mark.parametrize("key", ["base_url", "publish.endpoint_url"])
def test_only_a_plain_web_address_is_accepted(key: str, url: str, folder: Folder) -> None:
    message = "write an http:// or https:// address without user, query and fragment"
    assert folder.mistakes("", f"{key}={url}") == [f"--set {key}: {message}"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"output: \xff", ": is not UTF-8 at byte 9; save it as UTF-8"),
        ("output: ö".encode("utf-16"), ": is not UTF-8 at byte 1; save it as UTF-8"),
        (b"output: \x07", ": is not YAML: character 9 is a control character; remove it"),
        (b"a: " + b"[" * 5000, ": is nested too deeply; settings have two levels"),
        (
            b'output: "\\UFFFFFFFF"',
            ": is not YAML: an escape sequence is not a character; correct what follows the backslash",
        ),
    ],
)
def test_a_file_that_is_no_yaml_text_is_refused_in_a_sentence(content: bytes, line: str, folder: Folder) -> None:
    assert folder.mistakes(content) == [f"config.yaml{line}"]


def test_aliases_that_multiply_cost_nothing(folder: Folder) -> None:
    laughs = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 60))
    assert len(folder.mistakes(f"x0: &x0 [ha]\n{laughs}schedule: *x59\nguards: &g {{max_shrink: *g}}")) == 62


@pytest.mark.parametrize("name", [".", "missing.yaml", "config.yaml/below"])
def test_a_file_that_cannot_be_read_is_named_with_the_remedy(name: str, folder: Folder) -> None:
    folder.load("")
    path = folder.file.parent / name
    with pytest.raises(ConfigError) as caught:
        load(path, environ={"PUBLIC_MARKETS_SCHEDULE": "0"})
    missing, wrong = str(caught.value).splitlines()
    assert missing.startswith(f"{path}: ")
    assert missing.endswith("; name a file with --config, or create it: an empty file means all defaults")
    assert wrong == "PUBLIC_MARKETS_SCHEDULE: input should be greater than or equal to 1"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("PUBLIC_MARKETS_SCHEDULE", "often", "write a whole number, without quotes"),
        ("PUBLIC_MARKETS_SCHEDULE", "'60'", "write a whole number, without quotes"),
        ("PUBLIC_MARKETS_SCHEDULE", "", "has no value; give it one or remove it"),
        ("PUBLIC_MARKETS_SHEDULE", "60", "unknown setting; did you mean PUBLIC_MARKETS_SCHEDULE?"),
        ("PUBLIC_MARKETS_SOURCE", "x", "unknown setting; did you mean PUBLIC_MARKETS_SOURCE__URL?"),
        ("PUBLIC_MARKETS_SOURCE_URL", "x", "unknown setting; did you mean PUBLIC_MARKETS_SOURCE__URL?"),
        ("public_markets_detail__order_book", "yes", "write true or false, without quotes"),
    ],
)
def test_a_mistake_in_the_environment_is_named_with_its_variable(
    name: str, text: str, message: str, folder: Folder
) -> None:
    assert folder.mistakes("", **{name: text}) == [f"{name}: {message}"]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("schedule=[1]", "--set schedule: write a whole number, without quotes"),
        ("schedule=", "--set schedule: has no value; give it one or remove it"),
        ("guards.max_shrink=2", "--set guards.max_shrink: input should be less than or equal to 1"),
        ("max_shrink=1", "--set max_shrink: unknown setting; did you mean guards.max_shrink?"),
        ("Schedule=1", "--set Schedule: unknown setting; did you mean schedule?"),
        ("source=x", "--set source: unknown setting; did you mean source.url?"),
        ("schedule", "--set schedule: write it as dotted.key=value, such as --set schedule=60"),
        ("", "--set …: write it as dotted.key=value, such as --set schedule=60"),
        ("=5", "--set …: unknown setting; remove it"),
    ],
)
def test_a_mistake_in_an_option_is_named_with_its_key(override: str, line: str, folder: Folder) -> None:
    assert folder.mistakes("", override) == [line]


def test_all_mistakes_of_all_layers_are_reported_at_once(folder: Folder) -> None:
    text = """\
# a comment
base_url: ftp://example.org
source:
  url: postgresql://reader:hunter2@db/markets
  scheme: public
guards:
  max_shrink: 1.5   # too much
  max_invalid: "1"
schedule: 0
"""
    environ = {"PUBLIC_MARKETS_SCHEDULE": "5", "PUBLIC_MARKETS_LAYOUT": "tree", "PUBLIC_MARKETS_X": "1"}
    assert folder.mistakes(text, "variant=all", "schedul=1", **environ) == [
        "config.yaml:2:11 base_url: write an http:// or https:// address without user, query and fragment",
        f"config.yaml:4:8 source.url: {IN_FILE}",
        "config.yaml:5:3 source.scheme: unknown setting; did you mean source.schema?",
        "config.yaml:7:15 guards.max_shrink: input should be less than or equal to 1",
        "config.yaml:8:16 guards.max_invalid: write a finite number, without quotes",
        "config.yaml:9:11 schedule: input should be greater than or equal to 1",
        "PUBLIC_MARKETS_LAYOUT: input should be 'pages' or 'chunks'",
        "PUBLIC_MARKETS_X: unknown setting; remove it",
        "--set variant: input should be 'core' or 'extended'",
        "--set schedul: unknown setting; did you mean schedule?",
    ]


# Secrets


@pytest.mark.parametrize(
    "url",
    [
        WITH_PASSWORD,
        f"postgresql://:{SECRET}@h/db",
        f"postgres://u:p/?#{SECRET}@h/db",
        f"postgresql+psycopg://u@h/db?sslmode=require&password={SECRET}",
        f"postgresql://u@h/db?sslpassword={SECRET}",
        f"mysql://u:{SECRET}@h/db",
    ],
)
def test_a_password_in_the_file_is_refused_even_where_the_environment_overrides_it(url: str, folder: Folder) -> None:
    (line,) = folder.mistakes(f"source: {{url: '{url}'}}", PUBLIC_MARKETS_SOURCE__URL="sqlite:///x")
    assert "must not be in the file" in line
    assert "PUBLIC_MARKETS_SOURCE__URL" in line
    assert SECRET not in line


@pytest.mark.parametrize(
    "url", ["postgresql://reader@h:5432/db", "postgresql://h/db?passfile=/x", "sqlite:///a:b@c.db"]
)
def test_an_url_without_a_password_may_stand_in_the_file(url: str, folder: Folder) -> None:
    assert folder.load(f"source: {{url: '{url}'}}").source.url.get_secret_value() == url


def test_a_password_from_outside_the_file_is_accepted_but_never_shown(folder: Folder) -> None:
    for loaded in (
        folder.load("", PUBLIC_MARKETS_SOURCE__URL=WITH_PASSWORD),
        folder.load("", f"source.url={WITH_PASSWORD}"),
    ):
        assert loaded.source.url.get_secret_value() == WITH_PASSWORD
        shown = [repr(loaded), str(loaded), f"{loaded.source.url}", loaded.model_dump_json(), repr(loaded.model_dump())]
        assert SECRET not in "".join(shown)


@pytest.mark.parametrize(
    ("text", "override"),
    [
        (f"source:\n  url: {WITH_PASSWORD}", ""),
        (f"source:\n  url:{WITH_PASSWORD}", ""),
        (f"source: {WITH_PASSWORD}", ""),
        (f"source: {{{WITH_PASSWORD}}}", ""),
        (f"source: [{WITH_PASSWORD}]", ""),
        (f"{WITH_PASSWORD}: x", ""),
        (WITH_PASSWORD, ""),
        (f"source:\n  ulr: {WITH_PASSWORD}", ""),
        (f"base_url: {WITH_PASSWORD}", ""),
        (f"layout: {WITH_PASSWORD}", ""),
        (f"schedule: {WITH_PASSWORD}", ""),
        (f"publish: {{target: '{WITH_PASSWORD}'}}", ""),
        (f"source:\n  url: '{WITH_PASSWORD}", ""),
        (f"source:\n  url: {WITH_PASSWORD}: x", ""),
        (f"source:\n  url: {WITH_PASSWORD}\n\tx", ""),
        (f"source: {{url: !!int '{WITH_PASSWORD}'}}", ""),
        (f'source: {{url: "{WITH_PASSWORD}\\UFFFFFFFF"}}', ""),
        (f"source: {{url: {WITH_PASSWORD}}}\n\x07", ""),
        ("", f"source.url=my{WITH_PASSWORD}"),
        ("", f"source.ulr={WITH_PASSWORD}"),
        ("", f"source.url:{WITH_PASSWORD}"),
        ("", f"{WITH_PASSWORD}?a=b"),
        ("", f"schedule={WITH_PASSWORD}"),
    ],
)
def test_no_error_shows_a_password_not_even_its_traceback(text: str, override: str, folder: Folder) -> None:
    with pytest.raises(ConfigError) as caught:
        folder.load(text, *([override] if override else []))
    chain: BaseException | None = caught.value
    while chain:
        assert SECRET not in str(chain)
        chain = chain.__cause__ or chain.__context__


def test_a_traceback_of_the_program_shows_no_password(folder: Folder) -> None:
    program = (
        "import os, pathlib, sys, generator.config.loader as c; c.load(pathlib.Path(sys.argv[1]), environ=os.environ)"
    )
    folder.file.write_text(f"source: {{url: '{WITH_PASSWORD}'}}\nlayout: x\n")
    environ = {**os.environ, "PUBLIC_MARKETS_SOURCE__URL": f"x{WITH_PASSWORD}"}
    run = subprocess.run(
        [sys.executable, "-c", program, str(folder.file)],
        capture_output=True, check=False, cwd=ROOT, env=environ, text=True,
    )  # fmt: skip
    assert "Traceback" in run.stderr
    assert "PUBLIC_MARKETS_SOURCE__URL: write a database URL" in run.stderr
    assert SECRET not in run.stderr


# Anything else

SYNTAX = [
    *"\t\n :-[]{},&*!|>'\"%@`#?~\\\0\x85\u2028\ufeff\ud800ö",
    "\n  ",
    ": ",
    "\n- ",
    "---\n",
    "...\n",
    "<<: ",
    "&a ",
    "*a",
]
VALUES = [
    "null",
    "true",
    "on",
    "1",
    "-1",
    "1e9",
    "0x1",
    ".inf",
    "2026-01-31",
    "6 h",
    "PT6H",
    "s3://bucket/x",
    "http://x",
]
TRAPS = ["!!int ", "!!python/name:os.system ", '"\\U0011', "%YAML 9", "sqlite:///x"]
SECTIONS = {key.partition(".")[0] for key in KEYS}
pieces = st.sampled_from([*KEYS, *sorted(SECTIONS), *SYNTAX, *VALUES, *TRAPS])
yamlish = st.lists(pieces, max_size=30).map("".join) | st.text()
# The folder is only ever overwritten, so all examples may share it.
anything = settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@anything
@given(text=yamlish)
def test_any_text_loads_or_is_refused_line_by_line(text: str, folder: Folder) -> None:
    assert all(line.startswith("config.yaml:") for line in folder.mistakes(text.encode("utf-8", "surrogatepass")))


@anything
@given(key=st.sampled_from([*KEYS, "", "x"]), text=yamlish)
def test_any_value_from_outside_loads_or_is_refused_in_one_line_per_layer(key: str, text: str, folder: Folder) -> None:
    variable = f"PUBLIC_MARKETS_{key.replace('.', '__')}"
    mistakes = folder.mistakes("", f"{key}={text}", **{variable: text})
    assert [line.partition(": ")[0] for line in mistakes] in ([], [variable, f"--set {key or '…'}"])
