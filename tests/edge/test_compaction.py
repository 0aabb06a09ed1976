"""CloudFront's scripts lose what only people read, and nothing else."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from generator.config.settings import Config
from generator.edge import templates
from generator.edge.compaction import compact
from tests.support.builds import VARIANTS
from tests.support.cloudfront import AWKWARD, rendered

_TOKENS: Final = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|//[^\n]*|\s+|[\w$]+|.""")
#: How a line ends that is no statement yet, or is one that the next line can follow.
_ENDS: Final = (*";{},([?:=", "&&", "||", "=>")


def tokens(script: str) -> list[str]:
    found = (token[0] for token in _TOKENS.finditer(script))
    return [token for token in found if not token.isspace() and not token.startswith("//")]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("  const a = 'b  c', d = \"e // f\";  // why\n", "let a='b  c',d=\"e // f\";\n"),
        ("function f() {\n  return -1;\n}\nf();", "function f(){return-1;}f();\n"),
        ("a + +b; a - -b; a++ + b; a +b;", "a+ +b;a- -b;a++ +b;a+b;\n"),
        ("if (a) b();\n  else return [c in $d];", "if(a)b();else return[c in $d];\n"),
        ("a('it\\'s // no comment');\n// one\n\n  // two\nb();\n", "a('it\\'s // no comment');b();\n"),
        ("let é = 1, a = é in b;", "let é=1,a=é in b;\n"),
        ("a.const = 'const b'; for (const c in constant) d();", "a.const='const b';for(let c in constant)d();\n"),
        ("", "\n"),
    ],
)
def test_what_remains_of_a_script(script: str, expected: str) -> None:
    assert compact(script) == expected
    assert compact(expected) == expected


def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """All of CloudFront's scripts, before they are compacted."""
    with monkeypatch.context() as patch:
        patch.setitem(templates._ENVIRONMENT.filters, "compact", str)  # noqa: SLF001 - to see both texts
        for variant in VARIANTS:
            config = Config(variant=variant, layout="chunks", search="title")
            for each in (config, AWKWARD.model_copy(update={"variant": variant, "layout": "chunks"})):
                yield from (text for name, text in rendered(each).items() if name.endswith(".js"))


def test_no_script_loses_a_token_or_needs_the_end_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [*scripts(monkeypatch)]
    assert len(found) == 12
    for script in found:
        assert tokens(compact(script)) == ["let" if word == "const" else word for word in tokens(script)]
        lines = [line for line in map(str.strip, script.splitlines()) if line and not line.startswith("//")]
        for line, following in zip(lines, [*lines[1:], "}"], strict=True):
            assert line.endswith(_ENDS) or following[0] in "?:.}&|+", line
            assert not re.search(r"""`|[=(,]\s*/[^/]*(?:['"]|//)""", line), f"{line} is not understood"
