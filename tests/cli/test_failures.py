"""Every failure ends with one helpful sentence, the right exit code, and no traceback."""

import re

import pytest

from tests.support.builds import ROOT
from tests.support.publishing import Site
from tests.support.s3.behaviour import Fault

COMMANDS = {
    "build": (),
    "check": (),
    "demo": (),
    "plan": (),
    "publish": (),
    "rebuild": (),
    "serve": (),
    "takedown": ("00000001-0000-4000-8000-000000000000",),
}
READS_DATABASE = {"build", "check", "demo", "plan", "rebuild"}
ASKS_STORE = {"check", "publish", "rebuild", "takedown"}
WRITES_FOLDER = {"build", "check", "demo", "publish", "rebuild", "takedown"}
ESTIMATES = {"build", "check", "demo", "plan", "publish", "rebuild"}


def fails(site: Site, command: str, **settings: str) -> str:
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
def site(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The published site, with short waits between retries."""
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    return site


@pytest.mark.parametrize("command", COMMANDS)
def test_a_setting_that_does_not_exist(site: Site, command: str) -> None:
    result = site.run(command, *COMMANDS[command], scedule="5")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: --set scedule: unknown setting; did you mean schedule?\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_configuration_that_is_not_yaml(site: Site, command: str) -> None:
    (site.folder / "config.yaml").write_text("source: [")
    assert site.run(command, *COMMANDS[command]).stderr.startswith("error: config.yaml:1:")


@pytest.mark.parametrize("command", sorted(READS_DATABASE - {"demo"}))
def test_a_missing_database(site: Site, command: str) -> None:
    assert "no such database file; set source.url to your database" in fails(
        site, command, source__url="sqlite:///no.db"
    )


@pytest.mark.parametrize("command", sorted(READS_DATABASE))
def test_a_file_that_is_not_a_database(site: Site, command: str) -> None:
    (site.folder / "none.db").write_bytes(b"This is no database. " * 100)
    message = fails(site, command, source__url="sqlite:///none.db")
    assert "file is not a database" in message


@pytest.mark.parametrize("command", sorted(READS_DATABASE - {"demo"}))
def test_a_database_that_does_not_answer(site: Site, command: str) -> None:
    message = fails(site, command, source__url="postgresql://reader:hunter2@127.0.0.1:1/markets")
    assert "check source.url" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("command", sorted(READS_DATABASE))
def test_a_database_without_a_relation(site: Site, command: str) -> None:
    site.database.execute("DROP TABLE fills")
    assert "relation fills is missing" in site.run(command, source__url="sqlite:///markets.db").output


@pytest.mark.parametrize("command", sorted(WRITES_FOLDER | {"plan"}))
def test_an_output_folder_that_is_a_file(site: Site, command: str) -> None:
    (site.folder / "taken").touch()
    message = fails(site, command, output="taken")
    assert "taken" in message
    assert "choose another folder with --set output=…" in message


@pytest.mark.parametrize("command", sorted(WRITES_FOLDER | {"plan"}))
def test_an_output_folder_whose_manifest_is_damaged(site: Site, command: str) -> None:
    manifest = site.folder / "output" / "manifest.json"
    manifest.unlink()
    manifest.write_text("{")
    assert "manifest.json: damaged" in fails(site, command)


@pytest.mark.parametrize("command", sorted(ESTIMATES))
def test_unreadable_prices(site: Site, command: str) -> None:
    assert "prices: no.json: no such file or directory" in fails(site, command, prices="no.json")


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_credentials_without_permissions(site: Site, command: str) -> None:
    site.server.before = lambda _: Fault(403, "AccessDenied")
    assert "allow these credentials s3:GetObject" in fails(site, command)


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_a_bucket_that_does_not_exist(site: Site, command: str) -> None:
    site.target = "s3://elsewhere/api"
    assert "there is no such bucket; create it, or correct publish.target" in fails(site, command)


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_a_store_that_does_not_answer(site: Site, command: str) -> None:
    site.server.before = lambda _: Fault(503, "SlowDown")
    assert "does not answer" in fails(site, command)


@pytest.mark.parametrize("command", sorted(ASKS_STORE))
def test_a_target_within_the_output_folder(site: Site, command: str) -> None:
    site.target, site.settings["publish.endpoint_url"] = "output/site", ""
    assert "is in the output folder" in fails(site, command)


@pytest.mark.parametrize("command", ["publish", "rebuild"])
def test_a_missing_target(site: Site, command: str) -> None:
    site.target, site.settings["publish.endpoint_url"] = "", ""
    assert "publish.target: is not set" in fails(site, command)


@pytest.mark.parametrize("command", ["serve", "publish"])
def test_an_empty_output_folder(site: Site, command: str) -> None:
    site.forget_output()
    assert "run `public-markets build`" in fails(site, command)


def test_the_table_of_commands_is_complete() -> None:
    found = ROOT / "generator" / "cli"
    text = "".join(path.read_text("utf-8") for path in found.glob("*.py"))
    assert set(re.findall(r'name="([a-z]+)"\)', text)) == COMMANDS.keys()
