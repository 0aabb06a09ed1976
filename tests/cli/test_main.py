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
#: What a shell runs to show what Tab would: after the line of the docs, for words that begin in a certain way.
SHELLS: Final = {
    "bash": """
        COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _public_markets_completion public-markets
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    # What zsh calls only while somebody types.
    "zsh": """
        compadd() {{ print -l -- $completions }}
        _describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}
        words=({words}) CURRENT=$#words
        _public_markets_completion
    """,
    "fish": "complete --do-complete '{words}' | string split --fields 1 \\t",
}


def test_the_version_names_commit_and_python() -> None:
    told = commands.run("--version")
    pattern = rf"public-markets {re.escape(__version__)}, commit ([0-9a-f]{{12}}(-dirty)?|unknown), Python (\S+)\n"
    found = re.fullmatch(pattern, told.stdout)
    assert found, told.stdout
    assert found[3] == platform.python_version()
    assert (found[1] == "unknown") == (not (ROOT / ".git").exists())


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_and_options(shell: str, tmp_path: Path) -> None:
    program = require(shell, reason="its completion is not tried")
    (line,) = re.findall(rf"^.*_PUBLIC_MARKETS_COMPLETE={shell}_source.*$", INSTALL, re.MULTILINE)
    begin = "autoload -Uz compinit; compinit -u\n" if shell == "zsh" else ""
    asked = {
        "public-markets ta": {"takedown"},
        "public-markets build --allow-j": {"--allow-jumps"},
        "public-markets init --edge c": {"cloudflare", "cloudfront"},
    }
    for words, wanted in asked.items():
        script = f"{begin}{line}\n{SHELLS[shell].format(words=words)}"
        shown = subprocess.run(
            [program, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path,
            env={
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path),
                "PYTHONPATH": str(ROOT), "TERM": "dumb",
            },
        )  # fmt: skip
        assert {*shown.stdout.split()} == wanted, (words, shown.stdout, shown.stderr)
