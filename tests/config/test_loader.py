"""Which values are accepted, and which layer takes precedence."""

from datetime import timedelta
from pathlib import Path

import pytest

from generator.config.settings import Config
from generator.config.shape import shaping
from tests.config.folder import Folder, value_of

NO_DURATION = "write a duration: a number of seconds, or like 45 s, 90 min, 6 h, 2 d, PT6H"


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "# only a comment\n", "---\n", "null\n", "~", "{}", "\ufeff"),
        *("source:\n", "guards:\n  # max_shrink: 1\n"),
    ],
)
def test_an_empty_file_or_section_means_all_defaults(text: str, folder: Folder) -> None:
    assert folder.load(text) == Config()


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("base_url: https://api.example.org/markets///", "base_url", "https://api.example.org/markets"),
        ("source: {schema: no}", "source.schema", "no"),
        ("output: /srv/markets", "output", Path("/srv/markets")),
        ("variant: extended", "variant", "extended"),
        ("search: off", "search", "off"),
        ("variant: extended", "search", "title+description"),
        (
            "categories: [crypto, 'u.s. 2024, elections', 2024, no]",
            "categories",
            ["crypto", "u.s. 2024, elections", "2024", "no"],
        ),
        ("categories:\n- crypto\n- us politics", "categories", ["crypto", "us politics"]),
        ("categories: crypto, us politics", "categories", ["crypto", "us politics"]),
        ("categories: []", "categories", []),
        ("categories:", "categories", None),
        ("schedule: 010", "schedule", 10),
        ("detail: {order_book: False}", "detail.order_book", False),
        ("detail: {history_points: 0}", "detail.history_points", 0),
        (
            "rate_limit: {trusted_proxies: '192.0.2.7, fc00::/7, 2001:DB8::1'}",
            "rate_limit.trusted_proxies",
            ["192.0.2.7/32", "fc00::/7", "2001:db8::1/128"],
        ),
        ("rate_limit: {trusted_proxies: []}", "rate_limit.trusted_proxies", []),
        ("rate_limit: {trusted_proxies: '[\"fc00::/7\"]'}", "rate_limit.trusted_proxies", ["fc00::/7"]),
        ("categories: \"['crypto', us politics]\"", "categories", ["crypto", "us politics"]),
        ("guards: {max_shrink: 1}", "guards.max_shrink", 1.0),
        ("guards: {max_invalid: 1e-3}", "guards.max_invalid", 0.001),
        ("publish: {target: s3://my-bucket/some/prefix}", "publish.target", "s3://my-bucket/some/prefix"),
        ("publish: {target: ./s3:/site}", "publish.target", "./s3:/site"),
        ("publish: {target: '/srv/a:b'}", "publish.target", "/srv/a:b"),
        ("publish: {endpoint_url: https://s3.example.org/}", "publish.endpoint_url", "https://s3.example.org"),
        ("publish: {purge_command: [purge, '--zone', a b]}", "publish.purge_command", ("purge", "--zone", "a b")),
        ("publish:\n  purge_command:\n    - purge\n    - 'true'", "publish.purge_command", ("purge", "true")),
        ("publish: {purge_command: purge --zone 'a b'}", "publish.purge_command", ("purge", "--zone", "a b")),
        ('{"schedule": 5, "snapshot": {"size": 0}}', "schedule", 5),
        ("schedule: 5\r\nvariant: core\r\n", "schedule", 5),
        ("snapshot: &same {size: 9}\nschedule: 7", "snapshot.size", 9),
        ("%YAML 1.2\n---\nschedule: 5\n...\n", "schedule", 5),
    ],
)
def test_a_value_is_read_as_it_is_meant(text: str, key: str, expected: object, folder: Folder) -> None:
    assert value_of(folder.load(text), key) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("90", 90), ("45 s", 45), ("90 min", 5_400), ("30m", 1_800), ("6h", 21_600), ("6 h", 21_600)],
        *[("2 d", 172_800), ("PT6H", 21_600), ("P1DT2H3M4S", 93_784), ("P366D", 31_622_400)],
    ],
)
def test_a_duration_may_be_written_in_many_ways(text: str, seconds: int, folder: Folder) -> None:
    expected = timedelta(seconds=seconds)
    assert folder.load(f"rate_limit: {{window: {text}}}").rate_limit.window == expected
    assert folder.load("", f"rate_limit.window={text}").rate_limit.window == expected


