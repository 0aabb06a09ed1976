"""The router core, run on one table of requests in every JavaScript engine at hand."""

from pathlib import Path
from typing import Final

import pytest

from generator import cursor, edge, keys, pages
from generator.contract import LIMIT_MAX
from generator.config import Config
from tests.edges import mismatch, requests
from tests.engines import ENGINES, in_quickjs

CORE: Final = edge.router(Config())
CASES: Final = 570


@pytest.mark.parametrize("engine", ENGINES)
def test_every_case_of_the_table(engine: str, demo_output: Path, tmp_path: Path) -> None:
    cases = requests(demo_output)
    results = ENGINES[engine](CORE, [(case.method, case.path, case.query) for case in cases], tmp_path)
    assert len(results) == len(cases) >= CASES
    wrong = [found for case, result in zip(cases, results, strict=True) if (found := mismatch(case, result))]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}", *wrong[:10]])
