"""Every failure ends with one helpful sentence, the right exit code, and no traceback."""

import re

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
    "takedown": ("00000001-0000-4000-8000-000000000000",),
}
READS_DATABASE = {"build", "check", "demo", "plan", "rebuild"}
ASKS_STORE = {"check", "find", "hold", "publish", "rebuild", "takedown"}
WRITES_FOLDER = {"build", "check", "demo", "publish", "rebuild", "takedown"}
ESTIMATES = {"build", "check", "demo", "plan", "publish", "rebuild"}


def fails(site: PublishedSite, command: str, **settings: str) -> str:
    """Run the command, which must fail, and return its one sentence."""
    result = site.run(command, *COMMANDS[command], **settings)
    assert result.exit_code in (1, 3, 4, 5), result.output
    assert "Traceback" not in result.stderr
    sentences = re.findall(r"^error: .+", result.stderr, re.MULTILINE)
    assert len(sentences) == 1, result.stderr
    assert "bug" not in sentences[0]
    assert result.stderr.strip().splitlines()[-1].startswith(("error: ", "  "))
    # The sentence of `check` only counts the findings printed before it.
    return str(result.stdout if command == "check" else sentences[0])


@pytest.fixture
def published_site(published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch) -> PublishedSite:
    """The published site, with short waits between retries."""
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    return published_site


@pytest.mark.parametrize("command", COMMANDS)
def test_a_setting_that_does_not_exist(published_site: PublishedSite, command: str) -> None:
    result = published_site.run(command, *COMMANDS[command], scedule="5")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: --set scedule: unknown setting; did you mean schedule?\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_configuration_that_is_not_yaml(published_site: PublishedSite, command: str) -> None:
    (published_site.folder / "config.yaml").write_text("source: [")
    assert published_site.run(command, *COMMANDS[command]).stderr.startswith("error: config.yaml:1:")


@pytest.mark.parametrize("command", sorted(READS_DATABASE - {"demo"}))
def test_a_missing_database(published_site: PublishedSite, command: str) -> None:
    assert "no such database file; set source.url to your database" in fails(
        published_site, command, source__url="sqlite:///no.db"
    )


@pytest.mark.parametrize("command", sorted(READS_DATABASE))
def test_a_file_that_is_not_a_database(published_site: PublishedSite, command: str) -> None:
    (published_site.folder / "none.db").write_bytes(b"This is no database. " * 100)
    message = fails(published_site, command, source__url="sqlite:///none.db")
    assert "file is not a database" in message


@pytest.mark.parametrize("command", sorted(READS_DATABASE - {"demo"}))
def test_a_database_that_does_not_answer(published_site: PublishedSite, command: str) -> None:
    message = fails(published_site, command, source__url="postgresql://reader:hunter2@127.0.0.1:1/markets")
    assert "check source.url" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("command", sorted(READS_DATABASE))
def test_a_database_without_a_relation(published_site: PublishedSite, command: str) -> None:
    published_site.database.execute("DROP TABLE fills")
    assert "relation fills is missing" in published_site.run(command, source__url="sqlite:///markets.db").output


@pytest.mark.parametrize("command", sorted(WRITES_FOLDER | {"plan"}))
def test_an_output_folder_that_is_a_file(published_site: PublishedSite, command: str) -> None:
    (published_site.folder / "taken").touch()
    message = fails(published_site, command, output="taken")
    assert "taken" in message
    assert "choose another folder with --set output=…" in message


@pytest.mark.parametrize("command", sorted(WRITES_FOLDER | {"plan"}))
def test_an_output_folder_whose_manifest_is_damaged(published_site: PublishedSite, command: str) -> None:
    manifest = published_site.folder / "output" / "manifest.json"
    manifest.unlink()
    manifest.write_text("{")
    assert "manifest.json: damaged" in fails(published_site, command)


@pytest.mark.parametrize("command", sorted(ESTIMATES))
def test_unreadable_prices(published_site: PublishedSite, command: str) -> None:
    assert "prices: no.json: no such file or directory" in fails(published_site, command, prices="no.json")


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_credentials_without_permissions(published_site: PublishedSite, command: str) -> None:
    published_site.server.before = lambda _: Fault(403, "AccessDenied")
    assert "allow these credentials s3:GetObject" in fails(published_site, command)


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_a_bucket_that_does_not_exist(published_site: PublishedSite, command: str) -> None:
    published_site.target = "s3://elsewhere/api"
    assert "there is no such bucket; create it, or correct publish.target" in fails(published_site, command)


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_a_store_that_does_not_answer(published_site: PublishedSite, command: str) -> None:
    published_site.server.before = lambda _: Fault(503, "SlowDown")
    assert "does not answer" in fails(published_site, command)


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_a_target_within_the_output_folder(published_site: PublishedSite, command: str) -> None:
    published_site.target, published_site.settings["publish.endpoint_url"] = "output/site", ""
    assert "is in the output folder" in fails(published_site, command)


@pytest.mark.parametrize("command", ["publish", "rebuild"])
def test_a_missing_target(published_site: PublishedSite, command: str) -> None:
    published_site.target, published_site.settings["publish.endpoint_url"] = "", ""
    assert "publish.target: is not set" in fails(published_site, command)


@pytest.mark.parametrize("command", ["serve", "publish"])
def test_an_empty_output_folder(published_site: PublishedSite, command: str) -> None:
    published_site.forget_output()
    assert "run `public-markets build`" in fails(published_site, command)


def test_the_table_of_commands_is_complete() -> None:
    found = ROOT / "generator" / "cli"
    text = "".join(path.read_text("utf-8") for path in found.glob("*.py"))
    without_settings = {"init", "verify"}
    assert set(re.findall(r'cls=\w+, name="([a-z]+)"', text)) == COMMANDS.keys() | without_settings