@pytest.mark.parametrize(
    "text",
    [
        *("1:30", "'90'", "6 hours", "-PT6H", "1.5", "PT", "P", "P1W", "P1M", "PT1.5H", "true", "6 H", "٦ h"),
        *("999999999 d", "9" * 5000),
    ],
)
def test_a_duration_that_could_be_misread_is_refused(text: str, folder: Folder) -> None:
    assert folder.mistakes(f"rate_limit: {{window: {text}}}") == [f"config.yaml:1:22 rate_limit.window: {NO_DURATION}"]


@pytest.mark.parametrize("scheme", ["sqlite", "postgresql", "postgresql+psycopg", "postgres"])
def test_a_source_may_be_sqlite_or_postgresql(scheme: str, folder: Folder) -> None:
    assert folder.load(f"source: {{url: '{scheme}:///x'}}").source.url.get_secret_value() == f"{scheme}:///x"
    assert folder.load("", f"source.url={scheme}:///a?b=c").source.url.get_secret_value() == f"{scheme}:///a?b=c"


def test_the_environment_overrides_the_file_and_an_option_overrides_both(folder: Folder) -> None:
    text = "schedule: 1\nsnapshot: {size: 1}\nlayout: chunks\n"
    environ = {"PUBLIC_MARKETS_SCHEDULE": "2", "PUBLIC_MARKETS_SNAPSHOT__SIZE": "2", "HOME": "/root"}
    loaded = folder.load(text, "schedule=4", "schedule=3", **environ)
    assert (loaded.layout, loaded.snapshot.size, loaded.schedule) == ("chunks", 2, 3)


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


@pytest.mark.parametrize("value", ["full", "thinned", "7"])
def test_a_key_that_is_gone_is_ignored_and_remembered(folder: Folder, value: str) -> None:
    """So that a build can say so."""
    for config in (
        folder.load(f"dumps: {{histories: {value}}}"),
        folder.load("", f"dumps.histories={value}"),
        folder.load("", PUBLIC_MARKETS_DUMPS__HISTORIES=value),
    ):
        assert config.dumps.histories is not None
        assert config.dumps.model_dump() == Config().dumps.model_dump()
        assert shaping(config) == shaping(Config())
        assert not config.has_fills


@pytest.mark.parametrize("key", ["cloudfront_distribution", "purge_command"])
def test_what_has_no_cache_in_front_names_none_to_purge(folder: Folder, key: str) -> None:
    (mistake,) = folder.mistakes(f"publish: {{cdn: none, {key}: x}}")
    assert mistake == f"publish.cdn: is none, but publish.{key} names a cache to purge; remove one of the two"
    assert folder.load("publish: {cdn: none}").publish.cdn == "none"
    assert folder.load(f"publish: {{cdn: null, {key}: x}}").publish.cdn is None


def test_trades_need_parquet(folder: Folder) -> None:
    (mistake,) = folder.mistakes("dumps: {fills: true}")
    assert mistake == "dumps.fills: needs dumps.parquet, as trades are in Parquet files; write dumps.fills: false"
    assert folder.load("dumps: {fills: true, parquet: true}").has_fills


@pytest.mark.parametrize(
    "settings",
    [
        "dumps: {parquet: false}",
        "dumps: {parquet: true, ndjson: false}",
        "dumps: {parquet: true}\ndetail: {history_points: 0}",
    ],
)
def test_a_record_of_accuracy_needs_prices_in_parquet(folder: Folder, settings: str) -> None:
    (mistake,) = folder.mistakes(f"history: {{public: true}}\n{settings}")
    assert mistake == "history.public: needs dumps.parquet and detail.history_points, as it is made of the prices there"
    assert folder.load("history: {public: true}\ndumps: {parquet: true}").history.public


def test_the_source_is_the_demo_as_long_as_nobody_names_another(folder: Folder) -> None:
    demo = "sqlite:///demo.db"
    for text in ("", "source: {schema: public_api}", f"source: {{url: '{demo}'}}"):
        assert folder.load(text).source.is_default
    assert not folder.load("source: {url: 'sqlite:///mine.db'}").source.is_default
    assert not folder.load("", PUBLIC_MARKETS_SOURCE__URL=demo).source.is_default
    assert not folder.load("", f"source.url={demo}").source.is_default
