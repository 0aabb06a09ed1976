"""Programs that tests need: a missing one skips the test, or fails it where everything must be installed."""

import os
import shutil
from pathlib import Path
from typing import Final, NoReturn

import pytest

#: Set to 1 where no test may be skipped, as in CI.
REQUIRE_ALL: Final = "REQUIRE_ALL"


def require(program: str, *folders: Path, reason: str) -> Path:
    """Find a program on the PATH or in `folders`; without it skip the test, or fail it when REQUIRE_ALL=1."""
    found = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)]))
    return Path(found) if found else unavailable(f"{program} is not installed: {reason}")


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail it when REQUIRE_ALL=1."""
    if os.environ.get(REQUIRE_ALL) == "1":
        pytest.fail(f"{reason} ({REQUIRE_ALL}=1 forbids skipping)")
    pytest.skip(f"NOT TESTED: {reason}")
