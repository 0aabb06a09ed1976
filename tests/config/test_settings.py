"""The defaults, config.yaml and the schema agree."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from generator.config.loader import load
from generator.config.settings import KEYS, Config
from tests.config.folder import Folder, value_of

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "generator" / "config" / "schema.json"


def test_the_config_file_of_the_project_says_exactly_the_defaults() -> None:
    assert load(ROOT / "config.yaml", environ={}) == Config()


def test_the_defaults_are_those_of_the_design() -> None:
    defaults = {key: value_of(Config(), key) for key in KEYS}
    assert defaults.pop("source.url").get_secret_value() == "sqlite:///demo.db"
    assert defaults == {
        "base_url": "http://127.0.0.1:8000",
        "market_url": None,
        "cluster": None,
        "source.schema": None,
        "source.audit": 0.01,
        "output": Path("output"),
        "variant": "core",
        "categories": None,
        "search": "title+description",
        "layout": "pages",
        "fills_window_step": timedelta(hours=1),
        "schedule": 60,
        "snapshot.size": 6,
        "texts.question": 2_000,
        "texts.description": 100_000,
        "detail.order_book": True,
        "detail.recent_fills": 50,
        "detail.history_points": 500,
        "cursor.lifetime": timedelta(hours=6),
        "rate_limit.requests": 300,
        "rate_limit.searches": 30,
        "rate_limit.window": timedelta(seconds=60),
        "rate_limit.trusted_proxies": [],
        "guards.max_shrink": 0.2,
        "guards.max_invalid": 0.01,
        "guards.max_jumps": 0.1,
        "guards.max_monthly_cost": 100,
        "publish.target": None,
        "publish.endpoint_url": None,
        "publish.client": "obstore",
        "publish.single_writer": False,
        "publish.lease": timedelta(minutes=5),
        "publish.cloudfront_distribution": None,
        "publish.purge_command": None,
        "publish.notify_command": None,
        "publish.cache_fill": timedelta(seconds=60),
        "dumps.ndjson": True,
        "dumps.parquet": False,
        "dumps.histories": "thinned",
        "dumps.base_url": None,
        "archive.days": 0,
        "changes.enabled": True,
        "feeds.enabled": True,
        "prices_file": True,
        "prices": None,
        "metrics": None,
    }


def test_the_config_file_of_the_project_shows_every_key_below_its_description() -> None:
    text = (ROOT / "config.yaml").read_text()
    tree = yaml.safe_load(text)
    shown = [
        key if not isinstance(value, dict) else f"{key}.{name}"
        for key, value in tree.items()
        for name in (value if isinstance(value, dict) else [key])
    ]
    assert shown == list(KEYS)
    lines = [line.strip() for line in text.splitlines()]
    for key, field in KEYS.items():
        assert f"# {field.description}" in lines, key
        assert lines[lines.index(f"# {field.description}") + 1].startswith(key.rpartition(".")[2] + ":"), key


def schema() -> dict[str, Any]:
    """The JSON Schema of `config.yaml`, in draft 7, which editors support best."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", **Config.model_json_schema()}


def test_the_schema_file_is_current() -> None:
    current = json.dumps(schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("BLESS") == "1":
        SCHEMA.write_text(current, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == current, "the settings changed: run `make bless` and commit the schema"


def test_the_config_file_of_the_project_names_the_schema_and_follows_it() -> None:
    text = (ROOT / "config.yaml").read_text()
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert ROOT / named == SCHEMA
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "tree",
    [
        {"scedule": 5},
        {"schedule": 0},
        {"cursor": {"lifetime": "6 hours"}},
        {"detail": {"history_points": 1}},
        {"guards": 1},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(tree: dict[str, Any], folder: Folder) -> None:
    assert not jsonschema.Draft7Validator(schema()).is_valid(tree)
    assert len(folder.mistakes(json.dumps(tree))) == 1


def test_the_schema_describes_every_key() -> None:
    document = schema()
    for key, field in KEYS.items():
        section, _, name = key.rpartition(".")
        properties = (
            document["$defs"][document["properties"][section]["$ref"].rpartition("/")[2]] if section else document
        )
        assert properties["properties"][name]["description"] == field.description
        assert "default" in properties["properties"][name]
