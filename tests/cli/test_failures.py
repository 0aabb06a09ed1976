"""Every failure ends with one helpful sentence, the right exit code, and no traceback."""

import re
from collections.abc import Callable
from typing import Final

import pytest

from tests.support.project import ROOT
from tests.support.sites.publishing import PublishedSite
from tests.support.stores.s3.behaviour import Fault

COMMANDS = {
    "build": (),
    "check": (),
    "demo": (),
    "find": ("question",),
    "hold": ("Wrong prices",),
    "plan": (),
    "publish": (),
    "rebuild": (),
    "serve": (),
    "status": (),
    "takedown": ("00000001-0000-4000-8000-000000000000",),
}
READS_DATABASE = {"build", "check", "demo", "plan", "rebuild"}
ASKS_STORE = {"check", "find", "hold", "publish", "rebuild", "takedown"}
WRITES_FOLDER = {"build", "check", "demo", "publish", "rebuild", "takedown"}
ESTIMATES = {"build", "check", "demo", "plan", "publish", "rebuild"}


def _with_target(target: str, **settings: str) -> Callable[[PublishedSite], object]:
    """Publish to another place; not to the tests' server, unless it is a bucket."""

    def change(site: PublishedSite) -> None:
        site.target = target
        site.settings.update(settings)

    return change


def _damage_manifest(site: PublishedSite) -> None:
    manifest = site.folder / "output" / "manifest.json"
    manifest.unlink()
    manifest.write_text("{")


def _answering(status: int, code: str) -> Callable[[PublishedSite], object]:
    """Have the store answer everything so."""

    def change(site: PublishedSite) -> None:
        site.server.before = lambda _: Fault(status, code)

    return change


def _nothing(_: PublishedSite) -> None:
    """The settings are enough."""


NOWHERE: Final = {"publish.endpoint_url": ""}
#: What is wrong, by name: for which commands, what is done to the site, with which settings, and what is said.
FAILURES: Final[dict[str, tuple[set[str], Callable[[PublishedSite], object], dict[str, str], str]]] = {
    "a setting that does not exist": (
        {*COMMANDS}, _nothing, {"scedule": "5"}, "--set scedule: unknown setting; did you mean schedule?",
    ),
    "a configuration that is not YAML": (
        {*COMMANDS}, lambda site: (site.folder / "config.yaml").write_text("source: ["), {}, "config.yaml:1:",
    ),
    "a missing database": (
        READS_DATABASE - {"demo"}, _nothing, {"source__url": "sqlite:///no.db"},
        "no such database file; set source.url to your database",
    ),
    "a file that is not a database": (
        READS_DATABASE, lambda site: (site.folder / "none.db").write_bytes(b"This is no database. " * 100),
        {"source__url": "sqlite:///none.db"}, "file is not a database",
    ),
    "a database that does not answer": (
        READS_DATABASE - {"demo"}, _nothing, {"source__url": "postgresql://reader:hunter2@127.0.0.1:1/markets"},
        "check source.url",
    ),
    "a database without a relation": (
        READS_DATABASE, lambda site: site.database.execute("DROP TABLE fills"),
        {"source__url": "sqlite:///markets.db"}, "relation fills is missing",
    ),
    "an output folder that is a file": (
        WRITES_FOLDER | {"plan"}, lambda site: (site.folder / "taken").touch(), {"output": "taken"},
        "choose another folder with --set output=…",
    ),
    "an output folder whose manifest is damaged": (
        WRITES_FOLDER | {"plan"}, _damage_manifest, {}, "manifest.json: damaged",
    ),
    "credentials without permissions": (
        ASKS_STORE, _answering(403, "AccessDenied"), {}, "allow these credentials s3:GetObject",
    ),
    "a bucket that does not exist": (
        ASKS_STORE, _with_target("s3://elsewhere/api"), {},
        "there is no such bucket; create it, or correct publish.target",
    ),
    "a store that does not answer": (ASKS_STORE, _answering(503, "SlowDown"), {}, "does not answer"),
    "a target within the output folder": (
        ASKS_STORE, _with_target("output/site", **NOWHERE), {}, "is in the output folder",
    ),
    "a missing target": (
        {"publish", "rebuild"}, _with_target("", **NOWHERE), {}, "publish.target: is not set",
    ),
    "an empty output folder": (
        {"serve", "publish"}, PublishedSite.forget_output, {}, "run `public-markets build`",
    ),
}  # fmt: skip


@pytest.fixture
def published_site(published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch) -> PublishedSite:
    """The published site, with short waits between retries."""
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    return published_site


@pytest.mark.parametrize(
    ("kind", "command"), [(kind, command) for kind, (commands, *_) in FAILURES.items() for command in sorted(commands)]
)
def test_a_failure_is_one_sentence_with_a_remedy(published_site: PublishedSite, kind: str, command: str) -> None:
    _, spoil, settings, said = FAILURES[kind]
    spoil(published_site)
    result = published_site.run(command, *COMMANDS[command], **settings)
    assert result.exit_code in (1, 3, 4, 5), result.output
    sentences = re.findall(r"^error: .+", result.stderr, re.MULTILINE)
    assert len(sentences) == 1, result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith(("error: ", "  "))
    # The sentence of `check` only counts the findings printed before it.
    assert said in (result.output if command == "check" else result.stderr)
    assert [word for word in ("Traceback", "bug", "hunter2") if word in result.output] == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("takedown", "nothing"), 1), (("takedown", "no thing"), 1), (("takedown", " "), 2), (("find", "nothing"), 1),
        (("find",), 2), (("publish", "--no-such-option"), 2), (("publish", "--set", "publish.target=ftp://host/x"), 1),
        (("publish", "--set", "snapshot.size=1"), 3),
    ],
)  # fmt: skip
def test_the_exit_code_says_who_must_do_something(
    published_site: PublishedSite, words: tuple[str, ...], code: int
) -> None:
    if "publish.target" in words[-1]:
        published_site.target = ""
    result = published_site.run(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert len(re.findall(r"^error: ", result.stderr, re.MULTILINE | re.IGNORECASE)) == 1
    assert [word for word in ("Traceback", "bug") if word in result.stderr] == []


def test_the_table_of_commands_is_complete() -> None:
    found = ROOT / "generator" / "cli"
    text = "".join(path.read_text("utf-8") for path in found.glob("*.py"))
    without_settings = {"docs", "init", "verify"}
    assert set(re.findall(r'cls=\w+, name="([a-z]+)"', text)) == COMMANDS.keys() | without_settings
