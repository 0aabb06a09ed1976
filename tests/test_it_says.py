"""docs/it-says.md has exactly one entry for every refusal and warning in the source, in the order of its words."""

import re
from collections import Counter
from functools import cache
from typing import Final

from tests.support.messages import Message, messages, plain, sentences, strings
from tests.support.readers.pages import PAGES

PAGE: Final = PAGES["docs/it-says.md"]
#: A code span; two backticks where the text has one.
_SPAN: Final = re.compile(r"`` (.+?) ``|`([^`]+)`")
#: Sentences in the form of messages that refuse nothing and warn of nothing, and ends of others.
RESULTS: Final = {
    "browsers keep copies until … at most", "more … not shown: add words",
    "all relations and columns found", "all … of the record are whole", "can be read; nothing is published there yet",
    "can be written, and honours conditional puts", "detail_version: markets has no such column",
    "detail_version: … of … have one", "dry run, nothing was changed", "exists already; delete it to create a new one",
    "nothing is left of the blocked markets", "is not on hold",
    "released, builds can be published again", "s3://bucket/prefix or a directory; null", "text/html; charset",
    "make ids unique; a join", "text/javascript; charset", "text/plain; charset", "this replaces an earlier hold",
    "what is published as of … stays",
}  # fmt: skip
#: Calls that pass on a text made elsewhere: another error's, a list of mistakes, a library's words, parts of a finding.
#: `sentences` finds what they say. A new one belongs here only if the test finds its text there, or the page has it.
PASSED_ON: Final = """
    builder/notices.py:_kind=1  builder/preflight.py:_database=1  builder/preflight.py:_cluster=2
    builder/preflight.py:folder=1  builder/preflight.py:_room=1  builder/preparation.py:collect=1
    builder/preparation.py:_guard=1  cli/build.py:log_report=1  cli/check.py:_findings=1  cli/init.py:_written=1
    cli/logs.py:failure=1
    cli/publish.py:_tell_published=1  cli/publish.py:withdraw_hidden=1  cli/takedown.py:_take_down=1
    cli/takedown.py:_take_down_everywhere=1
    cli/takedown.py:_take_down_published=1  cli/target.py:open_target=1
    cli/verify.py:_conclude=1  cluster/worker.py:error=2
    config/env_file.py:variables=1  config/loader.py:load=2  config/loader.py:from_environment=1
    config/targets.py:checked=1  edge/cloudfront.py:origin_response_values=1  edge/cloudfront.py:_error_pages=1
    findings.py:about=1  findings.py:__iter__=1  findings.py:error=1  findings.py:warning=1  findings.py:fine=1
    findings.py:tried=1  findings.py:refused=1  markets/faults.py:_fault=1  markets/slugs.py:references=1
    publish/apply.py:_altered=1  publish/guards.py:refuse_altered=1  tree/download.py:opened=1
    tree/folder.py:locked=1  tree/manifest.py:intact=1
    publish/blocklist.py:_read=1  publish/brief_record.py:manifest_of=1  publish/chunk_names.py:of_index=1
    publish/copies.py:require_ended=1  publish/hold.py:_root=1
    publish/hold.py:refuse=1  publish/hold.py:explained=1  publish/invalidation.py:invalidate=1
    publish/lease.py:_decoded=2  publish/preflight.py:require_fresh=3  publish/preflight.py:record=3
    publish/preflight.py:_unpublished=1  publish/preflight.py:conditions=1  publish/preflight.py:_warnings=1
    publish/preflight.py:_published=1  publish/record_shards.py:read=1  publish/record_shards.py:read_shard=1
    publish/takedown.py:from_folder=2  publish/takedown.py:from_store=1  site/published.py:settings=1
    site/published.py:_found=1
    publish/store_checks.py:_refuse=1  site/documents.py:fixed=1  source/connection.py:transaction=1
    source/schema_check.py:require=1  stores/directory_errors.py:explanation=2  stores/s3_errors.py:translated=1
    stores/s3_errors.py:of_boto3=3  stores/s3_errors.py:of_obstore=1  stores/s3_errors.py:of_answer=3
    tree/blocklist.py:load=1  tree/folder.py:read_only=1  tree/manifest_file.py:decoded=2
    tree/scratch.py:scratch_of=1  verify/reader.py:_answered=3  verify/reader.py:file=1
    verify/spooled_body.py:take=1
"""


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


def is_opaque(message: Message) -> bool:
    """Whether all that the source says where the text is given is values."""
    return not re.search(r"\w{3}", plain(message.text))


def test_every_refusal_and_warning_has_exactly_one_entry() -> None:
    texts = {plain(message.text): message.place for message in messages() if not is_opaque(message)}
    texts |= {
        text: message.place
        for message in sentences()
        if not any((text := plain(message.text)).startswith(result) for result in RESULTS)
    }
    assert len(texts) > 280
    found = {text: len(entries_of(text)) for text in texts}
    assert {text: texts[text] for text, count in found.items() if count != 1} == {}, "write it into docs/it-says.md"


def test_whatever_passes_on_a_text_is_known() -> None:
    places = Counter(message.place.removeprefix("generator/") for message in messages() if is_opaque(message))
    known = dict(re.findall(r"(\S+)=(\d+)", PASSED_ON))
    assert known == {place: str(count) for place, count in places.items()}


def test_every_entry_is_in_the_source() -> None:
    stale = [start for row in entries() for start in row if not any(text.startswith(start) for text in strings())]
    assert stale == []


def test_no_result_is_left_that_the_source_lost() -> None:
    assert [result for result in RESULTS if not any(text.startswith(result) for text in strings())] == []


def test_entries_are_in_the_order_of_their_words() -> None:
    for section in PAGE.split("\n## ")[1:]:
        rows = re.findall(r"^\| (`.+?) \| ", section, re.MULTILINE)
        firsts = [plain("".join(_SPAN.findall(row)[0])).casefold() for row in rows]
        assert firsts == sorted(firsts)
        assert len(firsts) > 3
