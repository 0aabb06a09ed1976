"""Searches by the local server, in this process, whose index is missing or damaged."""

import logging
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from tests.support.edges.in_process import Local, render
from tests.support.edges.serving import MARKETS
from tests.support.readers import lists, search
from tests.support.readers.search import Market
from tests.support.sites.builds import NO_LIMITS, NOW, make_config

SITE: Final = [Market((f"Will the élan of {number} last?",), rank=number) for number in range(30)]
#: Kinds of damage that are no content: nothing is there, or a link to itself.
LOST, LOOP = b"lost", b"loop"
QUERY: Final = "q=%C3%A9lan+the&status=all&limit=5"


def test_an_index_that_is_damaged_is_an_error_that_names_the_object(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config(tmp_path, variant="extended", search="title", layout="chunks", **NO_LIMITS)
    render(config)
    local, objects = Local(config), search.objects(SITE)
    for key, body in {**objects, keys.BUILD: contract.encode({"asOf": NOW}).decode()}.items():
        lists.write(config.output / key, body.encode())
    for key in search.InQuickjs(search.core()).walk(objects, QUERY)[0]["read"]:
        path = config.output / key
        for damage in (b"", b"<Error/>", b'{"\xff":1}', b"null", LOST, LOOP):
            path.unlink()
            harm(path, damage)
            caplog.clear()
            answer = local.ask(f"{MARKETS}?{QUERY}")
            is_absent = damage == LOST and key == keys.head(keys.SEARCH)
            assert answer.status == (400 if is_absent else 503), (key, damage)
            logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
            errors = [(key in error.getMessage(), error.exc_info) for error in logged]
            assert errors == ([] if is_absent else [(True, None)])
            path.unlink(missing_ok=True)
            lists.write(path, objects[key].encode())
    assert local.ask(f"{MARKETS}?{QUERY}").status == 200


def harm(path: Path, damage: bytes) -> None:
    if damage == LOOP:
        path.symlink_to(path)
    elif damage != LOST:
        path.write_bytes(damage)
