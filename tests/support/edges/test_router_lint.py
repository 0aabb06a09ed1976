import pytest

from generator.config.settings import Config
from generator.edge import router
from generator.tree.layouts import LAYOUTS
from tests.support.edges.router_lint import FORBIDDEN, findings


@pytest.mark.parametrize("variant", ["core", "extended"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_core_uses_only_features_of_every_runtime(layout: str, variant: str) -> None:
    assert findings(router.render(Config.model_validate({"layout": layout, "variant": variant}))) == []


def test_features_missing_in_a_runtime_are_refused_and_other_texts_allowed() -> None:
    core = router.render(Config())
    for name, (_, code) in FORBIDDEN.items():
        assert any(found.endswith(f": {name}") for found in findings(f"{core}\n{code}\n")), code
    for code in ("// for (const x of y) `", "const a = 'import x ... ?? /a/';", "a / b / c;", "a ? .5 : 1;"):
        assert findings(code) == []
