"""The routes of questions, on every edge: rows of the one table, beside all those of a site without questions."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION, Variant
from generator.config.questions import Questions
from generator.config.settings import Config, Publish
from generator.edge import router
from generator.tree.layouts import LAYOUTS
from tests.edge.test_table import BUILDS, wanted
from tests.support.campaigns import full_tier, sample
from tests.support.edges.cases import Case, mismatch, mismatches, on_the_wire, requests, searches
from tests.support.edges.cloudflare import UNKNOWN_METHODS, as_handed_over, node
from tests.support.edges.cloudfront import AWKWARD, PLAIN, distribution, rendered
from tests.support.edges.edge_sites import CACHED, edge_site
from tests.support.edges.engines import ENGINES, NOWHERE, Request, in_quickjs
from tests.support.edges.questions import with_questions
from tests.support.edges.router_lint import findings
from tests.support.edges.serving import OWN_PAGES
from tests.support.sites.builds import VARIANTS, Outputs, make_config
from tests.support.stores.s3.server import S3Server

ON: Final = Questions(enabled=True)
#: Rows about questions, by variant.
ROWS: Final[Mapping[Variant, int]] = {"core": 100, "extended": 114}
#: Rules that only sites with questions have, by layout and variant, and what each is changed to.
CHANGED_RULES: Final[Mapping[tuple[str, Variant], Mapping[str, str]]] = {
    ("pages", "core"): {
        "const word = path.slice(API.length + 7)": "const word = path.slice(API.length)",
        "of = [\"questions\"].indexOf(word) === -1 ? '' : word + '/',": "of = '',",
        "if (path + '/' === ROOT)": "if (path === ROOT)",
        "path.indexOf(ROOT) === 0": "path.indexOf(API) === 0",
        "return routeList(query, digest, of)": "return routeList(query, digest, '')",
        "? null : of + status": "? null : status",
        'FOLDER + "detail/"': "'v1/public/markets/' + \"detail/\"",
        "resource.slice(0, -2)": "resource.slice(0, -1)",
        'if (kind === "detail") return miss(fixed(404));': "",
        'return {"open":"popular","all":"popular"}[': 'return {"open":"popular"}[',
        '|| "ended"': '|| "popular"',
        '|| "must be a UUID"': "",
        "fixed(404).headers": "fixed(405).headers",
        "parts.length === 2 ?": "parts.length !== 2 ?",
        '"dumps/questions/*.ndjson.gz",': "",
    },
    ("pages", "extended"): {
        "'q' in given && of === ''": "'q' in given",
        "if ('q' in given && !isSearch) refused.push('q.questions');": "",
        'FOLDER + "slug/"': "'v1/public/markets/' + \"slug/\"",
        'if (kind === "slug") return miss(fixed(404));': "",
    },
    ("chunks", "extended"): {
        "return folderOf(list) +": "return LISTS + '/' + list +",
    },
}  # fmt: skip


def config(variant: str, layout: str = "pages", **others: object) -> Config:
    return Config.model_validate({"variant": variant, "layout": layout, "questions": ON, **others})


def sent(cases: list[Case]) -> list[Request]:
    return [(case.method, case.path, case.query) for case in cases]


def is_about_questions(case: Case) -> bool:
    return "question" in f"{case.path}{case.key}"


# ── the router ────────────────────────────────────────────────────────────────────────────────────────────────────────

SHORT: Final = (*product(["quickjs"], LAYOUTS, VARIANTS), ("njs", "chunks", "extended"))


@pytest.mark.parametrize(
    ("engine", "layout", "variant"),
    full_tier((*SHORT, ("njs", "pages", "core"), ("node", "chunks", "core")), short=SHORT),
)
def test_the_router_answers_every_row_of_a_site_with_questions(
    engine: str, layout: str, variant: Variant, outputs: Outputs, tmp_path: Path
) -> None:
    output = with_questions(outputs(variant, layout), tmp_path)
    cases = requests(output)
    assert sum(map(is_about_questions, cases)) >= ROWS[variant]
    results = ENGINES[engine](router.render(config(variant, layout)), sent(cases), tmp_path, output)
    wrong = [found for case, result in zip(cases, results, strict=True) if (found := mismatch(case, result))]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("layout", "variant"), CHANGED_RULES)
def test_the_table_notices_every_changed_rule(layout: str, variant: Variant, outputs: Outputs, tmp_path: Path) -> None:
    output, unnoticed = with_questions(outputs(variant, layout), tmp_path), list[str]()
    core, searched = router.render(config(variant, layout)), {*searches(output)}
    cases = [case for case in requests(output) if case not in searched]
    for rule, changed in sample(CHANGED_RULES[layout, variant].items(), 8):
        assert core.count(rule) == 1, rule
        # An engine that gives up on a case is a failure of the harness, too.
        with suppress(RuntimeError):
            results = in_quickjs(core.replace(rule, changed), sent(cases), tmp_path, output)
            if not any(mismatch(case, result) for case, result in zip(cases, results, strict=True)):
                unnoticed.append(rule)
    assert not unnoticed


@pytest.mark.parametrize(("layout", "variant"), [*product(LAYOUTS, VARIANTS)])
def test_a_site_without_questions_answers_their_paths_like_any_unknown_one(
    layout: str, variant: Variant, outputs: Outputs, tmp_path: Path
) -> None:
    output = with_questions(outputs(variant, layout), tmp_path)
    asked = [request for request in sent(requests(output)) if "/questions" in request[1] and request[0] == "GET"]
    core = router.render(Config.model_validate({"variant": variant, "layout": layout}))
    unknown = [(method, path.replace("/questions", "/unknown"), query) for method, path, query in asked]
    results = in_quickjs(core, asked, NOWHERE)
    assert len(asked) > 80
    assert results == in_quickjs(core, unknown, NOWHERE)
    assert "question" not in core


@pytest.mark.parametrize(("layout", "variant"), [*product(LAYOUTS, VARIANTS)])
def test_without_lists_only_the_path_of_the_list_is_unknown(
    layout: str, variant: Variant, outputs: Outputs, tmp_path: Path
) -> None:
    output = with_questions(outputs(variant, layout), tmp_path)
    asked, path = sent(requests(output)), f"/{keys.QUESTIONS}"
    some = router.render(config(variant, layout, questions=Questions(enabled=True, lists=False)))
    found, usual = (
        in_quickjs(core, asked, tmp_path, output) for core in (some, router.render(config(variant, layout)))
    )
    for request, one, other in zip(asked, found, usual, strict=True):
        if request[0] in ("GET", "HEAD") and request[1] == path:
            assert (one["status"], one["body"]) == (404, '{"error":"not found"}'), request
        else:
            assert one == other, request


# ── edges ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("edge", "build"), [*product((*CACHED, "serve", "worker"), BUILDS)])
def test_every_edge_answers_every_row_of_a_site_with_questions(
    edge: str, build: str, outputs: Outputs, tmp_path: Path
) -> None:
    variant, layout = build.split("-")
    settings = {**BUILDS[build], "layout": layout, "questions__enabled": "true"}
    output = with_questions(outputs(variant, layout), tmp_path)
    cases = [case for case in on_the_wire(output) if edge != "serve" or (case.method, case.path) not in OWN_PAGES]
    if edge == "worker":
        known = [case for case in cases if case.method not in UNKNOWN_METHODS]
        cases = as_handed_over(known, router.render(make_config(tmp_path, **settings)), tmp_path, output)
    assert sum(map(is_about_questions, cases)) >= ROWS[cases[0].variant] - 10
    with edge_site(edge, **settings) as site:
        shutil.copytree(output / API_VERSION, site.output / API_VERSION, dirs_exist_ok=True)
        made_of = (output / keys.QUESTION_LISTS).rglob("*.json")
        site.upload(sorted(wanted(cases, output) | {path.relative_to(output).as_posix() for path in made_of}))
        wrong = mismatches(cases, (site.client.send(case.method, case.target) for case in cases), output)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])


@pytest.fixture
def store() -> Iterator[S3Server]:
    node("@aws-sdk/client-s3")
    with S3Server() as server:
        yield server


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("publish", [PLAIN.publish, AWKWARD.publish], ids=["plain", "awkward"])
def test_cloudfront_rewrites_every_row(variant: Variant, publish: Publish, outputs: Outputs, tmp_path: Path) -> None:
    output = with_questions(outputs(variant), tmp_path)
    cases = requests(output, can_search=False)
    edge = distribution(config(variant, publish=publish), output, tmp_path)
    wrong = mismatches(cases, edge.answers(cases, "njs", "raw"), output)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_cloudfront_cuts_pages_of_both_resources(
    variant: Variant, store: S3Server, outputs: Outputs, tmp_path: Path
) -> None:
    output = with_questions(outputs(variant, "chunks"), tmp_path)
    cases = requests(output)
    edge = distribution(config(variant, "chunks"), output, tmp_path, store)
    wrong = mismatches(cases, edge.answers(cases, "njs", "raw"), output)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])


@pytest.mark.parametrize(("layout", "variant", "lists"), [*product(LAYOUTS, VARIANTS, (True, False))])
def test_cloudfronts_function_fits_with_everything_and_a_path_of_thirty_characters(
    layout: str,
    variant: str,
    lists: bool,  # noqa: FBT001
) -> None:
    everything = config(
        variant,
        layout,
        base_url=f"https://api.example.com/{'a' * 29}",
        dumps={"parquet": True, "fills": True},
        publish={"target": "s3://bucket/prefix"},
        questions=Questions(enabled=True, lists=lists),
    )
    files = rendered(everything)
    assert len(files["function.js"].encode()) <= 10 * 1024
    assert len(files["template.yaml"].encode()) <= 51_200 - 1_000
    assert findings(files["function.js"].partition("let crypto=")[0]) == []


def test_the_function_that_cuts_pages_may_read_lists_of_questions() -> None:
    folder = f"/{keys.QUESTION_LISTS}/*"
    assert folder in rendered(config("core", "chunks"))["template.yaml"]
    assert folder not in rendered(PLAIN.model_copy(update={"layout": "chunks"}))["template.yaml"]
