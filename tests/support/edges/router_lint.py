"""Refuses, in a router's text, what njs or Node let through and CloudFront Functions or njs would not run.

CloudFront takes a broken function without complaint, and then answers every request with 503.
"""

import re
from typing import Final

#: What may not stand in code, by name, and a sample; comments and quoted strings are taken out first.
FORBIDDEN: Final = {
    "for…of": (r"\bfor\s*\([^;)]*\bof\b", "for (const x of list) {}"),
    "for…in": (r"\bfor\s*\([^;)]*\bin\b", "for (const name in object) {}"),
    "destructuring": (
        r"\b(?:const|let|var)\s*[\[{]|\(\s*[\[{][^()]*[\]}]\s*\)\s*=>|function\s*\w*\(\s*[\[{]",
        "const { a } = b;",
    ),
    "spread or rest": (r"\.\.\.", "f(...list);"),
    "default parameter": (r"function\s*\w*\([^)]*=|\([^()]*\w\s*=\s*[^=()]*\)\s*=>", "function f(a = 1) {}"),
    "class": (r"\bclass\b", "class A {}"),
    "generator": (r"\bfunction\s*\*|\byield\b", "function* f() {}"),
    "async": (r"\basync\b|\bawait\b|\bPromise\b", "async function f() {}"),
    "optional chaining": (r"\?\.(?!\d)", "a?.b;"),
    "nullish": (r"\?\?", "a ?? b;"),
    "logical assignment": (r"(?:\|\||&&)=", "a ||= b;"),
    "exponent": (r"\*\*", "a ** b;"),
    "catch without a name": (r"\bcatch\s*\{", "try { a(); } catch { b(); }"),
    "BigInt": (r"\bBigInt\b|\b\d+n\b", "1n;"),
    "collections": (r"\b(?:Map|Set|WeakMap|WeakSet|Symbol|Proxy|Reflect)\b", "new Map();"),
    "URL": (r"\bURL(?:SearchParams)?\b", "new URLSearchParams(query);"),
    "newer methods": (
        r"\.(?:flat|flatMap|at|matchAll|replaceAll|localeCompare|fromEntries|normalize)\s*\(|Array\.(?:from|of)\b",
        "text.replaceAll('a', 'b');",
    ),
    "timers": (r"\bset(?:Timeout|Interval|Immediate)\b", "setTimeout(f, 1);"),
    "code from text": (r"\beval\b|\bFunction\b", "new Function('return 1')();"),
    "the machine": (r"\b(?:process|require|global|globalThis|module|exports|console|njs|ngx)\b", "process.env;"),
    "modules": (r"\bimport\b|\bexport\b", "import crypto from 'crypto';"),
    "chance and time": (r"\bMath\.random\b|\bDate\b", "new Date();"),
    "regular expression": (
        r"(?:[=(,:;!&|?{}]|\breturn)\s*/(?![/*])|\bRegExp\b|\.(?:match|search|test|exec|replace)\s*\(",
        "if (/^open$/.test(text)) f();",
    ),
    "label or with": (r"\bwith\s*\(|\bdebugger\b", "with (a) {}"),
    "template literal": (r"`", "`a`;"),
    "with a getter": (r"\b(?:get|set)\s+\w+\s*\(", "const a = { get b() {} };"),
}

_STRING_OR_COMMENT: Final = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""", re.DOTALL)


def findings(script: str) -> list[str]:
    """Every forbidden construct, with its line; empty when the script may be deployed."""
    code = _STRING_OR_COMMENT.sub(_blank, script)
    return [
        f"line {code.count(chr(10), 0, found.start()) + 1}: {name}"
        for name, (pattern, _) in FORBIDDEN.items()
        for found in re.finditer(pattern, code)
    ]


def _blank(found: re.Match[str]) -> str:
    """A string stays an (empty) string, a comment is nothing, and lines stay where they are."""
    text = found.group()
    return "''" if text[0] in "'\"" else "\n" * text.count("\n")
