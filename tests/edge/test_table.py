"""Every edge answers the table of requests over HTTP as the router must, in both layouts and variants."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import pairwise, product
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.api.contract import API_VERSION, Variant
from generator.edge import router
from generator.search.generation import BLOCK_SIZES
from tests.support.edges.cases import Case, mismatches, on_the_wire
from tests.support.edges.cloudflare import UNKNOWN_METHODS, as_handed_over
from tests.support.edges.edge_sites import CACHED, edge_site
from tests.support.edges.serving import OWN_PAGES
from tests.support.sites.builds import OTHER_BUILDS, Outputs, make_config

#: The cases that can be sent; a few are answered by workerd itself, or by the pages that `serve` alone has.
CASES: Final[Mapping[Variant, int]] = {"core": 660, "extended": 820}
#: Of those, the ones whose path a URL object changes.
RESPELT: Final = 20
BUILDS: Final[Mapping[str, Mapping[str, str]]] = {"core-pages": {}, **OTHER_BUILDS}


def wanted(cases: Sequence[Case], output: Path) -> set[str]:
    """The keys of what is needed to answer the cases: the objects themselves, and all from which pages are cut."""
    named = {str(case.key) for case in cases if case.status == HTTPStatus.OK and case.key}
    made_of = [*(output / keys.LISTS).rglob(f"{keys.CHUNKS}/*/*.json")]
    if cases[0].can_search:  # Items are in `all/<sort>`, in its chunks or on its pages of these sizes.
        made_of += (output / keys.LISTS).glob("all/*/*/index.json")
        for size, following in pairwise([*BLOCK_SIZES, sys.maxsize]):
            pages = (output / keys.LISTS).glob(f"all/*/*/{size}-*/*.json")
            made_of += (path for path in pages if size <= int(path.stem) < following)
    return {*named, *(path.relative_to(output).as_posix() for path in made_of)}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(("edge", "build"), [*product((*CACHED, "serve", "worker"), BUILDS)])
def test_every_case_of_the_table(edge: str, build: str, outputs: Outputs, tmp_path: Path) -> None:
    variant, layout = build.split("-")
    output = outputs(variant, layout)
    cases = on_the_wire(output)
    assert len(cases) >= CASES[cases[0].variant]
    if edge == "serve":
        cases = [case for case in cases if (case.method, case.path) not in OWN_PAGES]
    if edge == "worker":
        known = [case for case in cases if case.method not in UNKNOWN_METHODS]
        core = router.render(make_config(tmp_path, **BUILDS[build]))
        cases = as_handed_over(known, core, tmp_path, output)
        assert sum(case != seen for case, seen in zip(known, cases, strict=True)) >= RESPELT
    with edge_site(edge, **{"layout": layout, **BUILDS[build]}) as site:
        shutil.copytree(output / API_VERSION, site.output / API_VERSION, dirs_exist_ok=True)
        site.upload(sorted(wanted(cases, output)))
        wrong = mismatches(cases, (site.client.send(case.method, case.target) for case in cases), output)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])
