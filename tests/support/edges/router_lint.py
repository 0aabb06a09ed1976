"""Refuses, in a router's text, what njs or Node let through and CloudFront Functions or njs would not run.

CloudFront takes a broken function without complaint, and then answers every request with 503.
"""

import re
from typing import Final

#: What may not stand in code, by name; comments and quoted strings are taken out first.
_FORBIDDEN: Final = {
    "for…of": r"\bfor\s*\([^;)]*\bof\b",
    "for…in": r"\bfor\s*\([^;)]*\bin\b",
    "destructuring": r"\b(?:const|let|var)\s*[\[{]|\(\s*[\[{][^()]*[\]}]\s*\)\s*=>|function\s*\w*\(\s*[\[{]",
    "spread or rest": r"\.\.\.",
    "default parameter": r"function\s*\w*\([^)]*=|\([^()]*\w\s*=\s*[^=()]*\)\s*=>",
    "class": r"\bclass\b",
    "generator": r"\bfunction\s*\*|\byield\b",
    "async": r"\basync\b|\bawait\b|\bPromise\b",
    "optional chaining": r"\?\.(?!\d)",
    "nullish": r"\?\?",
    "logical assignment": r"(?:\|\||&&)=",
    "exponent": r"\*\*",
    "catch without a name": r"\bcatch\s*\{",
    "BigInt": r"\bBigInt\b|\b\d+n\b",
    "collections": r"\b(?:Map|Set|WeakMap|WeakSet|Symbol|Proxy|Reflect)\b",
    "URL": r"\bURL(?:SearchParams)?\b",
    "newer methods": (
        r"\.(?:flat|flatMap|at|matchAll|replaceAll|localeCompare|fromEntries|normalize)\s*\(|Array\.(?:from|of)\b"
    ),
    "timers": r"\bset(?:Timeout|Interval|Immediate)\b",
    "code from text": r"\beval\b|\bFunction\b",
    "the machine": r"\b(?:process|require|global|globalThis|module|exports|console|njs|ngx)\b",
    "modules": r"\bimport\b|\bexport\b",
    "chance and time": r"\bMath\.random\b|\bDate\b",
    "regular expression": (
        r"(?:[=(,:;!&|?{}]|\breturn)\s*/(?![/*])|\bRegExp\b|\.(?:match|search|test|exec|replace)\s*\("
    ),
    "label or with": r"\bwith\s*\(|\bdebugger\b",
    "template literal": r"`",
    "with a getter": r"\b(?:get|set)\s+\w+\s*\(",
}

_STRING_OR_COMMENT: Final = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""", re.DOTALL)


def findings(script: str) -> list[str]:
    """Every forbidden construct, with its line; empty when the script may be deployed."""
    code = _STRING_OR_COMMENT.sub(_blank, script)
    return [
        f"line {code.count(chr(10), 0, found.start()) + 1}: {name}"
        for name, pattern in _FORBIDDEN.items()
        for found in re.finditer(pattern, code)
    ]


def _blank(found: re.Match[str]) -> str:
    """A string stays an (empty) string, a comment is nothing, and lines stay where they are."""
    text = found.group()
    return "''" if text[0] in "'\"" else "\n" * text.count("\n")
