from typing import Final

import pytest

from generator.config.settings import Config
from generator.edge import router
from generator.tree.layouts import LAYOUTS
from tests.support.edges.router_lint import FORBIDDEN, findings

#: One sample at least for every rule.
REFUSED: Final = {
    "for (const x of list) {}": "for…of",
    "for (const name in object) {}": "for…in",
    "const { a } = b;": "destructuring",
    "f(...list);": "spread or rest",
    "function f(a = 1) {}": "default parameter",
    "class A {}": "class",
    "function* f() {}": "generator",
    "async function f() {}": "async",
    "a?.b;": "optional chaining",
    "a ?? b;": "nullish",
    "a ||= b;": "logical assignment",
    "a ** b;": "exponent",
    "try { a(); } catch { b(); }": "catch without a name",
    "1n;": "BigInt",
    "new Map();": "collections",
    "new URLSearchParams(query);": "URL",
    "text.replaceAll('a', 'b');": "newer methods",
    "setTimeout(f, 1);": "timers",
    "new Function('return 1')();": "code from text",
    "process.env;": "the machine",
    "import crypto from 'crypto';": "modules",
    "new Date();": "chance and time",
    "if (/^open$/.test(text)) f();": "regular expression",
    "with (a) {}": "label or with",
    "`a`;": "template literal",
    "const a = { get b() {} };": "with a getter",
}


@pytest.mark.parametrize("variant", ["core", "extended"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_core_uses_only_features_of_every_runtime(layout: str, variant: str) -> None:
    assert findings(router.render(Config.model_validate({"layout": layout, "variant": variant}))) == []


def test_features_missing_in_a_runtime_are_refused_and_other_texts_allowed() -> None:
    core = router.render(Config())
    assert {*REFUSED.values()} == {*FORBIDDEN}
    for code, name in REFUSED.items():
        assert any(found.endswith(f": {name}") for found in findings(f"{core}\n{code}\n")), code
    for code in ("// for (const x of y) `", "const a = 'import x ... ?? /a/';", "a / b / c;", "a ? .5 : 1;"):
        assert findings(code) == []
