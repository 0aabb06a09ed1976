"""What the program says of itself, and what shells complete."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from generator import __version__
from tests.support import commands
from tests.support.programs import require
from tests.support.project import ROOT

INSTALL: Final = (ROOT / "docs/install.md").read_text("utf-8")


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_of_the_docs_defines_what_a_shell_completes_with(shell: str, tmp_path: Path) -> None:
    program = require(shell, reason="its completion is not tried")
    (line,) = re.findall(rf"^.*_PUBLIC_MARKETS_COMPLETE={shell}_source.*$", INSTALL, re.MULTILINE)
    begin = "autoload -Uz compinit; compinit -u; " if shell == "zsh" else ""
    shown = subprocess.run(
        [program, "-c", f"{begin}{line}\ntype _public_markets_completion"], capture_output=True, text=True, check=False,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT), "TERM": "dumb",
        },
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "_public_markets_completion" in shown.stdout


def test_the_version_names_commit_and_python() -> None:
    told = commands.run("--version")
    pattern = rf"public-markets {re.escape(__version__)}, commit ([0-9a-f]{{12}}(-dirty)?|unknown), Python (\S+)\n"
    found = re.fullmatch(pattern, told.stdout)
    assert found, told.stdout
    assert found[3] == platform.python_version()
    assert (found[1] == "unknown") == (not (ROOT / ".git").exists())
