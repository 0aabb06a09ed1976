"""JavaScript without what only people read: text → text. CloudFront and CloudFormation count bytes.

That includes that a name is constant: where nothing assigns to it, `let` does the same.

It knows strings and comments, and nothing else of the language: no regular expression may hold a quotation mark or two
slashes, there are no template literals, and every statement ends with a semicolon or a brace. Names stay, so an error
still tells in which function it occurred.
"""

import re
from functools import cache
from typing import Final

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
