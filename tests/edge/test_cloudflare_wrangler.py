"""Wrangler's configuration for the Cloudflare Worker, as the settings make it and as wrangler reads it."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from generator.edge import cloudflare
from tests.support.edges.cloudflare import NODE_FOLDER, environment, node, write
from tests.support.sites.builds import VARIANTS, make_config


def configuration(folder: Path) -> Any:
    """What wrangler reads."""
    text = (folder / cloudflare.WRANGLER).read_text("utf-8")
    return json.loads(re.sub(r"^ *//.*$", "", text, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("requests", "window", "granted"),
    [
        (300, 60, (300, 60)),
        (5, 10, (5, 10)),
        (5, 1, (50, 10)),
        (100, 30, (200, 60)),
        (1000, 300, (200, 60)),
        (100, 3600, (2, 60)),
        (1, 86400, (1, 60)),
    ],
)
def test_the_binding_grants_the_rate_in_a_period_it_has(
    requests: int, window: int, granted: tuple[int, int], tmp_path: Path
) -> None:
    settings = {"rate_limit__requests": requests, "rate_limit__searches": 2 * requests, "rate_limit__window": window}
    for variant in VARIANTS:
        write(make_config(tmp_path, variant=variant, **settings), tmp_path)
        assert f'"retry-after":"{granted[1]}"' in (tmp_path / cloudflare.WORKER).read_text("utf-8")
        limits = {one["name"]: one for one in configuration(tmp_path)["ratelimits"]}
        assert limits["RATE_LIMITER"]["simple"] == {"limit": granted[0], "period": granted[1]}
        assert (len(limits) == 2) is (variant == "extended")
    of_searches = limits["SEARCH_LIMITER"]
    assert of_searches["simple"]["period"] == granted[1]
    assert 2 * granted[0] - 1 <= of_searches["simple"]["limit"] <= 2 * granted[0]
    assert of_searches["namespace_id"] != limits["RATE_LIMITER"]["namespace_id"]


@pytest.mark.parametrize(
    ("base_url", "name", "routes"),
    [
        ("http://127.0.0.1:8000", "public-markets", None),
        (
            "https://api.example.com",
            "public-markets-api-example-com",
            [{"pattern": "api.example.com", "custom_domain": True}],
        ),
        ("https://example.com/markets", "public-markets-example-com", [{"pattern": "example.com/markets/*"}]),
    ],
)
def test_the_configuration_names_what_the_settings_say(base_url: str, name: str, routes: Any, tmp_path: Path) -> None:
    settings = make_config(tmp_path, base_url=base_url, publish__target="s3://markets/pm")
    write(settings, tmp_path)
    found = configuration(tmp_path)
    assert (found["name"], found.get("routes"), found["workers_dev"]) == (name, routes, routes is None)
    assert found["r2_buckets"] == [{"binding": "BUCKET", "bucket_name": "markets"}]


@pytest.mark.campaign(short=0)
def test_wrangler_accepts_the_worker_and_its_configuration(tmp_path: Path) -> None:
    wrangler = write(make_config(tmp_path, base_url="https://api.example.com"), tmp_path)
    command = node("wrangler"), NODE_FOLDER / "node_modules" / "wrangler" / "bin" / "wrangler.js", "deploy", "--dry-run"
    done = subprocess.run(
        [*command, "--config", wrangler, "--outdir", tmp_path / "bundle"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    assert "env.BUCKET" in done.stdout
    assert "env.RATE_LIMITER" in done.stdout
