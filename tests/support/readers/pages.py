"""The pages for people: README, CONTRIBUTING and docs/, and the parts that tests read: blocks, commands, headings."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.support.project import ROOT

PROGRAM: Final = "public-markets"
PAGES: Final[dict[str, str]] = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").rglob("*.md"))]
}


def blocks(text: str) -> Iterator[str]:
    """The fenced blocks of a page, and its indented ones, within numbered steps too."""
    fence = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    yield from fence.findall(text)
    yield from re.findall(r"(?:^|\n)\n((?: {4,}\S.*(?:\n|$))+)", fence.sub("", text))


def scripts(text: str) -> Iterator[str]:
    """Every command line of the blocks, joined where a backslash ends a line."""
    for block in blocks(text):
        yield from block.replace("\\\n", " ").splitlines()


def spans(text: str) -> list[str]:
    """The code spans outside the blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def prose(text: str) -> str:
    """The page without blocks and code spans."""
    return re.sub(r"`[^`\n]+`", "", re.sub(r"^```.*?^```$|^ {4,}[^\n]*$", "", text, flags=re.DOTALL | re.MULTILINE))


def words_after_program(line: str) -> list[str] | None:
    """The words that follow the program's name, in a line that runs it."""
    found = re.search(rf"(?:^\s*|\bexec +|^ExecStart=)(?:\S*/)?{PROGRAM} +(.*)$", line)
    return shlex.split(found[1], comments=True) if found else None


@cache
def shown_commands() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Every call of the program that any page shows in a block or in backticks, with its page."""
    return tuple(
        (page, tuple(words))
        for page, text in PAGES.items()
        for line in [*scripts(text), *(span for span in spans(text) if span.startswith(f"{PROGRAM} "))]
        if (words := words_after_program(line))
    )


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows_of(text: str) -> list[list[str]]:
    """The cells of every table row of a page."""
    return [[cell.strip() for cell in line.split("|")] for line in re.findall(r"^\|(.*)\|$", text, re.MULTILINE)]


def section(page: str, heading: str) -> str:
    """What stands below a second-level heading of a page, until the next one."""
    parts = re.split(r"^## ([^\n]+)$|^(```.*?^```)$", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    found, is_inside = [], False
    for text, title, fenced in zip(parts[::3], [None, *parts[1::3]], ["", *parts[2::3]], strict=True):
        is_inside = title == heading if title else is_inside
        found += [fenced or "", text] if is_inside else []
    assert found, heading
    return "".join(found)


def typed(text: str) -> list[str]:
    """The lines of the indented blocks, which people type."""
    indented = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [line.strip() for line in scripts(indented)]


def shown_files(text: str) -> dict[str, str]:
    """The fenced blocks that begin with a file's name as a comment, by that name."""
    return {
        found[1]: block
        for block in re.findall(r"^```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        if (found := re.match(r"# (\S+\.\w+)\n", block))
    }
