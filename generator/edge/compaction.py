"""JavaScript and YAML without what only people read: text → text. CloudFront and CloudFormation count bytes.

That includes that a name is constant: where nothing assigns to it, `let` does the same, and one may declare several.

It knows strings, comments and brackets, and nothing else of the language: no regular expression may hold a quotation
mark, two slashes, a semicolon or half a pair of brackets, there are no template literals, and every statement ends with
a semicolon or a brace, and is not empty. Names stay, so an error still tells in which function it occurred.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import yaml

#: The comment at the beginning, which stays.
_TOP: Final = re.compile(r"(?:#[^\n]*\n)*")
#: The faster one where it is there; both find the same.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Longer than any line.
_WIDTH: Final = 1 << 30


@cache
def packed(text: str) -> str:
    """A YAML document in fewer bytes, which CloudFormation counts.

    Each part is on one line unless it holds a literal block; of the comments, the first stays.
    """
    top = _TOP.match(text)
    node = yaml.compose(text, _LOADER)
    if node is not None:
        _flow(node)
    body = yaml.serialize(node, Dumper=yaml.SafeDumper, allow_unicode=True, width=_WIDTH)
    return f"{top.group() if top else ''}{body}"


def _flow(node: yaml.Node) -> bool:
    """Write the node on one line if it may be; returns that."""
    if isinstance(node, yaml.ScalarNode):
        is_literal = node.style == "|"
        node.style = "|" if is_literal else None
        return not is_literal
    parts = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
    flows = [_flow(part) for part in parts]
    if isinstance(node, yaml.CollectionNode):
        node.flow_style = all(flows)
    return all(flows)


_STRING: Final = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|"""
_TOKENS: Final = re.compile(rf"{_STRING}(?P<constant>(?<![\w$.])const(?=\s))|(?P<gap>(?:\s|//[^\n]*)+)")
#: In a script without gaps: where a declaration begins, the semicolon that a brace makes needless, and what else holds
#: or ends statements.
_BOUNDS: Final = re.compile(
    rf"{_STRING}(?P<declared>(?<![\w$.])let(?: |(?=[\[{{])))|(?P<needless>;(?=}}))|[;(){{}}\[\]]"
)
#: Between two brackets, where the last declaration ended; or that there is none, or that it is being read.
_NONE, _BEGUN = -2, -1


@cache
def compact(script: str) -> str:
    """The script on one line, without comments and spaces that separate nothing."""
    return f"{''.join(_joined(_TOKENS.sub(_closed, script)))}\n"


def _joined(script: str) -> Iterator[str]:
    """The script in parts, in which one `let` makes all declarations that follow each other."""
    start, ends = 0, [_NONE]
    for bound in _BOUNDS.finditer(script):
        if bound["declared"]:
            if ends[-1] == bound.start():
                yield f"{script[start : bound.start() - 1]},"
                start = bound.end()
            ends[-1] = _BEGUN
        elif bound["needless"]:
            yield script[start : bound.start()]
            start = bound.end()
        elif bound.group() in ("(", "[", "{"):
            ends.append(_NONE)
        elif bound.group() in (")", "]", "}"):
            ends.pop()
        elif bound.group() == ";":
            ends[-1] = bound.end() if ends[-1] == _BEGUN else _NONE
    yield script[start:]


def _closed(found: re.Match[str]) -> str:
    """A string as it is, `let` for `const`; of the space and the comments between two tokens, what keeps them apart."""
    if found["constant"]:
        return "let"
    gap = found["gap"]
    if gap is None:
        return found.group()
    before, after = found.string[found.start() - 1 : found.start()], found.string[found.end() : found.end() + 1]
    is_needed = (_is_of_word(before) and _is_of_word(after)) or before == after == "+" or before == after == "-"
    return " " if is_needed else ""


def _is_of_word(char: str) -> bool:
    return char.isalnum() or char in {"_", "$"}
