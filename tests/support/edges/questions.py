"""A build with questions, as far as an edge knows them: lists with their names, a detail by its id and by its slug.

What is in the objects is made up: an edge does not look.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from generator.api import contract, keys
from generator.api.contract import Variant
from generator.tree import chunks, pages
from generator.tree.generation import ItemList
from tests.support.edges.placeholders import QUESTION, QUESTION_SLUG
from tests.support.edges.windows import made_up
from tests.support.readers import lists

#: How many rows each list has.
_LENGTHS: Final[Mapping[Variant, Mapping[str, int]]] = {
    "core": {"open/popular": 45, "all/popular": 60, "all/new": 120, "archive/ended": 3},
    "extended": {"open.politics/popular": 12},
}


def with_questions(output: Path, folder: Path) -> Path:
    """A copy of a build, in its layout and variant, that has questions, too."""
    made = folder / "with-questions"
    shutil.copytree(output, made, copy_function=os.link)
    manifest = json.loads((made / "manifest.json").read_text("utf-8"))
    variant, layout = manifest["variant"], manifest["layout"]
    lengths = {**_LENGTHS["core"], **(_LENGTHS["extended"] if variant == "extended" else {})}
    for name, count in lengths.items():
        found = ItemList(keys.OF_QUESTIONS + name, [item for item in made_up(name, count).items if len(item) < 1000])
        manifest["current"][found.name] = {"generation": _put(made, found, layout)}
    lists.write(made / "manifest.json", contract.encode(manifest))
    for key in keys.questions(QUESTION, QUESTION_SLUG if variant == "extended" else None):
        lists.write(made / key, contract.encode({"question": {"id": QUESTION}, "markets": []}))
    return made


def _put(output: Path, found: ItemList, layout: str) -> str:
    """Write the objects of a list; returns its generation."""
    if layout == chunks.LAYOUT:
        return lists.put(output, [found])[found.name]
    made = pages.PagedList(found)
    for key, body in _pages(made):
        lists.write(output / key, body)
    return made.name


def _pages(made: pages.PagedList) -> Iterator[tuple[str, bytes]]:
    for limit in pages.LIMITS:
        yield keys.first_page(made.list_name, limit), made.first(limit)
    yield from made.objects()
