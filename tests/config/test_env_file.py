r"""`--env-file`: what systemd reads from the same file, and an error where it would ignore a mistake."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from generator.cli.main import main
from generator.config import env_file
from generator.errors import ConfigError
from tests.support.sites.builds import all_commands

URL = "postgresql://u:p$HOME`id`#1@h/db?a=1&b=2;c"


def read(tmp_path: Path, text: str) -> dict[str, str]:
    file = tmp_path / "environment"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return env_file.load(file)


# Every expectation is what `load_env_file` of systemd 252 makes of the text.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"A={URL}", URL),
        (f"A='{URL}'", URL),
        (f'A="{URL}"', URL),
        ("\n  # A=1\n; A=2\nA=3\n#A=4", "3"),
        ("  A =  a  b # c \t\n", "a  b # c"),
        ("A=", ""),
        ("A=\nB=2", ""),
        ("A=1\nA=2", "2"),
        ("A=1\r\nB=2\r\n", "1"),
        ("A=a=b", "a=b"),
        ("A=a\\\nb", "ab"),
        ("A=\\\n  b", "  b"),
        ("A=a\\ \\n\\\\\\'\\\"\\ ", "a n\\'\" "),
        ("A=a\\", "a"),
        ("A=a\"b\"'c'", "a\"b\"'c'"),
        ("A='a\\'", "a\\"),
        ("A='a\nb'", "a\nb"),
        ('A="a\nb"', "a\nb"),
        ('A="a\\\nb"', "ab"),
        ('A="\\"\\\\\\$\\`\\n\\\'"', "\"\\$`\\n\\'"),
        ("A='a' \"b\" c # d", "abc # d"),
        ("A=ü€", "ü€"),
    ],
)
def test_a_value_is_what_systemd_makes_of_it(text: str, value: str, tmp_path: Path) -> None:
    assert read(tmp_path, text)["A"] == value


def test_a_comment_ends_with_its_line(tmp_path: Path) -> None:
    assert read(tmp_path, "# comment \\\nA=1\n") == {"A": "1"}


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("A=1\n\nS3CRET\nB=2\nexport C=S3CRET\n1D=S3CRET\n=S3CRET", [3, 5, 6, 7]),
        ("A=1\nB='S3CRET\nC=3\n", [2]),
        ('A="1\n2"\nB="S3CRET\\"\n', [3]),
        ("A=1\nB=S3CRET\x00", [2]),
        ("A=1\nB=S3CRET\udcff", [2]),
        ("A=1\nÄ=S3CRET", [2]),
    ],
)
def test_a_mistake_is_an_error_that_names_the_line_and_no_value(text: str, mistakes: list[int], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    lines = str(caught.value).split("\n")
    assert [int(line.removeprefix(f"{tmp_path}/environment:").partition(":")[0]) for line in lines] == mistakes
    assert "S3CRET" not in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_a_file_that_cannot_be_read_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"(file or|is a) directory; name a file of variables with --env-file"):
        env_file.load(tmp_path / name)


@pytest.mark.parametrize("command", sorted(all_commands().keys() - {"docs", "init", "verify"}))
def test_every_command_reads_the_file_before_its_settings(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file replaces what is set, a later file an earlier one, and `--set` both."""
    monkeypatch.chdir(tmp_path)
    for name in ("SCHEDULE", "SNAPSHOT__SISE", "LAYOUT"):
        monkeypatch.setenv(f"PUBLIC_MARKETS_{name}", "set")
    Path("config.yaml").touch()
    Path("first").write_text("PUBLIC_MARKETS_SCHEDULE=first\nPUBLIC_MARKETS_SNAPSHOT__SISE=1")
    Path("second").write_text("PUBLIC_MARKETS_SCHEDULE=5\nPUBLIC_MARKETS_LAYOUT=neither")
    options = ("--env-file", "first", "--env-file", "second", "--set", "schedule=6")
    result = CliRunner().invoke(main, [command, *options, *(["rain"] if command == "find" else [])])
    assert result.exit_code == 1
    assert result.stderr == (
        "error: PUBLIC_MARKETS_LAYOUT: input should be 'pages' or 'chunks'\n"
        "PUBLIC_MARKETS_SNAPSHOT__SISE: unknown setting; did you mean PUBLIC_MARKETS_SNAPSHOT__SIZE?\n"
    )


@pytest.mark.parametrize(
    ("mode", "is_ours", "is_told"),
    [
        *[(0o600, True, False), (0o400, True, False), (0o640, False, False)],
        *[(0o640, True, True), (0o604, True, True), (0o660, True, True), (0o644, False, True)],
    ],
)
def test_check_says_who_else_can_read_the_file(
    mode: int, *, is_ours: bool, is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").touch()
    Path("variables").touch()
    Path("variables").chmod(mode)
    if not is_ours:
        monkeypatch.setattr("os.geteuid", lambda: Path("variables").stat().st_uid + 1)
    result = CliRunner().invoke(main, ["check", "--env-file", "variables"])
    told = [line for line in result.stdout.splitlines() if "variables: " in line]
    expected = f"warning: variables: others than its owner can read or change it (mode {mode:04o}); run "
    assert told == [f"{expected}`chmod 600 variables`"] * is_told


def test_rights_of_what_is_no_file_do_not_count() -> None:
    assert env_file.exposure(Path("/dev/null")) is None
