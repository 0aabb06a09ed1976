"""JavaScript and YAML without what only people read: text → text. CloudFront and CloudFormation count bytes.

That includes that a name is constant: where nothing assigns to it, `let` does the same.

It knows strings and comments, and nothing else of the language: no regular expression may hold a quotation mark or two
slashes, there are no template literals, and every statement ends with a semicolon or a brace. Names stay, so an error
still tells in which function it occurred.
"""

import re
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


_TOKENS: Final = re.compile(
    r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|(?P<constant>(?<![\w$.])const(?=\s))|(?P<gap>(?:\s|//[^\n]*)+)"""
)


@cache
def compact(script: str) -> str:
    """The script on one line, without comments and spaces that separate nothing."""
    return f"{_TOKENS.sub(_closed, script)}\n"


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
