"""The structure of the program and its tests in figures: `make structure` prints them; the architecture test uses them.

python -m tests.support.structure
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from tests.support.project import ROOT

#: Longer functions and modules are listed.
LONG_FUNCTION: Final = 50
LONG_MODULE: Final = 300
_ELSEWHERE: Final = "node_modules"
#: A public type: Camel case, which tells it from a constant.
_TYPE: Final = re.compile(r"[A-Z]\w*[a-z]\w*")


@dataclass(frozen=True)
class Module:
    """A file of Python: its place below the root of the project, its text, and what is parsed of it."""

    path: Path
    text: str

    @cached_property
    def parsed(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return [*ast.walk(self.parsed)]

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def package(self) -> str:
        """The folder below `generator/` or `tests/`; these themselves for modules beside the folders."""
        return "/".join(self.path.parts[:2] if len(self.path.parts) > 2 else self.path.parts[:1])

    def functions(self) -> Iterator[tuple[str, int]]:
        """The name and the number of lines of every function."""
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, (node.end_lineno or 0) - node.lineno + 1

    def public_types(self) -> Iterator[str]:
        """The names of its public classes, type aliases and type variables."""
        for node in self.parsed.body:
            yield from filter(_TYPE.fullmatch, _names(node))


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def modules(folder: str) -> Sequence[Module]:
    """Every module below a folder of the project, which is parsed when it is looked at."""
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if _ELSEWHERE not in path.parts]
    return [Module(path.relative_to(ROOT), path.read_text("utf-8")) for path in paths]


def ambiguous_types(known: Sequence[Module]) -> dict[str, list[str]]:
    """The names of public types that several modules define, with these modules; most first."""
    found: dict[str, list[str]] = {}
    for module in known:
        for name in dict.fromkeys(module.public_types()):
            found.setdefault(name, []).append(str(module.path))
    several = [(name, places) for name, places in found.items() if len(places) > 1]
    return dict(sorted(several, key=lambda item: (-len(item[1]), item[0])))


def long_functions(known: Sequence[Module]) -> dict[str, int]:
    """The lines of each function that is too long."""
    found = ((f"{module.path}: {name}", lines) for module in known for name, lines in module.functions())
    return {name: lines for name, lines in found if lines > LONG_FUNCTION}


def long_modules(known: Sequence[Module]) -> dict[str, int]:
    """The lines of each module that is too long."""
    return {str(module.path): module.lines for module in known if module.lines > LONG_MODULE}


def report(folder: str) -> Iterator[str]:
    """The lines of the report on a folder."""
    known = modules(folder)
    lines, number = Counter[str](), Counter[str]()
    for module in known:
        lines[module.package] += module.lines
        number[module.package] += 1
    yield f"{folder}/: {sum(lines.values()):,} lines in {len(known)} modules"
    yield from (f"  {package:<24}{lines[package]:>8,}{number[package]:>6}" for package in sorted(lines))
    several = ambiguous_types(known)
    yield f"{len(several)} names of public types that several modules define"
    yield from (f"  {name:<24}{len(places)}: {', '.join(places)}" for name, places in several.items())
    yield from _listed(f"functions of more than {LONG_FUNCTION} lines", long_functions(known))
    yield from _listed(f"modules of more than {LONG_MODULE} lines", long_modules(known))


def _listed(title: str, lines: Mapping[str, int]) -> Iterator[str]:
    yield f"{len(lines)} {title}"
    yield from (f"  {count:>4}  {name}" for name, count in sorted(lines.items(), key=lambda item: -item[1]))


if __name__ == "__main__":
    sys.stdout.write("\n\n".join("\n".join(report(folder)) for folder in ("generator", "tests")) + "\n")
