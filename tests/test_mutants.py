"""The faults that `tests.mutants` puts into the program are programs."""

import ast

from tests import mutants

SOURCE = '''"""A module, with “characters” of several bytes."""

LEAST = 3


def chosen(found: list[int] | None, is_sorted: bool) -> list[int]:
    if not is_sorted and len(found) > LEAST:
        found.sort()
    return found[: LEAST - 1]
'''


def test_each_fault_changes_one_line_to_another_one_that_can_run() -> None:
    made = [fault.apply(SOURCE) for fault in mutants.faults("chosen.py", SOURCE)]
    lines = SOURCE.splitlines()
    for changed in made:
        ast.parse(changed)
        assert sum(now != before for now, before in zip(changed.splitlines(), lines, strict=True)) == 1
    told = "\n".join(made)
    for line in (
        "LEAST = 4",
        "if not is_sorted or len(found) > LEAST:",
        "if is_sorted and len(found) > LEAST:",
        "if not is_sorted and len(found) >= LEAST:",
        "    if True:",
        "        None",
        "return None",
        "return found[: LEAST + 1]",
    ):
        assert line in told
