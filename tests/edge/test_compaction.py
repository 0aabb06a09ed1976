"""What templates become: CloudFront's lose what only people read and nothing else, and pages are escaped."""

import re
from collections.abc import Iterator
from typing import Any, Final

import jinja2
import pytest
import yaml

from generator.config.settings import Config
from generator.edge import templates
from generator.edge.compaction import compact, packed
from tests.support.edges.cloudfront import AWKWARD, rendered
from tests.support.sites.builds import VARIANTS

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


def test_a_packed_document_is_the_same_on_fewer_lines() -> None:
    literal = "d:\n  e: |\n    five: '5'  # six\n"
    text = f"# Stays.\n#\na:\n  # Goes.\n  b: [1, 'two: 2', !Ref x]\n  c: >-\n    three\n    four\n{literal}"
    assert packed(text) == f"# Stays.\n#\na: {{b: [1, 'two: 2', !Ref 'x'], c: three four}}\n{literal}"
    assert packed(packed(text)) == packed(text)


def test_a_packed_stack_says_what_it_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    config = AWKWARD.model_copy(update={"variant": "extended", "layout": "chunks"})
    found = rendered(config)["template.yaml"]
    monkeypatch.setitem(templates._ENVIRONMENT.filters, "packed", str)  # noqa: SLF001 - to see both texts
    whole = rendered(config)["template.yaml"]
    assert len(found) < len(whole)
    nodes = [yaml.compose(text, yaml.SafeLoader) for text in (found, whole)]
    assert values(nodes[0]) == values(nodes[1])


def values(node: Any) -> Any:
    """Tags and texts of a document, whatever it looks like."""
    if isinstance(node, tuple | list):
        return [values(one) for one in node]
    return (node.tag, values(node.value)) if isinstance(node, yaml.Node) else node


# ── templates ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["nginx.conf.j2", "router.js.j2", "page.html", None, "inspection/page.html.j2"])
def test_templates_of_pages_are_escaped_and_nothing_else(name: str | None) -> None:
    assert templates.is_page(name) is (name == "inspection/page.html.j2")


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        templates.rendered("inspection/page.html.j2", {})


def test_scripts_are_read_as_they_stand() -> None:
    assert templates.plain("inspection/start.js").startswith("// Shared by all parts of the page")
