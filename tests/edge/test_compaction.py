"""What templates become: CloudFront's lose what only people read and nothing else, and pages are escaped."""

import jinja2
import pytest

from generator.edge import templates
from generator.edge.compaction import compact, packed


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("  const a = 'b  c', d = \"e // f\";  // why\n", "let a='b  c',d=\"e // f\";\n"),
        ("function f() {\n  return -1;\n}\nf();", "function f(){return-1}f();\n"),
        ("a + +b; a - -b; a++ + b; a +b;", "a+ +b;a- -b;a++ +b;a+b;\n"),
        ("if (a) b();\n  else return [c in $d];", "if(a)b();else return[c in $d];\n"),
        ("a('it\\'s // no comment');\n// one\n\n  // two\nb();\n", "a('it\\'s // no comment');b();\n"),
        ("let é = 1, a = é in b;", "let é=1,a=é in b;\n"),
        ("a.const = 'const b'; for (const c in constant) d();", "a.const='const b';for(let c in constant)d();\n"),
        (
            "const a = 1;\nlet b = [2], c;\nconst { d } = f(() => { g(); const h = 1; });",
            "let a=1,b=[2],c,{d}=f(()=>{g();let h=1});\n",
        ),
        (
            "let a = 1;\nb();\nlet c = ';';\nif (c) { let d = 2; }\nlet e;",
            "let a=1;b();let c=';';if(c){let d=2}let e;\n",
        ),
        (
            "for (let i = 0; i < 2; i++) { let b = i; }\nlet let_ = 1; let $let = a.let;",
            "for(let i=0;i<2;i++){let b=i}let let_=1,$let=a.let;\n",
        ),
        ("let a = function () { return { b: 1 }; };\nlet c = '};let ';", "let a=function(){return{b:1}},c='};let ';\n"),
        ("", "\n"),
    ],
)
def test_what_remains_of_a_script(script: str, expected: str) -> None:
    assert compact(script) == expected
    assert compact(expected) == expected


def test_a_packed_document_is_the_same_on_fewer_lines() -> None:
    literal = "d:\n  e: |\n    five: '5'  # six\n"
    text = f"# Stays.\n#\na:\n  # Goes.\n  b: [1, 'two: 2', !Ref x]\n  c: >-\n    three\n    four\n{literal}"
    assert packed(text) == f"# Stays.\n#\na: {{b: [1, 'two: 2', !Ref 'x'], c: three four}}\n{literal}"
    assert packed(packed(text)) == packed(text)


# ── templates ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["nginx.conf.j2", "router.js.j2", "page.html", None, "inspection/page.html.j2"])
def test_templates_of_pages_are_escaped_and_nothing_else(name: str | None) -> None:
    assert templates.is_page(name) is (name == "inspection/page.html.j2")


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        templates.rendered("inspection/page.html.j2", {})
