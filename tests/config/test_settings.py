"""The defaults, config.yaml and the schema agree."""

import json
import re
import subprocess
import sys
from functools import cache
from typing import Any, Final

import jsonschema
import pytest
import yaml

from generator.config.loader import load
from generator.config.settings import KEYS, OF_CLUSTER, Config
from tests.config.folder import Folder
from tests.support.project import ROOT

#: The rule that makes the schema.
RULE: Final = re.compile(r"^(\S+schema\.json):.*\n\t@\$\(BIN\)/python -c '(.*)' > \$@\.part$", re.MULTILINE)


#: What tells of the keys that only a cluster needs.
CLUSTER_PAGE: Final = (ROOT / "docs" / "cluster.md").read_text("utf-8")


def test_the_config_file_of_the_project_says_exactly_the_defaults() -> None:
    assert load(ROOT / "config.yaml", environ={}) == Config()


def test_the_config_file_of_the_project_and_the_page_of_the_cluster_show_every_key_below_its_description() -> None:
    text = (ROOT / "config.yaml").read_text()
    tree = yaml.safe_load(text)
    shown = [
        key if not isinstance(value, dict) else f"{key}.{name}"
        for key, value in tree.items()
        for name in (value if isinstance(value, dict) else [key])
    ]
    assert shown == [key for key in KEYS if key not in OF_CLUSTER]
    lines = [line.strip() for line in (text + CLUSTER_PAGE).splitlines()]
    for key, field in KEYS.items():
        assert f"# {field.description}" in lines, key
        assert lines[lines.index(f"# {field.description}") + 1].startswith(key.rpartition(".")[2] + ":"), key


@cache
def schema() -> tuple[str, dict[str, Any]]:
    """The file with the JSON Schema of `config.yaml`, in draft 7, which editors support best; and what is in it."""
    (rule,) = RULE.findall((ROOT / "Makefile").read_text())
    name, code = rule
    made = subprocess.run([sys.executable, "-c", code.replace("$$", "$")], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return name, json.loads(made.stdout)


def test_the_config_file_of_the_project_names_the_schema_that_make_makes_and_follows_it() -> None:
    name, made = schema()
    text = (ROOT / "config.yaml").read_text()
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={name}"
    validator = jsonschema.validators.validator_for(made)
    assert validator is jsonschema.Draft7Validator
    validator.check_schema(made)
    validator(made).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "tree",
    [
        *({"scedule": 5}, {"schedule": 0}, {"guards": 1}),
        *({"cursor": {"lifetime": "6 hours"}}, {"detail": {"history_points": 1}}),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(tree: dict[str, Any], folder: Folder) -> None:
    assert not jsonschema.Draft7Validator(schema()[1]).is_valid(tree)
    assert len(folder.mistakes(json.dumps(tree))) == 1
