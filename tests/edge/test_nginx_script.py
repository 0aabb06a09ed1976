"""What nginx's script decides without the router: the same as the router, on everything in the table."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import quickjs

from generator.api import cursors, keys
from generator.config.settings import Config
from generator.edge import deployment
from generator.edge.local.js_router import provide_digest
from generator.tree.layouts import LAYOUTS
from tests.support.edges.cases import on_the_wire
from tests.support.edges.questions import with_questions
from tests.support.sites.builds import Outputs

GENERATION: Final = "p" + "0" * 19
_RUN: Final = """
function compare(targets) {
  return JSON.stringify(targets.map(function (target) {
    const r = { method: target[0], variables: { request_uri: target[1] } };
    const found = usual(r), wanted = others().decide(r);
    if (found === null) return null;
    const link = found.query ? linkOf(found, END) : '';
    const isFirst = Boolean(wanted.list && wanted.otherwise), next = wanted.list ? others().linkIn(wanted, END) : '';
    const has = [found.key, found.list, found.isFirst || false, link];
    return { found: has, wanted: [wanted.key, wanted.list, isFirst, next] };
  }));
}
"""


def script(layout: str, name: str = "all/new", **questions: bool) -> str:
    """nginx's script as a plain one; `name` is of the list whose page ends as all pages do."""
    config = Config.model_validate({"layout": layout, "questions": questions})
    (text,) = (file.text for file in deployment.render(config) if file.name == "edge/nginx/nginx.js")
    text = re.sub(r"^(import|export) [^\n]*$", "", text, flags=re.MULTILINE)
    end = json.dumps('"nextCursor":"' + cursors.mint(name, GENERATION, 40) + '"}')
    # The digest is Python's.
    return (
        re.sub(r"^function digest\(text\) \{.*?^\}", "", text, flags=re.MULTILINE | re.DOTALL)
        + f"const END = {end};"
        + _RUN
    )


def targets(outputs: Outputs, layout: str) -> list[tuple[str, str]]:
    """The table, and pages and near misses around what is usual."""
    return [(case.method, case.target) for case in on_the_wire(outputs("core", layout))] + [*_around()]


def _around(root: str = keys.MARKETS, of: str = "") -> Iterator[tuple[str, str]]:
    market = f"/{root}/01234567-89ab-cdef-0123-456789abcdef"
    yield from (("GET", f"{market}{end}") for end in ("", "?", "?x=1", "/", "0"))
    yield "GET", f"/{root[:-1]}x?status=all&sort=new&limit=20"
    padded = f"{GENERATION}020"
    check = hashlib.sha256(f"{of}all/new/{GENERATION}/020".encode()).hexdigest()[: cursors.CHECK_LENGTH]
    yield "GET", f"/{root}?status=all&sort=new&limit=20&cursor={check}{padded}"
    yield from (("GET", target) for target in (market.upper(), f"/x{market}", f"{market}"[1:], "/", ""))
    for limit in ("1", "7", "20", "99", "100", "101", "0", "020", "999", "1000", ""):
        usual = f"/{root}?status=all&sort=new&limit={limit}"
        yield from (("GET", f"{usual}{end}") for end in ("", "&", "&limit=20", "&cursor=", "&x=1"))
        yield from ((method, usual) for method in ("HEAD", "POST", "OPTIONS", "get"))
        for position in (1, 20, 30, 77, 999_999_999):
            cursor = cursors.mint(f"{of}all/new", GENERATION, position)
            yield "GET", f"{usual}&cursor={cursor}"
            yield "GET", f"{usual}&cursor={cursor[:-1]}"
            yield "GET", f"{usual.replace('new', 'popular')}&cursor={cursor}"
        wrong = cursors.mint(f"{of}all/new", GENERATION, 20)[:30]
        yield from (("GET", f"{usual}&cursor={wrong}{end}") for end in ("0", "020", "0000000020", "2x"))


def compared(text: str, asked: Sequence[tuple[str, str]]) -> list[Any]:
    context = quickjs.Context()
    provide_digest(context)
    context.eval(text)
    found: list[Any] = json.loads(str(context.eval(f"compare({json.dumps(asked)})")))
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_usual_is_decided_as_the_router_decides_it(layout: str, outputs: Outputs) -> None:
    found = compared(script(layout), targets(outputs, layout))
    usual = [one for one in found if one is not None]
    assert len(usual) >= (60 if layout == "pages" else 8)
    assert [one for one in usual if one["found"] != one["wanted"]] == []


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_with_questions(layout: str, lists: bool, outputs: Outputs, tmp_path: Path) -> None:  # noqa: FBT001
    output = with_questions(outputs("core", layout), tmp_path)
    asked = [(case.method, case.target) for case in on_the_wire(output)]
    asked += [*_around(), *_around(keys.QUESTIONS, keys.OF_QUESTIONS)]
    found = compared(script(layout, "questions/all/new", enabled=True, lists=lists), asked)
    usual = [(target, one) for (_, target), one in zip(asked, found, strict=True) if one is not None]
    of_questions = [target for target, _ in usual if keys.QUESTIONS in target]
    assert len(of_questions) >= (30 if layout == "pages" and lists else 4)
    assert [one for one in usual if one[1]["found"] != one[1]["wanted"]] == []
