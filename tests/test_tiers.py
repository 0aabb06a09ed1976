"""`make test` looks at everything: of every test file it runs something."""

import ast
import re
from pathlib import Path
from typing import Final

from tests.support.project import ROOT

#: The files of which no test runs in seconds, and why.
LONG: Final = {"tests/test_image.py": "every test runs in a container, whose image takes a minute to build"}
_NONE: Final = "pytest.mark.campaign(short=0)"


def is_played(file: Path) -> bool:
    """Whether `make test` runs a test of the file."""
    text = file.read_text("utf-8")
    if _NONE not in text and re.search("^def test_", text, re.MULTILINE):
        return True
    module = ast.parse(text)
    marks = [node.value for node in module.body if isinstance(node, ast.Assign) and _is_mark(node)]
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert tests, f"{file} has no test"
    return not _has_none(marks) and not all(_has_none(test.decorator_list) for test in tests)


def _is_mark(node: ast.Assign) -> bool:
    return [ast.unparse(target) for target in node.targets] == ["pytestmark"]


def _has_none(marks: list[ast.expr]) -> bool:
    return any(_NONE in ast.unparse(mark) for mark in marks)


def test_of_every_file_make_test_runs_something() -> None:
    files = {path.relative_to(ROOT).as_posix(): is_played(path) for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(files) > 200
    assert {file for file, is_one_played in files.items() if not is_one_played} == {*LONG}
