"""Chunk names in a record that leaves out what indexes say: whatever the names, they are read as they were written."""

from collections.abc import Iterator
from typing import Final

import pytest

from generator.api import keys
from generator.publish import chunk_names, record
from generator.publish.record import Abandoned, Published
from generator.tree.manifest import Current, Retired
from tests.support.sites.builds import manifest_of
from tests.support.sites.publishing import PublishedSite, fill_parquet, hour
from tests.support.sites.rows import market_id
from tests.support.stores.records import named_shards, sharded
from tests.support.stores.s3.behaviour import Fault
from tests.support.stores.s3.wire import Request

DIGEST: Final = "0123456789abcdef0123456789abcdef"
#: A name of each kind, and some that no kind has yet.
NAMES: Final = (
    DIGEST, "1" * 32, f"{DIGEST}.ndjson.gz", f"markets/{DIGEST}.parquet",
    f"history/period=2026-02/{DIGEST}.parquet", f"fills/state=open/part=07/{DIGEST}.parquet",
    "2026-02-03", "-", "a-b", "7-", "-7", "month=2026-02", "1-2/3-4",
)  # fmt: skip


def test_names_of_every_kind_are_read_back_as_they_were_written() -> None:
    base = tuple(f"base{number}" for number in range(9))
    names = (*NAMES[:3], *base[2:5], *NAMES[3:8], *base[:2], base[8], *NAMES[8:])
    begun = Retired(
        list=keys.DUMPS, generation="d2", count=1, bytes=1, chunks=names, retired_at=hour(1), partial=True,
    )  # fmt: skip
    current = Current(generation="d1", count=1, bytes=1, chunks=base)
    built = manifest_of(complete=False, current={keys.DUMPS: current}, retired=(begun,))
    abandoned = Abandoned(until=hour(2), touched=(), generations=(begun,), due=(begun,))
    whole = Published(sequence=1, built=built, etags={}, due=(begun,), abandoned=(abandoned,))
    packed = chunk_names.packed(whole)
    assert packed.built.retired[0].chunks == (*NAMES[:3], "2-4", *NAMES[3:8], "0-1", "8-8", *NAMES[8:])
    found = chunk_names.unpacked(packed, lambda pairs, _: [base for _ in pairs], {})
    assert found == whole


@pytest.fixture
def filed(published_site: PublishedSite) -> Iterator[PublishedSite]:
    """A published site with Parquet files, and a record in shards."""
    fill_parquet(published_site)
    with sharded():
        published_site.done("rebuild", "--as-of", hour(1))
        assert named_shards(published_site.stored())
        yield published_site


def is_download(request: Request) -> bool:
    return request.operation == "PutObject" and keys.is_download(request.key.partition("/")[2])


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    "command", [("takedown", market_id(1)), ("check",), ("publish", "--verify"), ("publish",)], ids=lambda args: args[0]
)
def test_a_publish_that_was_killed_while_it_added_an_archive_file_stops_no_later_command(
    filed: PublishedSite, command: tuple[str, ...]
) -> None:
    filed.edit(2, status="resolved", resolution="NO", resolved_at="2024-01-25 00:00:00")
    filed.server.before = lambda request: Fault(403, "AccessDenied") if is_download(request) else None
    assert filed.run("rebuild", "--as-of", "2024-02-02T12:00:00Z").exit_code == 1
    filed.server.before = None
    filed.server.behaviour.clock_offset_s = 600  # its lease is over
    begun = record.decoded(filed.stored()[record.KEY]).built.retired
    assert any("period=" in name for entry in begun for name in entry.chunks)
    filed.done(*command)
    assert command[0] == "check" or filed.record().built.complete
    assert command[0] != "takedown" or filed.traces(1) == []
