"""Every edge answers as `verify` expects, in both layouts and variants."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from generator.progress import SILENT
from generator.verify.reader import SiteReader
from generator.verify.run import verify
from tests.bench import databases
from tests.support.campaigns import full_tier
from tests.support.edges.edge_sites import EDGES, edge_site
from tests.support.readers import lists
from tests.support.sites.builds import build_now, files, make_config

#: What is verified: a layout, other settings, and the edges.
SITES: Final[Mapping[str, tuple[str, dict[str, Any], tuple[str, ...]]]] = {
    "chunks, extended": ("chunks", {"variant": "extended", "feeds__enabled": "true"}, EDGES),
    "chunks, core": ("chunks", {"dumps__parquet": "true"}, EDGES),
    "pages, core": ("pages", {}, ("nginx", "serve")),
}
CASES: Final = tuple((kind, name) for kind, (_, _, edges) in SITES.items() for name in edges)
_MARKETS: Final = 60


@pytest.mark.every_limit
@pytest.mark.parametrize(
    ("kind", "name"), full_tier(CASES, short=[("chunks, extended", "nginx"), ("chunks, extended", "worker")])
)
def test_nothing_is_wrong_with_a_site_on_an_edge(demo_folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    layout, settings, _ = SITES[kind]
    databases.copy_first(demo_folder / "markets.db", _MARKETS, tmp_path / "markets.db")
    build_now(make_config(tmp_path, layout=layout, **settings))
    made = files(tmp_path / "output")
    with edge_site(name, layout, **settings) as edge:
        for key, body in made.items():
            lists.write(edge.output / key, body)
        edge.upload(made)
        said = list[str]()
        reader = SiteReader(f"http://127.0.0.1:{edge.client.port}", 1e6, said.append)
        assert verify(reader, 8, SILENT, patience_s=0).mismatches == []
    assert said == [], "no answer asked to wait"
