"""The structure of the program and its tests in figures: `make structure` prints them; the architecture test uses them.

python -m tests.support.structure
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
#: What a file of Python is not made of, though it has tokens of it.
_NO_CODE: Final = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: Comments by the kind of a file, without `.j2`: all that stand alone on their lines. JSON has none.
_SLASHES: Final = r"^\s*//.*|^\s*/\*(?:.|\n)*?\*/"
_HASHES: Final = r"^\s*#.*"
_COMMENTS: Final = {
    "conf": _HASHES, "css": _SLASHES, "crontab": _HASHES, "environment": _HASHES, "html": r"^\s*<!--(?:.|\n)*?-->",
    "js": _SLASHES, "json": None, "jsonc": _SLASHES, "md": r"^\s*<!--(?:.|\n)*?-->", "service": _HASHES,
    "sql": r"^\s*--.*", "timer": _HASHES, "yaml": _HASHES, "yml": _HASHES,
}  # fmt: skip
_COMMENT_OF_JINJA: Final = r"^\s*\{#(?:.|\n)*?#\}"


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

    @cached_property
    def code_lines(self) -> int:
        """Lines of code: without blanks, comments and docstrings."""
        documented = (node for node in self.nodes if isinstance(node, _DOCUMENTED) and ast.get_docstring(node))
        spans = ((node.body[0].lineno, node.body[0].end_lineno or 0) for node in documented)
        docstrings = {number for first, last in spans for number in range(first, last + 1)}
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        numbers = {
            number
            for token in tokens
            if token.type not in _NO_CODE
            for number in range(token.start[0], token.end[0] + 1)
        }
        lines = self.text.splitlines()
        return sum(bool(lines[number - 1].strip()) for number in numbers - docstrings)

    @cached_property
    def imported(self) -> Sequence[str]:
        """Every name that it imports: `generator.api.keys`, `os`, `sqlalchemy.exc`; relative with dots."""
        names = list[str]()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                names += (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names += (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)
        return names

    @property
    def dotted(self) -> str:
        """Its name in an import."""
        return ".".join(self.path.with_suffix("").parts).removesuffix(".__init__")

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


def arrows(known: Sequence[Module]) -> set[tuple[str, str]]:
    """Which module imports which other one of these, each pair once."""
    names = {module.dotted for module in known}
    return {
        (module.dotted, target)
        for module in known
        for name in module.imported
        if (target := name if name in names else name.rpartition(".")[0]) in names and target != module.dotted
    }


@dataclass(frozen=True)
class TextFile:
    """A file that is no Python: a template, or data that the program reads."""

    path: Path
    code_lines: int


def texts(folder: str) -> list[TextFile]:
    """The templates and data files below a folder: none of others' programs, and no documents."""
    files = (path for path in sorted((ROOT / folder).rglob("*")) if path.is_file() and path.name != "README.md")
    paths = (path.relative_to(ROOT) for path in files if "vendor" not in path.parts)
    known = (path for path in paths if _kind(path) in _COMMENTS)
    return [TextFile(path, code_lines((ROOT / path).read_text("utf-8"), _kind(path))) for path in known]


def _kind(path: Path) -> str:
    return path.name.removesuffix(".j2").rpartition(".")[2]


def code_lines(text: str, kind: str) -> int:
    """Lines of a text without blanks and comments."""
    for comments in filter(None, (_COMMENT_OF_JINJA, _COMMENTS[kind])):
        text = re.sub(comments, "", text, flags=re.MULTILINE)
    return sum(bool(line.strip()) for line in text.splitlines())


def report(folder: str) -> Iterator[str]:
    """The lines of the report on a folder of Python."""
    known = modules(folder)
    packages = sorted({module.package for module in known})
    yield f"{folder}/: {_of(known)}, {len(arrows(known)):,} arrows between them"
    yield from (f"  {name:<24}{_of([module for module in known if module.package == name])}" for name in packages)
    several = ambiguous_types(known)
    yield f"{len(several)} names of public types that several modules define"
    yield from (f"  {name:<24}{len(places)}: {', '.join(places)}" for name, places in several.items())
    yield from _listed(f"functions of more than {LONG_FUNCTION} lines", long_functions(known))
    long = {str(module.path): module.lines for module in known if module.lines > LONG_MODULE}
    yield from _listed(f"modules of more than {LONG_MODULE} lines", long)


def _of(known: Sequence[Module]) -> str:
    code, lines = sum(module.code_lines for module in known), sum(module.lines for module in known)
    return f"{code:>7,} lines of code of {lines:>7,} in {len(known):>3} modules"


def report_on_texts(folders: Iterable[str]) -> Iterator[str]:
    """The lines of the report on what is no Python."""
    for folder in folders:
        known = texts(folder)
        code, kinds = Counter[str](), Counter[str]()
        for file in known:
            code[_kind(file.path)] += file.code_lines
            kinds[_kind(file.path)] += 1
        yield f"{folder}/: {sum(code.values()):,} lines of templates and data in {len(known)} files"
        yield from (f"  {kind:<24}{code[kind]:>7,} in {kinds[kind]:>3}" for kind in sorted(code))


def _listed(title: str, lines: Mapping[str, int]) -> Iterator[str]:
    yield f"{len(lines)} {title}"
    yield from (f"  {count:>4}  {name}" for name, count in sorted(lines.items(), key=lambda item: -item[1]))


if __name__ == "__main__":
    sheets = (report("generator"), report_on_texts(("generator", "templates")), report("tests"))
    product: list[Module | TextFile] = [*texts("generator"), *texts("templates"), *modules("generator")]
    total = f"product: {sum(file.code_lines for file in product):,} lines of code, of templates and of data"
    sys.stdout.write("\n\n".join([*("\n".join(sheet) for sheet in sheets), total]) + "\n")
