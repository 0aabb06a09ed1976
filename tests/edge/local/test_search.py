"""Searches by the local server, in this process: what is no search, and an index that is missing or damaged."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import responses
from tests.support.edges.in_process import Local, render
from tests.support.edges.servers import Answer
from tests.support.edges.serving import MARKETS
from tests.support.readers import lists, search
from tests.support.readers.search import Market
from tests.support.sites.builds import NO_LIMITS, NOW, make_config

SITE: Final = [Market((f"Will the élan of {number} last?",), rank=number) for number in range(30)]
#: Kinds of damage that are no content: nothing is there, or a link to itself.
LOST, LOOP = b"lost", b"loop"
QUERY: Final = "q=%C3%A9lan+the&status=all&limit=5"


class Searched:
    """The application before a folder, and what it logged besides requests."""

    def __init__(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        self.output = folder / "output"
        self._folder = folder
        self._logged = caplog
        lists.write(self.output / keys.BUILD, contract.encode({"asOf": NOW}))

    def start(self, **settings: str) -> None:
        config = make_config(self._folder, variant="extended", **NO_LIMITS, **settings)
        render(config)
        self._local = Local(config)

    def hold(self, objects: Mapping[str, str]) -> None:
        for key, body in objects.items():
            lists.write(self.output / key, body.encode())

    def ask(self, query: str) -> Answer:
        return self._local.ask(f"{MARKETS}?{query}")

    def errors(self) -> list[logging.LogRecord]:
        """The errors that were logged since the last look."""
        found = [record for record in self._logged.records if record.levelno >= logging.ERROR]
        self._logged.clear()
        return found

    def refusal(self, query: str) -> tuple[str, ...]:
        answer = self.ask(query)
        wanted = responses.error_headers(400, Config()) | responses.COMMON
        assert (answer.status, answer.headers.items() >= wanted.items()) == (400, True), (query[:50], answer)
        assert self.errors() == []
        return tuple(detail["message"] for detail in json.loads(answer.body)["details"])


@pytest.fixture
def local(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Searched:
    return Searched(tmp_path, caplog)


def test_without_an_index_there_is_no_search_whatever_the_setting_says(local: Searched) -> None:
    local.start(search="off")
    assert local.refusal("q=will") == (contract.parameter_errors("extended")["q"],)
    local.start(search="title")
    assert local.refusal("q=will") == (contract.SEARCH_ERRORS["q.absent"],)
    assert local.refusal("q=%C3%A9lan") == (contract.SEARCH_ERRORS["q.absent"],)
    local.hold(search.objects(SITE))
    assert local.ask("q=will").status == 200


def test_an_index_that_is_damaged_is_an_error_that_names_the_object(local: Searched) -> None:
    local.start(search="title", layout="chunks")
    objects = search.objects(SITE)
    local.hold(objects)
    for key in search.InQuickjs(search.core()).walk(objects, QUERY)[0]["read"]:
        path = local.output / key
        for damage in (b"", b"<Error/>", b'{"\xff":1}', b"null", LOST, LOOP):
            path.unlink()
            harm(path, damage)
            answer = local.ask(QUERY)
            is_absent = damage == LOST and key == keys.head(keys.SEARCH)
            assert answer.status == (400 if is_absent else 503), (key, damage)
            errors = [(key in error.getMessage(), error.exc_info) for error in local.errors()]
            assert errors == ([] if is_absent else [(True, None)])
            path.unlink(missing_ok=True)
            lists.write(path, objects[key].encode())
    assert local.ask(QUERY).status == 200


def harm(path: Path, damage: bytes) -> None:
    if damage == LOOP:
        path.symlink_to(path)
    elif damage != LOST:
        path.write_bytes(damage)
