"""What is tested is what ships: no test replaces a part of the program, except where this list says why."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support import structure

#: Why a file replaces something of ours, by file and what it replaces. Never more than twenty: pass a value, count from
#: outside, or break what lies below, a file or a socket.
ALLOWED: Final[Mapping[tuple[str, str], str]] = {
    ("tests/builder/test_prices.py", "prices.MOST_BYTES"): "a document of that size takes 16,000 markets",
    ("tests/publish/explorer/stand_ins.py", "place.…"): "two actors share one process: its clock, threads and disk",
    ("tests/publish/explorer/test_variants.py", "place.…"): "breaks a rule on purpose: the explorer must notice",
    ("tests/publish/faults/conftest.py", "in_turn._RETRY_S"): "each of a thousand takedowns would wait half a second",
    ("tests/publish/test_blocked_markets.py", "filesystem.sync"): "`syncfs` cannot be seen from outside",
    ("tests/publish/test_damaged_record.py", "Lease.read"): "a bug strikes while a takedown reads the record",
    ("tests/publish/test_run.py", "apply._LARGE"): "a file of that size takes 30,000 fills",
    ("tests/support/limits.py", "pages.LIMITS"): "campaigns publish thousands of times, most of all first pages",
    ("tests/support/stores/records.py", "module.…"): "records of small sites in shards, through every command",
}
MOST: Final = 20
OURS: Final = ("generator", "public_markets_client", "tests")
#: What a file has somewhere that replaces anything; the others need not be parsed.
_MAY_REPLACE: Final = re.compile(r"\b(?:setattr|patch|object)\(|\b(?!self\b)\w+\.\w+ = ")


def replacements(module: ast.Module) -> Iterator[str]:
    """What of ours a module replaces, as it says so: by `setattr`, `patch`, or an assignment."""
    imported = dict(_imports(module))
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _is_patch(node.func) and node.args:
            target, *names = node.args
            if _is_ours(target, imported):
                yield _told(target, names)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    whose = imported.get(target.value.id, "")
                    if whose.partition(".")[0] in OURS:
                        yield f"{target.value.id}.{target.attr}"


def _is_patch(function: ast.expr) -> bool:
    """Whether this is `setattr` of anything, or `patch` of a mock."""
    match function:
        case ast.Name(id=name):
            return name in ("setattr", "patch")
        case ast.Attribute(attr=name):
            return name in ("setattr", "patch", "object")
        case _:
            return False


def _is_ours(target: ast.expr, imported: Mapping[str, str]) -> bool:
    """Whether it may be a part of ours: all but strings and imported names that tell that it is not."""
    match target:
        case ast.Constant(value=str() as text):
            return text.partition(".")[0] in OURS
        case ast.Name(id=name) if name in imported:
            return imported[name].partition(".")[0] in OURS
        case ast.Attribute(value=value):
            return _is_ours(value, imported)
        case _:
            return True


def _told(target: ast.expr, names: list[ast.expr]) -> str:
    if isinstance(target, ast.Constant) and isinstance(target.value, str):
        return target.value
    name = names[0].value if names and isinstance(names[0], ast.Constant) else "…"
    return f"{ast.unparse(target)}.{name!s}"


def _imports(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that imports bind, and the full names of what they are bound to."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((one.asname or one.name.partition(".")[0], one.name) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


def found() -> set[tuple[str, str]]:
    return {
        (module.path.as_posix(), replaced)
        for module in structure.modules("tests")
        if module.path != Path(__file__).relative_to(Path(__file__).parents[1]) and _MAY_REPLACE.search(module.text)
        for replaced in replacements(module.parsed)
    }


def test_tests_replace_nothing_of_ours_but_what_is_listed() -> None:
    assert found() == {*ALLOWED}
    assert len(ALLOWED) <= MOST
    assert all(ALLOWED.values())


def test_a_replacement_is_seen_however_it_is_written() -> None:
    text = """
import os, time
from generator.tree import pages
from generator.stores.s3 import Bucket
import generator.program
monkeypatch.setattr(pages, "LIMITS", 1)
patch.setattr("generator.program.X", 1)
setattr(Bucket, name, 1)
monkeypatch.setattr(self.thing, "name", 1)
pages.LIMITS = 2
mock.patch("generator.a.b")
mock.patch.object(pages, "other")
monkeypatch.setattr(os, "replace", 1)
monkeypatch.setattr("time.sleep", 1)
monkeypatch.setattr(time, "sleep", 1)
os.environ = 1
"""
    assert all(_MAY_REPLACE.search(line) for line in text.strip().splitlines()[4:])
    assert sorted(replacements(ast.parse(text))) == [
        "Bucket.…",
        "generator.a.b",
        "generator.program.X",
        "pages.LIMITS",
        "pages.LIMITS",
        "pages.other",
        "self.thing.name",
    ]
