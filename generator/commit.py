"""Names the commit that the program was made of. Imports nothing of ours: what builds a wheel runs this file alone."""

import subprocess
from pathlib import Path
from typing import Final

#: What a wheel and an sdist have beside this module; a checkout asks git.
FILE: Final = "COMMIT"
_PACKAGE: Final = Path(__file__).parent
_DIGITS: Final = 12


def this_commit() -> str | None:
    """The first digits of the commit, with `-dirty` after them if files were changed since; None if nobody knows."""
    file = _PACKAGE / FILE
    return file.read_text("utf-8").strip() if file.exists() else of_checkout(_PACKAGE.parent)


def of_checkout(root: Path) -> str | None:
    """The same of a checkout; None if the folder is none, or git cannot read it."""
    if not (root / ".git").exists():  # a folder of a checkout of something else has no say
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*", f"--abbrev={_DIGITS}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
