"""The package of the TypeScript client: its size, its types, and how it is installed."""

import json
from pathlib import Path

from generator import __version__
from tests.clients.typescript.programs import PACKAGE, SOURCE


def test_the_version_is_the_program_s(client: Path) -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text("utf-8"))
    assert PACKAGE["version"] == lock["version"] == lock["packages"][""]["version"] == __version__


def test_it_has_at_most_five_hundred_lines_of_code(client: Path) -> None:
    """Without blank lines, comments and the types that are generated."""
    sources = [path for path in (SOURCE / "src").glob("*.ts") if path.name != "api.ts"]
    assert len(sources) == 7
    lines = [line.strip() for path in sources for line in path.read_text("utf-8").splitlines()]
    assert max(map(len, lines)) <= 120
    assert 300 < len([line for line in lines if line and not line.startswith(("//", "/*", "*"))]) <= 500
