"""Every mistake is refused, with its place and the remedy."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.config.gone import GONE
from generator.config.loader import load
from generator.config.settings import KEYS, Config, variable
from generator.errors import ConfigError
from tests.config.folder import Folder
from tests.support.campaigns import rounds

NO_DATABASE = "write a database URL, beginning with sqlite://, postgresql://, postgresql+psycopg://, postgres://"
NO_LIST = "write a list of texts, without YAML tags"
NO_COMMAND = "write the program and its arguments as a list of texts"
NO_BUCKET = "write s3://bucket/prefix, in lower case and with two slashes; a directory of that name begins with ./"
NO_ADDRESS = "write s3://bucket/prefix, and the address of the store in publish.endpoint_url"
NO_NAME = (
    "correct the name of the bucket: 3 to 63 lower-case letters, digits, dots and hyphens, with a letter or a digit at "
    "both ends"
)
NO_NETWORK = "write addresses or networks, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32"
TOO_WIDE = "name your proxies only: readers in so wide a network could choose the address that is counted"
CATEGORIES = "name each category once, in printable text, as a list or separated by commas"
NO_STEP = "write 0, or a duration that divides a day, such as 15 min, 1 h or 6 h"
NO_ARCHIVE = (
    "no archive of days is published any more; remove the setting, and see docs/dumps.md for a query that tells the "
    "prices of any day"
)
IN_FILE = "holds a password, which must not be in the file; set PUBLIC_MARKETS_SOURCE__URL instead"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1", "1:1 a: unknown setting; remove it"),
        ("archive:\n  days: 0", f"1:1 archive: {NO_ARCHIVE}"),
        ("\n\nguards:\n  max_srink: 1", "4:3 guards.max_srink: unknown setting; did you mean guards.max_shrink?"),
        ("1: 2", "1:1 1: unknown setting; remove it"),
        ("? [a, b]\n: 1", "1:3 …: unknown setting; remove it"),
        ("!!python/name:os.system schedule: 5", "1:1 …: unknown setting; remove it"),
        ("source: {schema_: x}", "1:10 source.schema_: unknown setting; did you mean source.schema?"),
        (
            "guards.max_shrink: 1",
            "1:1 guards.max_shrink: write the part before the dot as a section, and indent the rest below it",
        ),
        ("schedule: 5\nschedule: 6", "2:1 schedule: is set twice; remove one of the two"),
        ("snapshot:\n  size: 1\n  size: 1", "3:3 snapshot.size: is set twice; remove one of the two"),
        ("- schedule", "1:1: write settings here, one `key: value` per line"),
        ("!!python/object:os.x {}", "1:1: write settings here, one `key: value` per line"),
        ("guards: 5", "1:9 guards: write settings here, one `key: value` per line"),
        ("schedule: !!int 60", "1:11 schedule: write a single value, without a YAML tag"),
        ("categories: [[a]]", "1:13 categories: write a list of texts, without YAML tags"),
        ("categories: [a, b, a]", f"1:13 categories: {CATEGORIES}"),
        (
            "categories: [a, b, A]",
            "1:13 categories: name each category once: names that differ only in case are the same category",
        ),
        ("categories: [a, '']", f"1:13 categories: {CATEGORIES}"),
        ('categories: ["a\\nb"]', f"1:13 categories: {CATEGORIES}"),
        ("schedule:", "1:10 schedule: has no value; give it one or remove it"),
        ("schedule: '60'", "1:11 schedule: write a whole number, without quotes"),
        ("schedule: 0x10", "1:11 schedule: write a whole number, without quotes"),
        *((f"fills_window_step: {step}", f"1:20 fills_window_step: {NO_STEP}") for step in (7, -3600, "2 d", "5 h")),
        ("detail: {order_book: yes}", "1:22 detail.order_book: write true or false, without quotes"),
        ("detail: {recent_fills: 1001}", "1:24 detail.recent_fills: input should be less than or equal to 1000"),
        ("cursor: {lifetime: 367 d}", "1:20 cursor.lifetime: input should be less than or equal to 366 days"),
        ("rate_limit: {window: 0}", "1:22 rate_limit.window: input should be greater than or equal to 1 second"),
        (
            "detail: {history_points: 1}",
            "1:26 detail.history_points: write 0, or at least 2, as the first and the last point are always kept",
        ),
        (
            "cursor: {lifetime: 159}",
            "1:20 cursor.lifetime: write at least 160 s: caches keep a first page that long, and its cursor must work",
        ),
        ("rate_limit: {trusted_proxies: [a]}", f"1:31 rate_limit.trusted_proxies: {NO_NETWORK}"),
        ("rate_limit: {trusted_proxies: fe80::1%eth0}", f"1:31 rate_limit.trusted_proxies: {NO_NETWORK}"),
        ("rate_limit: {trusted_proxies: 010.0.0.1}", f"1:31 rate_limit.trusted_proxies: {NO_NETWORK}"),
        (
            "rate_limit: {trusted_proxies: 10.0.0.1/8}",
            "1:31 rate_limit.trusted_proxies: write networks like 10.0.0.0/8, not 10.0.0.1/8",
        ),
        ("rate_limit: {trusted_proxies: 0.0.0.0/0}", f"1:31 rate_limit.trusted_proxies: {TOO_WIDE}"),
        ("rate_limit: {trusted_proxies: [10.0.0.1, 128.0.0.0/1]}", f"1:31 rate_limit.trusted_proxies: {TOO_WIDE}"),
        (
            "rate_limit: {trusted_proxies: '::ffff:10.0.0.1'}",
            "1:31 rate_limit.trusted_proxies: write IPv4 networks in the form of IPv4",
        ),
        ("guards: {max_monthly_cost: .inf}", "1:28 guards.max_monthly_cost: write a finite number, without quotes"),
        ("output: 5", "1:9 output: write the path of a folder, in quotes if it looks like a number"),
        ('output: "a\\0b"', "1:9 output: write one line of printable text"),
        ("source: {schema: 5}", "1:18 source.schema: write text, in quotes if it looks like a number"),
        ("publish: {target: gs://bucket}", "1:19 publish.target: write s3://bucket/prefix or a directory"),
        ("publish: {target: 's3:///prefix'}", "1:19 publish.target: write s3://bucket/prefix or a directory"),
        ("publish: {target: 's3:/bucket'}", f"1:19 publish.target: {NO_BUCKET}"),
        ("publish: {target: 'S3://bucket'}", f"1:19 publish.target: {NO_BUCKET}"),
        ("publish: {target: 'https://bucket.s3.example.org'}", f"1:19 publish.target: {NO_ADDRESS}"),
        ("publish: {target: 'arn:aws:s3:::bucket'}", "1:19 publish.target: write s3://bucket/prefix or a directory"),
        (
            "publish: {target: 'file:///srv/site'}",
            "1:19 publish.target: write the path of the directory alone, without file:",
        ),
        ("publish: {target: 's3://Markets/api'}", f"1:19 publish.target: {NO_NAME}"),
        ("publish: {target: 's3://ab'}", f"1:19 publish.target: {NO_NAME}"),
        ("publish: {target: ' s3://bucket'}", "1:19 publish.target: remove the spaces around it"),
        (
            "publish: {target: ~/site}",
            "1:19 publish.target: write the whole path of the directory: nothing replaces ~ here",
        ),
        ("publish: {client: curl}", "1:19 publish.client: input should be 'obstore' or 'boto3'"),
        ("publish: {purge_command: []}", f"1:26 publish.purge_command: {NO_COMMAND}"),
        ("publish: {purge_command: 'purge \"x'}", f"1:26 publish.purge_command: {NO_COMMAND}"),
        ("publish: {purge_command: {a: b}}", f"1:26 publish.purge_command: {NO_LIST}"),
        ("source: {url: 'mysql://h/db'}", f"1:15 source.url: {NO_DATABASE}"),
        ("source:\n  url: 5", "2:8 source.url: write text, in quotes if it looks like a number"),
        ("a: b: c", "1:5: is not YAML: mapping values are not allowed here"),
        ("schedule: 5\n\tlayout: pages", "2:1: is not YAML: indent with spaces, not tabs"),
        ("a: *b", "1:4: is not YAML: found undefined alias 'b'"),
        ("a: 1\n---\nb: 2", "2:1: is not YAML: expected a single document in the stream, but found another document"),
        ("output: 'x", "1:11: is not YAML: while scanning a quoted scalar, found unexpected end of stream"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(text: str, line: str, folder: Folder) -> None:
    assert folder.mistakes(text)[0] == f"config.yaml:{line}"


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://x", "example.org", "//x", "http://", "http://[", "http://x:port", "http://x:99999", "https://a b"),
        *("https://user@example.org", "https://x/#a", "https://x/?a=b", "https://x?"),
        *(f"https://x{rest}" for rest in (";y", "$y", "'y", "{y}", '/"', "/{y}", "/<y>")),
    ],
)
@pytest.mark.parametrize("key", ["base_url", "publish.endpoint_url"])
def test_only_a_plain_web_address_is_accepted(key: str, url: str, folder: Folder) -> None:
    message = "write an http:// or https:// address without user, query and fragment"
    assert folder.mistakes("", f"{key}={url}") == [f"--set {key}: {message}"]


@pytest.mark.campaign(short=1)
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
        ("PUBLIC_MARKETS_SCHEDULE", "", "has no value; give it one or remove it"),
        ("PUBLIC_MARKETS_SHEDULE", "60", "unknown setting; did you mean PUBLIC_MARKETS_SCHEDULE?"),
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
        ("schedule=", "--set schedule: has no value; give it one or remove it"),
        ("max_shrink=1", "--set max_shrink: unknown setting; did you mean guards.max_shrink?"),
        ("Schedule=1", "--set Schedule: unknown setting; did you mean schedule?"),
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
    environ = {
        "PUBLIC_MARKETS_SCHEDULE": "5", "PUBLIC_MARKETS_LAYOUT": "tree", "PUBLIC_MARKETS_X": "1",
        "PUBLIC_MARKETS_ARCHIVE__DAYS": "3",
    }  # fmt: skip
    assert folder.mistakes(text, "variant=all", "schedul=1", "archive.days=0", **environ) == [
        "config.yaml:2:11 base_url: write an http:// or https:// address without user, query and fragment",
        f"config.yaml:4:8 source.url: {IN_FILE}",
        "config.yaml:5:3 source.scheme: unknown setting; did you mean source.schema?",
        "config.yaml:7:15 guards.max_shrink: input should be less than or equal to 1",
        "config.yaml:8:16 guards.max_invalid: write a finite number, without quotes",
        "config.yaml:9:11 schedule: input should be greater than or equal to 1",
        f"PUBLIC_MARKETS_ARCHIVE__DAYS: {NO_ARCHIVE}",
        "PUBLIC_MARKETS_LAYOUT: input should be 'pages' or 'chunks'",
        "PUBLIC_MARKETS_X: unknown setting; remove it",
        "--set variant: input should be 'core' or 'extended'",
        "--set schedul: unknown setting; did you mean schedule?",
        f"--set archive.days: {NO_ARCHIVE}",
    ]


@pytest.mark.parametrize(
    ("key", "held", "other", "now"),
    [
        ("prices", ["null", ""], "mine.json", "costs are estimated by the built-in prices only"),
        (
            "publish.cache_fill", ["60 s", "60", "1 min", "PT1M"], "0",
            "a withdrawal always waits 60 s before the second CDN invalidation",
        ),
        (
            "publish.lease", ["5 min", "300"], "1 d",
            "the lease of a silent publisher always keeps others out for 5 minutes",
        ),
        (
            "texts.description", ["100000"], "99999",
            "descriptions of up to 100,000 characters are published; leave out longer ones in a view",
        ),
        (
            "texts.question", ["2000"], "a",
            "questions of up to 2,000 characters are published; leave out longer ones in a view",
        ),
    ],
)  # fmt: skip
def test_a_setting_that_is_gone_may_say_what_holds_and_nothing_else(
    key: str, held: list[str], other: str, now: str, folder: Folder
) -> None:
    section, _, name = key.rpartition(".")
    line, name_of_variable = f"{section}: {{{name}: %s}}" if section else f"{name}: %s", variable(key)
    for value in held:
        for where in ((line % value,), ("", f"{key}={value if value != 'null' else ''}")):
            assert folder.load(*where) == Config(), where
        assert folder.load(**{name_of_variable: value if value != "null" else ""}) == Config()
    sentence = f"this setting is gone, and {now}; remove it"
    (mistake,) = folder.mistakes(line % other)
    assert re.fullmatch(rf"config\.yaml:1:\d+ {re.escape(f'{key}: {sentence}')}", mistake)
    assert folder.mistakes("", f"{key}={other}") == [f"--set {key}: {sentence}"]
    assert folder.mistakes(**{name_of_variable: other}) == [f"{name_of_variable}: {sentence}"]


def test_a_section_that_is_gone_may_be_there_empty(folder: Folder) -> None:
    assert folder.load("texts:\n  # question: 2000\n") == Config()
    assert folder.mistakes("texts: {answer: 5}") == ["config.yaml:1:9 texts.answer: unknown setting; remove it"]
    assert GONE.keys() & KEYS.keys() == set()


@pytest.mark.parametrize("text", ["texts: {s: 1}", "texts: {q: 1}", "text: {question: 2000}", "textss: 1"])
def test_what_is_gone_is_never_suggested(text: str, folder: Folder) -> None:
    (mistake,) = folder.mistakes(text)
    assert mistake.endswith(": unknown setting; remove it")


SYNTAX = [
    *"\t\n :-[]{},&*!|>'\"%@`#?~\\\0\x85\u2028\ufeff\ud800ö",
    *("\n  ", ": ", "\n- ", "---\n", "...\n", "<<: ", "&a ", "*a"),
]
VALUES = [
    "null", "true", "on", "1", "-1", "1e9", "0x1", ".inf", "2026-01-31", "6 h", "PT6H", "s3://bucket/x", "http://x",
]  # fmt: skip
TRAPS = ["!!int ", "!!python/name:os.system ", '"\\U0011', "%YAML 9", "sqlite:///x"]
SECTIONS = {key.partition(".")[0] for key in KEYS}
pieces = st.sampled_from([*KEYS, *sorted(SECTIONS), *SYNTAX, *VALUES, *TRAPS])
yamlish = st.lists(pieces, max_size=30).map("".join) | st.text()
# The folder is only ever overwritten, so all examples may share it.
anything = settings(
    max_examples=rounds(150, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


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
