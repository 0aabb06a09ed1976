"""docs/it-says.md has exactly one entry for every message that it promises, in the order of its words."""

import re
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.commands import run
from tests.support.messages import messages, plain, strings
from tests.support.readers.pages import PAGES
from tests.support.sites.builds import all_commands

PAGE: Final = PAGES["docs/it-says.md"]
#: A code span; two backticks where the text has one.
_SPAN: Final = re.compile(r"`` (.+?) ``|`([^`]+)`")
#: Sentences in the form of messages that refuse nothing and warn of nothing, and ends of others.
RESULTS: Final = {
    "browsers keep copies until … at most", "publish.target is not set, so …nothing else was touched",
    "a CDN in front, if there is one, may keep them for up to a year", "more … not shown: add words",
    "all relations and columns found", "can be read; nothing is published there yet",
    "can be written, and honours conditional puts", "detail_version: markets has no such column",
    "detail_version: … of … have one", "dry run, nothing was changed", "exists already; delete it to create a new one",
    "nothing is left of the blocked markets", "is not on hold", "the record's state is whole",
    "released, builds can be made again", "released, builds can be published again", "text/html; charset",
    "make ids unique; a join", "text/javascript; charset", "text/plain; charset", "this replaces an earlier hold",
}  # fmt: skip
#: What the page has in the words of the database's driver and of the system.
FOREIGN: Final = (
    "config.yaml: no such file or directory; name a file with --config", "connection failed", "failed to resolve host"
)  # fmt: skip
#: A command in a message.
COMMAND: Final = re.compile(r"`public-markets (\w[^`…]*)`")
#: Where only `check` speaks.
CHECKS: Final = ("generator/cli/check.py", "generator/builder/preflight.py", "generator/publish/preflight.py")
#: What begins so is about a cluster, wherever it is said.
CLUSTER: Final = (
    "cluster", "is not set; set it in the environment of every worker",
    "names another server or database here than the coordinator",
)  # fmt: skip


@cache
def entries() -> list[list[str]]:
    """The beginnings in every row of the page."""
    rows = re.findall(r"^\| (`.+?) \| .*\| .*\|$", PAGE, re.MULTILINE)
    return [[plain(double or single) for double, single in _SPAN.findall(row)] for row in rows]


def entries_of(text: str) -> set[int]:
    """The rows with the longest beginning that fits the text."""
    fitting = [(len(start), row) for row, starts in enumerate(entries()) for start in starts if text.startswith(start)]
    longest = max(fitting, default=(0, 0))[0]
    return {row for length, row in fitting if length == longest}


def test_every_message_that_the_page_promises_has_exactly_one_entry() -> None:
    texts = {text: message.place for message in messages() if re.search(r"\w{3}", text := plain(message.text))}
    texts = {text: place for text, place in texts.items() if not text.startswith((*RESULTS, *CLUSTER))}
    assert len(texts) > 230
    found = {text: len(entries_of(text)) for text in texts}
    assert {text: texts[text] for text, count in found.items() if count != 1} == {}, "write it into docs/it-says.md"


def test_every_command_that_a_message_names_is_understood() -> None:
    named = {words for message in messages() for words in COMMAND.findall(plain(message.text))}
    assert len(named) > 8
    for words in named:
        name, *arguments = words.split()
        all_commands()[name].make_context(name, arguments, resilient_parsing=True)


def test_check_and_build_never_send_each_other_in_a_circle() -> None:
    by_check = [message for message in messages() if message.place in CHECKS]
    assert [message.text for message in by_check if re.search("`(public-markets )?check", message.text)] == [
        "fix …, then run `check` again"
    ]
    sent_back = [message.text for message in by_check if re.search("`(public-markets )?(re)?build", message.text)]
    assert all("clock" in text or " --full" in text for text in sent_back), sent_back


def test_the_messages_of_the_first_hour_are_on_the_page(tmp_path: Path) -> None:
    unset = run("check", cwd=tmp_path).stderr
    (tmp_path / "config.yaml").touch()
    refused, unknown = (
        run("check", cwd=tmp_path, PUBLIC_MARKETS_SOURCE__URL=f"postgresql://reader:secret@{host}/site").stdout
        for host in ("127.0.0.1:1", "nowhere.invalid")
    )
    for said, words in zip((unset, refused, unknown), FOREIGN, strict=True):
        assert words in said
        assert len(entries_of(words)) == 1


def test_every_entry_is_in_the_source() -> None:
    stale = [start for row in entries() for start in row if not any(text.startswith(start) for text in strings())]
    assert {*stale} == {*FOREIGN}


def test_no_result_is_left_that_the_source_lost() -> None:
    assert [result for result in RESULTS if not any(text.startswith(result) for text in strings())] == []


def test_entries_are_in_the_order_of_their_words() -> None:
    for section in PAGE.split("\n## ")[1:]:
        rows = re.findall(r"^\| (`.+?) \| ", section, re.MULTILINE)
        firsts = [plain("".join(_SPAN.findall(row)[0])).casefold() for row in rows]
        assert firsts == sorted(firsts)
        assert len(firsts) > 2
