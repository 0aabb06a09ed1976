"""Every text that the program's errors, warnings and findings are made of, read from the source; `…` is a value.

`messages` finds a text where it is given to an error of `generator.errors` (or one derived from it), to a finding or to
a log. Names are followed to constants and assignments, calls to what functions of that name return, wherever they are.

`sentences` finds what cannot be followed, by its form: `thing: what happened; what to do`.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from generator.errors import PublicMarketsError
from tests.support import structure

VALUE: Final = "…"
#: Functions and methods whose first argument, or `text`, is for the operator.
_FINDINGS: Final = {"error", "warning", "Finding"}
#: Other functions, and which of their arguments is the text.
_TEXT_AT: Final = {"PydanticCustomError": 1, "_complain": 1, "_kind": 2}
#: Packages whose messages say themselves what to do; what is published, results and made-up texts; what columns mean.
_NOT_PROMISED: Final = re.compile(
    r"generator/(cluster/|config/|verify/|cli/verify|api/|cli/(init|plan)|demo/|edge/local/js_router|site/site_index|source/relations)"
)
_WORD: Final = re.compile("[a-z]{2,}")


class Message(NamedTuple):
    """A text, and the file that it is in."""

    place: str
    text: str


@cache
def error_names() -> frozenset[str]:
    """The names of all classes of errors for the operator."""
    classes = [node for module in modules() for node in module.nodes if isinstance(node, ast.ClassDef)]
    found = {PublicMarketsError.__name__}
    for _ in range(5):  # deeper than the tree of errors is
        found |= {each.name for each in classes if any(isinstance(b, ast.Name) and b.id in found for b in each.bases)}
    return frozenset(found)


@cache
def modules() -> list["_Module"]:
    """All of the program."""
    return [_Module(module.path, module.text) for module in structure.modules("generator")]


@cache
def functions() -> Mapping[str, Sequence[ast.FunctionDef]]:
    """The functions and methods of the program, by their name."""
    found = defaultdict[str, list[ast.FunctionDef]](list)
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef):
                found[node.name].append(node)
    return found


def messages() -> Iterator[Message]:
    """What is given to errors, findings and logs, and every other text in the form of a message."""
    for module in modules():
        place = module.path.as_posix()
        if not _NOT_PROMISED.match(place):
            yield from (Message(place, text) for text in (*module.given(), *module.sentences()))


@cache
def strings() -> frozenset[str]:
    """Every text in the source."""
    return frozenset(plain(text) for module in modules() for text in module.strings())


class _Module(structure.Module):
    def given(self) -> Iterator[str]:
        """The texts that calls give to the operator, as far as they can be followed."""
        for function, call in self._calls(self.parsed, None):
            if (argument := self._argument(call)) is not None:
                yield from self._texts(argument, function, 0)

    def sentences(self) -> Iterator[str]:
        """Texts of four words or more that have a remedy, or begin with the thing that they are about."""
        for text in self.strings():
            has_form = "; " in text or text.startswith((f"{VALUE}: ", ": "))
            if has_form and "\n" not in text and not plain(text)[:1].isupper() and len(_WORD.findall(text)) >= 4:
                yield text

    def strings(self) -> Iterator[str]:
        """All texts but docstrings."""
        apart = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        apart |= {id(part) for node in self.nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in self.nodes:
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
        if name in error_names() or name in _FINDINGS:
            return named.get("text") or (call.args[0] if call.args else None)
        if len(call.args) > _TEXT_AT.get(name, len(call.args)):
            return call.args[_TEXT_AT[name]]
        return None

    def _texts(self, node: ast.expr, function: ast.FunctionDef | None, depth: int) -> Iterator[str]:
        """What an expression may say; nothing where that cannot be followed."""
        if depth > 8:
            return
        if isinstance(node, ast.Constant):
            yield str(node.value or "")
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
        elif isinstance(node, ast.Name):
            for value in self._values(node.id, function):
                yield from self._texts(value, function, depth + 1)
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            for called, value in _returned(name):
                yield from self._texts(value, called, depth + 1)

    def _values(self, name: str, function: ast.FunctionDef | None) -> list[ast.expr]:
        """What is assigned to a name in the function or, if nothing is, in the module."""
        for scope in (function, self.parsed):
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


@cache
def _returned(name: str) -> Sequence[tuple[ast.FunctionDef, ast.expr]]:
    """What functions of this name return."""
    return [
        (called, node.value)
        for called in functions().get(name, ())
        for node in ast.walk(called)
        if isinstance(node, ast.Return) and node.value is not None
    ]


def plain(text: str) -> str:
    """A text from its first fixed word on, without the value that ends it, in one line; values side by side are one."""
    in_line = re.sub(r"…(?:\W?…)+", VALUE, " ".join(text.replace("%s", VALUE).split()))
    return re.sub(r"^[\W_]+|…$", "", in_line).strip()
