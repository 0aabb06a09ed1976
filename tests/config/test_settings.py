"""The defaults, config.yaml and the schema agree."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from generator.config.loader import load
from generator.config.settings import KEYS, Config
from tests.config.folder import Folder

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "generator" / "config" / "schema.json"


def test_the_config_file_of_the_project_says_exactly_the_defaults() -> None:
    assert load(ROOT / "config.yaml", environ={}) == Config()


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
        *({"scedule": 5}, {"schedule": 0}, {"guards": 1}),
        *({"cursor": {"lifetime": "6 hours"}}, {"detail": {"history_points": 1}}),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(tree: dict[str, Any], folder: Folder) -> None:
    assert not jsonschema.Draft7Validator(schema()).is_valid(tree)
    assert len(folder.mistakes(json.dumps(tree))) == 1
