"""Every text that the program's errors, warnings and findings are made of, read from the source; `…` is a value.

`messages` finds a text where it is given to an error of `generator.errors` (or one derived from it), to a finding, to a
log, or to pydantic. Names are followed to constants and assignments, calls to what functions of the same module return.
What cannot be followed has no text, and is known by its place, so that nobody can overlook it.

`sentences` finds the texts that are made elsewhere, by their form: `thing: what happened; what to do`.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import generator
from generator.errors import PublicMarketsError
from tests.support.sites.builds import ROOT

VALUE: Final = "…"
#: Functions and methods whose first argument, or `text`, is for the operator.
_FINDINGS: Final = {"error", "warning", "Finding"}
#: Other functions, and which of their arguments is the text.
_TEXT_AT: Final = {"PydanticCustomError": 1, "_complain": 1, "_kind": 2}
#: Packages where a ValueError becomes the sentence about a setting.
_VALUE_ERRORS: Final = ("generator/config/",)
#: What is published, results and made-up texts, and what columns mean.
_NOT_FOR_OPERATORS: Final = re.compile(r"generator/(api/|cli/plan|demo/texts|edge/local/js_router|source/relations)")
_WORD: Final = re.compile("[a-z]{2,}")


class Message(NamedTuple):
    """A text, or "" if it cannot be followed; and where it is, as `path:function`."""

    place: str
    text: str


@cache
def error_names() -> frozenset[str]:
    """The names of all classes of errors for the operator."""
    for module in pkgutil.walk_packages(generator.__path__, "generator."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

    def below(kind: type[PublicMarketsError]) -> Iterator[str]:
        yield kind.__name__
        for sub in kind.__subclasses__():
            yield from below(sub)

    return frozenset(below(PublicMarketsError))


@cache
def modules() -> list["_Module"]:
    """All of the program."""
    return [_Module(path) for path in sorted((ROOT / "generator").rglob("*.py"))]


def messages() -> list[Message]:
    """What is given to errors, findings and logs, in the order of the source."""
    return [message for module in modules() for message in module.messages()]


def sentences() -> list[Message]:
    """Every other text in the form of a message; what is published, and so in `api`, is not for the operator."""
    return [
        sentence for module in modules() if not _NOT_FOR_OPERATORS.match(module.name) for sentence in module.sentences()
    ]


@cache
def strings() -> frozenset[str]:
    """Every text in the source."""
    return frozenset(plain(text) for module in modules() for text in module.strings())


class _Module:
    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(ROOT).as_posix()
        self._tree = ast.parse(path.read_text("utf-8"))
        self._functions = {
            node.name: node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }

    def messages(self) -> Iterator[Message]:
        for function, call in self._calls(self._tree, None):
            place = f"{self.name}:{function.name if function else ''}"
            if (argument := self._argument(call)) is not None:
                texts = {*self._texts(argument, function, 0)}
                yield from (Message(place, text) for text in sorted(texts))

    def sentences(self) -> Iterator[Message]:
        """Texts of four words or more that have a remedy, or begin with the thing that they are about."""
        for text in self.strings():
            has_form = "; " in text or text.startswith((f"{VALUE}: ", ": "))
            if has_form and "\n" not in text and not plain(text)[:1].isupper() and len(_WORD.findall(text)) >= 4:
                yield Message(self.name, text)

    def strings(self) -> Iterator[str]:
        """All texts but docstrings."""
        apart = {id(node.value) for node in ast.walk(self._tree) if isinstance(node, ast.Expr)}
        apart |= {id(part) for node in ast.walk(self._tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in apart:
                yield from self._texts(node, None, 0)

    def _calls(
        self, node: ast.AST, function: ast.FunctionDef | None
    ) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield function, child
            yield from self._calls(child, child if isinstance(child, ast.FunctionDef) else function)

    def _argument(self, call: ast.Call) -> ast.expr | None:
        """The expression of the text that a call gives to the operator, if it does."""
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        if name in error_names() or name in _FINDINGS or (name == "ValueError" and self.name.startswith(_VALUE_ERRORS)):
            return named.get("text") or (call.args[0] if call.args else None)
        if len(call.args) > _TEXT_AT.get(name, len(call.args)):
            return call.args[_TEXT_AT[name]]
        return None

    def _texts(self, node: ast.expr, function: ast.FunctionDef | None, depth: int) -> Iterator[str]:
        """What an expression may say; "" where that cannot be followed."""
        if depth > 8:
            yield ""
        elif isinstance(node, ast.Constant):
            yield str(node.value)
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from (
                left + right
                for left in self._texts(node.left, function, depth + 1)
                for right in self._texts(node.right, function, depth + 1)
            )
        elif isinstance(node, ast.IfExp):
            yield from self._texts(node.body, function, depth + 1)
            yield from self._texts(node.orelse, function, depth + 1)
        elif isinstance(node, ast.Name) and (values := self._values(node.id, function)):
            for value in values:
                yield from self._texts(value, function, depth + 1)
        elif isinstance(node, ast.Call) and (returns := self._returns(node)):
            for called, value in returns:
                yield from self._texts(value, called, depth + 1)
        else:
            yield ""

    def _values(self, name: str, function: ast.FunctionDef | None) -> list[ast.expr]:
        """What is assigned to a name in the function or, if nothing is, in the module."""
        for scope in (function, self._tree):
            found = [
                node.value
                for node in (ast.walk(scope) if scope is function and scope else getattr(scope, "body", []))
                if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                if isinstance(target, ast.Name) and target.id == name
            ]
            if found:
                return found
        return []

    def _returns(self, call: ast.Call) -> list[tuple[ast.FunctionDef, ast.expr]]:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        called = self._functions.get(name)
        if not isinstance(called, ast.FunctionDef):
            return []
        return [
            (called, node.value) for node in ast.walk(called) if isinstance(node, ast.Return) and node.value is not None
        ]


def plain(text: str) -> str:
    """A text from its first fixed word on, without the value that ends it, in one line; values side by side are one."""
    in_line = re.sub(r"…(?:\W?…)+", VALUE, " ".join(text.replace("%s", VALUE).split()))
    return re.sub(r"^[\W_]+|…$", "", in_line).strip()
