"""What is tested is what ships: no test replaces a part of the program, except where this list says why."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support import structure

#: Why a file replaces something of ours, by file and what it replaces. Never more than twenty: pass a value, count from
#: outside, or break what lies below, a file or a socket.
ALLOWED: Final[Mapping[tuple[str, str], str]] = {
    ("tests/bench/record.py", "protocol.Applier"): "a publish of what nobody built, as far as the record needs it",
    ("tests/builder/test_prices.py", "prices.MOST_BYTES"): "a document of that size takes 16,000 markets",
    ("tests/publish/explorer/stand_ins.py", "place.…"): "two actors share one process: its clock, threads and disk",
    ("tests/publish/explorer/test_variants.py", "place.…"): "breaks a rule on purpose: the explorer must notice",
    ("tests/publish/faults/conftest.py", "run_lock._RETRY_S"): "each of a thousand takedowns would wait half a second",
    ("tests/publish/test_takedown.py", "filesystem.sync"): "`syncfs` cannot be seen from outside",
    ("tests/publish/test_damaged_record.py", "Lease.read"): "a bug strikes while a takedown reads the record",
    ("tests/publish/test_run.py", "apply._LARGE"): "a file of that size takes 30,000 fills",
    ("tests/support/limits.py", "pages.LIMITS"): "campaigns publish thousands of times, most of all first pages",
    ("tests/tree/test_borders.py", "borders.…"): "lists whose length changes the bounds have 23,000 items",
    ("tests/support/sites/publishing.py", "copies.FILL_S"): "each of a hundred withdrawals would wait a minute",
    ("tests/support/stores/records.py", "module.…"): "records of small sites in shards, through every command",
}
MOST: Final = 20
OURS: Final = ("generator", "public_markets_client", "tests")
#: `setattr(what, "name"`, `patch("of.what")`, `patch.object(what, "name"`, and `what.name = `; not `self.name = `.
_REPLACEMENT: Final = re.compile(
    r"""\b(?:setattr|patch|object)\(\s*(?P<target>"[\w.]+"|[\w.]+)(?:,\s*(?:"(?P<name>\w+)")?)?"""
    r"""|^\s*(?P<owner>(?!self\b)\w+)\.(?P<attribute>\w+) = """,
    re.MULTILINE,
)
_IMPORTED: Final = re.compile(r"^\s*(?:from ([\w.]+) )?import (\([^)]*\)|[^\n]*)", re.MULTILINE)


def replacements(text: str) -> Iterator[str]:
    """What of ours a file replaces, as it says so: all but strings and imported names that tell that it is not."""
    imported = {
        name.split()[-1].partition(".")[0]: f"{module}.{name}" if module else name
        for module, names in _IMPORTED.findall(text)
        for name in re.findall(r"[\w.]+(?: as \w+)?", names)
    }
    for found in _REPLACEMENT.finditer(text):
        target = found["target"] or found["owner"]
        first = target.strip('"').partition(".")[0]
        known = first if target.startswith('"') else imported.get(first, "" if found["owner"] else OURS[0])
        if known.partition(".")[0] in OURS:
            name = found["name"] or found["attribute"] or "…"
            yield target.strip('"') if target.startswith('"') else f"{target}.{name}"


def found() -> set[tuple[str, str]]:
    return {
        (module.path.as_posix(), replaced)
        for module in structure.modules("tests")
        if module.path.name != Path(__file__).name
        for replaced in replacements(module.text)
    }


def test_tests_replace_nothing_of_ours_but_what_is_listed() -> None:
    assert found() == {*ALLOWED}
    assert len(ALLOWED) <= MOST
    assert all(ALLOWED.values())
