"""Copies of frozen models take nothing that their fields do not."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from generator.models import replaced
from tests.support.sites.builds import make_config


class Open(BaseModel):
    anything: Any = None


def test_a_copy_takes_values_of_its_fields_and_nothing_else(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    for name, value in {
        "layout": "chunks", "schedule": 5, "base_url": "https://api.example.com", "publish": config.publish,
        "cluster": None,
    }.items():  # fmt: skip
        assert getattr(replaced(config, **{name: value}), name) is value
    assert replaced(Open(), anything=config).anything is config
    with pytest.raises(TypeError, match="Config has no field txt"):
        replaced(config, txt="new")
    for name, wrong in {"layout": "heaps", "schedule": "5", "publish": {}}.items():
        with pytest.raises(TypeError, match=f"Config.{name} cannot be of type"):
            replaced(config, **{name: wrong})
