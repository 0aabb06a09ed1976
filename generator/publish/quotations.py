"""What an output folder quotes of markets beside what is published: it goes with a takedown."""

import itertools
import json
from collections.abc import Collection
from typing import Final

from generator.api import keys
from generator.api.forms import is_uuid
from generator.tree import files
from generator.tree.folder import Output
from generator.tree.told import Told


def delete(folder: Output, gone: Collection[str]) -> None:
    """Delete the pages that quote markets, and all of the report but its counts; the next build makes them again.

    `gone` are the markets and questions that are taken down; the report counts such markets among those left out.
    """
    for page in (*files.QUOTING, files.LAST_STATE):
        folder.discard_key(page)
    content = folder.read(files.REPORT)
    if content is not None and (counts := _counts(content, gone)) != content:
        folder.save(files.REPORT, counts)


#: What a report keeps: counts, digests, and ids of markets that are gone, or that were never public.
_COUNTS: Final = (
    "asOf", "generator", "source", "markets", "takenDown", "search", "downloads", "retainedGenerations", "cost",
)  # fmt: skip
_COUNTS_OF_RUN: Final = (
    "written", "writtenBytes", "unchanged", "deleted", "stepLines", "since", "withdrawn", "withdrawnEarlier", "details",
    "seconds",
)  # fmt: skip


def _counts(report: bytes, gone: Collection[str]) -> bytes:
    """A report without what tells of single markets, or of categories that may have been theirs alone.

    Later reports take the ids of those that are gone over, and guards those of markets that were quarantined. Since
    when the others are there is not known until the next build.
    """
    try:
        content = json.loads(report)
        rows = [row for row in content["quarantined"] if row["relation"] == "markets" and is_uuid(row["key"])]
        named = [{**row, "title": "", "reason": ""} for row in rows if row["key"].lower() not in gone]
        others = sum(row["rows"] for row in content["quarantined"]) - sum(row["rows"] for row in named)
        told = Told.of(report)
        kept_told = told.without({*map(keys.bare_id, gone)}).model_dump(mode="json", by_alias=True) if told else None
        kept = {name: content[name] for name in _COUNTS} | {
            "told": kept_told,
            "takenDown": sorted({*content["takenDown"], *itertools.filterfalse(keys.is_question_reference, gone)}),
            "run": {"newLists": [], "added": [], "changed": []}
            | {name: content["run"][name] for name in _COUNTS_OF_RUN},
            "quarantined": named,
            "quarantinedUnnamed": content["quarantinedUnnamed"] + others,
            "remarks": [],
            "remarksUnnamed": len(content["remarks"]) + content.get("remarksUnnamed", 0),
        }
    except (ValueError, TypeError, KeyError):  # of another version, or damaged
        return b"{}\n"
    return json.dumps({**kept, "lists": {}}, indent=1).encode() + b"\n"
