"""`make test` looks at everything: of every test file it runs something."""

import ast
import re
from pathlib import Path
from typing import Final, TypeGuard

from tests.support.project import ROOT

#: The files of which no test runs in seconds, and why.
LONG: Final = {"tests/test_image.py": "every test runs in a container, whose image takes a minute to build"}
_NONE: Final = "pytest.mark.campaign(short=0)"
#: What gives a test another size at full length.
_SIZES: Final = frozenset({"rounds", "sample"})


def is_played(file: Path) -> bool:
    """Whether `make test` runs a test of the file."""
    text = file.read_text("utf-8")
    if _NONE not in text and re.search("^def test_", text, re.MULTILINE):
        return True
    module = ast.parse(text)
    marks = [node.value for node in module.body if _is_mark(node)]
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assert tests, f"{file} has no test"
    return not _has_none(marks) and not all(_has_none(test.decorator_list) for test in tests)


def _is_mark(node: ast.stmt) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]


def _has_none(marks: list[ast.expr]) -> bool:
    return any(_NONE in ast.unparse(mark) for mark in marks)


def test_of_every_file_make_test_runs_something() -> None:
    files = {path.relative_to(ROOT).as_posix(): is_played(path) for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(files) > 200
    assert {file for file, is_one_played in files.items() if not is_one_played} == {*LONG}


def unmarked(file: Path) -> list[str]:
    """The tests of a file that have another size at full length, where nobody runs them."""
    module = ast.parse(file.read_text("utf-8"))
    imports = [node for node in module.body if isinstance(node, ast.ImportFrom)]
    named = {one.name for node in imports if node.module == "tests.support.campaigns" for one in node.names}
    if not named & _SIZES or any("campaign" in ast.unparse(node.value) for node in module.body if _is_mark(node)):
        return []
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return [
        test.name
        for test in tests
        if _names(*test.decorator_list, *test.body) & named & _SIZES
        and not any("campaign" in ast.unparse(mark) for mark in test.decorator_list)
    ]


def _names(*nodes: ast.AST) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_what_is_larger_at_full_length_is_a_campaign() -> None:
    found = {path.name: unmarked(path) for path in (ROOT / "tests").rglob("test_*.py")}
    assert {name: tests for name, tests in found.items() if tests} == {}
