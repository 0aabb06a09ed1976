"""What CloudFront's function makes of `q`, and what the function behind it reads in the path: run in QuickJS."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import pytest
import quickjs
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import cloudfront
from generator.edge.local.js_router import provide_digest
from tests.support.campaigns import rounds
from tests.support.edges.cloudfront import check_viewer_result, rendered, viewer_event
from tests.support.readers import search
from tests.support.readers.search_texts import TEXTS

CONFIG: Final = Config(variant="extended", layout="chunks", search="title")
#: The path of a search, and the search that is read from it; without a path, the answer.
Ask: TypeAlias = Callable[[str], tuple[str | None, Any]]
_MODULES: Final = """
const exports = {}, sha256 = digest;
function require(name) {
  function createHash() {
    return { update: function (text) { return { digest: function () { return sha256(text); } }; } };
  }
  return { createHash: createHash, S3Client: function () {}, GetObjectCommand: function () {} };
}
"""


def context_of(script: str) -> quickjs.Context:
    made = quickjs.Context()
    provide_digest(made)
    made.eval(_MODULES)
    made.eval(script)
    return made


def asker(config: Config) -> Ask:
    """Both functions, one after the other, for the query of a request."""
    files, root = rendered(config), cloudfront.function_values(config)["root"]
    function, behind = context_of(files["function.js"]), context_of(files["origin-request.js"])

    def ask(query: str) -> tuple[str | None, Any]:
        event = viewer_event("GET", f"/{keys.MARKETS}", query)
        result = json.loads(function.eval(f"JSON.stringify(handler({json.dumps(event)}))"))
        check_viewer_result(event["request"], result)
        if "uri" not in result:
            return None, json.loads(result["body"])["details"]
        uri = result["uri"]
        assert uri.startswith(root)
        # Nothing to decode, to encode or to resolve, so no two paths mean the same.
        name = uri.removeprefix(root)
        assert re.fullmatch(r"v1(?:/[A-Za-z0-9~-][A-Za-z0-9.~-]*)+", name)
        return uri, json.loads(behind.eval(f"JSON.stringify(windowAt({json.dumps(name)}, 100))"))["search"]

    return ask


ASK: Final = asker(CONFIG)


def fault(ask: Ask, q: str) -> str | None:
    """What is wrong with the way of a query through both functions."""
    uri, found = ask(f"q={quote(q, safe='')}")
    words = {*search.runs(q)}
    # What is not ASCII may have no letter either, but only the index knows.
    if len(q) > contract.Q_LENGTH or (q.isascii() and not words):
        return None if uri is None and [detail["path"] for detail in found] == [["q"]] else f"{q!r} is not refused"
    if uri is None:
        return f"{q!r} is refused"
    shown = found["asked"]["q"]
    if {*search.runs(shown)} != words:
        return f"{q!r} becomes {shown!r}"
    return None if ask(f"q={quote(shown)}")[0] == uri else f"{shown!r} has another path"


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────

TABLE: Final = (
    "..", "a/../../b", "%2e%2F%25 +&?#\0\x7fx", "𠮷" * 100, "𠮷" * 101, "é" * 101, "a" + " " * 98 + "b",
    "a" + " " * 99 + "b", "~", "a~b-c", "~41", "ÀÁ Z", "[A]`{@^_", "09:/", "é-É", "\ue000\uffff\U0010ffff", "選挙 A 戦",
)  # fmt: skip


@pytest.mark.parametrize("q", TABLE)
def test_what_is_at_a_bound_reaches_the_function_behind_or_is_refused(q: str) -> None:
    assert fault(ASK, q) is None


@pytest.mark.campaign
@settings(max_examples=rounds(120, 5_000), deadline=None)
@given(TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=110) | st.text("ab%/.~-+ &=?#é", max_size=9))
def test_the_function_behind_searches_for_the_words_that_were_asked_for(q: str) -> None:
    assert fault(ASK, q) is None


@pytest.mark.parametrize(
    "query",
    [
        *("q=THE+will", "q=will+the", "q=the,%20Will!", "q=the-the-WILL", "q=%74he%2Fwill", "q=+the%0Awill+"),
        *("x=1&q=the+will&status=open", "limit=20&q=the%20will&sort=popular"),
    ],
)
def test_spellings_of_a_search_share_an_answer(query: str) -> None:
    assert ASK(query) == ASK("q=the%20will")


def test_in_pages_where_nothing_can_read_the_index_a_search_is_refused_with_the_reason() -> None:
    files = rendered(CONFIG.model_copy(update={"layout": "pages"}))
    assert "origin-request.js" not in files
    event = viewer_event("GET", f"/{keys.MARKETS}", "q=needle")
    result = json.loads(context_of(files["function.js"]).eval(f"JSON.stringify(handler({json.dumps(event)}))"))
    assert result["statusCode"] == 400
    message = "search is not offered here: there is no index, or this edge cannot read one; leave it out"
    assert json.loads(result["body"])["details"] == [{"path": ["q"], "message": message}]
