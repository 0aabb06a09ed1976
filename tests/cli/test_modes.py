"""Who may read what the commands write: whatever runs them, a web server of another user can serve it."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from generator.builder.preflight import BuildCheck
from generator.cli.main import main
from generator.demo.database import seed
from generator.progress import SILENT
from tests.support import commands
from tests.support.project import ROOT
from tests.support.sites.builds import AS_OF, make_config

PUBLIC_URL = "https://api.example.com"


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_published_can_be_read_by_all_whatever_the_umask(tmp_path: Path) -> None:
    seed(tmp_path / "markets.db", as_of=AS_OF, markets=5)
    output, target = tmp_path / "deep" / "output", tmp_path / "site"
    given = {"source.url": f"sqlite:///{tmp_path / 'markets.db'}", "output": output, "publish.target": target}
    (tmp_path / "config.yaml").touch()
    arguments = ["--config", str(tmp_path / "config.yaml"), *(f"--set={name}={value}" for name, value in given.items())]
    with umask(0o077):
        result = CliRunner().invoke(main, ["rebuild", *arguments])
    assert result.exit_code == 0, result.output
    for root in (output, target):
        found = [root, *(root / "v1").rglob("*")]
        assert {mode(path) for path in found if path.is_dir()} == {0o755}
        assert {mode(path) for path in found if path.is_file()} == {0o644}
    assert mode(output.parent) == 0o755
    assert {mode(output / name) for name in ("report.json", "manifest.json")} == {0o600}


def warnings(tmp_path: Path, **settings: object) -> list[str]:
    check = BuildCheck(make_config(tmp_path, **settings), AS_OF, SILENT)
    return [finding.text for finding in check.folder() if finding.severity == "warning"]


def test_check_warns_of_a_folder_that_no_web_server_of_another_user_can_enter(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "output").mkdir(parents=True)
    closed.chmod(0o700)
    tmp_path.chmod(0o755)
    for settings in ({"output": closed / "output"}, {"publish__target": closed / "site"}):
        found = warnings(tmp_path, base_url=PUBLIC_URL, **settings)
        assert next(text for text in found if text.startswith(f"{closed}: ")) == (
            f"{closed}: only its owner may enter (mode 0700), so a web server of another user cannot serve "
            f"{next(iter(settings.values()))}; run `chmod o+x {closed}`, or choose another folder"
        )


def test_check_does_not_warn_where_no_web_server_reads_the_folder_or_its_group_may(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert not any(str(tmp_path) in text for text in warnings(tmp_path))
    assert not any(
        str(tmp_path) in text for text in warnings(tmp_path, base_url=PUBLIC_URL, publish__target="s3://bucket")
    )
    assert any(str(tmp_path) in text for text in warnings(tmp_path, base_url=PUBLIC_URL))
    tmp_path.chmod(0o710)
    assert not any(text.startswith(f"{tmp_path}: ") for text in warnings(tmp_path, base_url=PUBLIC_URL))


def test_the_unit_in_the_docs_lets_a_web_server_of_another_user_in(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "scheduling.md").read_text("utf-8")
    units = re.findall(r"```ini\n# /etc/systemd/system/public-markets.service\n(.*?)```", text, re.DOTALL)
    assert len(units) == 1
    given = dict(line.split("=", 1) for line in units[0].splitlines() if "=" in line)
    assert given["User"] not in ("", "root")
    assert not {"DynamicUser", "StateDirectoryMode", "PrivateUsers", "RootDirectory", "UMask"} & given.keys()
    # The folder that init makes, which the user owns.
    assert given["WorkingDirectory"] == given["ReadWritePaths"]
    options = ("--database", "sqlite", "--edge", "nginx", "--scheduler", "systemd")
    assert commands.run("init", "site", *options, cwd=tmp_path).returncode == 0
    assert (tmp_path / "site").stat().st_mode & 0o777 == 0o755
