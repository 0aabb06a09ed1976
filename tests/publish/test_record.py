"""The record in the store: read back as written, refused if foreign."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import pytest
from pydantic import ValidationError

from generator.api.forms import instant
from generator.publish import record
from generator.publish.record import Published, Work, decoded
from generator.tree.manifest import Retired
from tests.support.sites.builds import manifest_of

AT: Final = "2026-01-31T11:00:00.000Z"
WORK = Work(owner="o", process="p", who="w", since=AT, deadline=AT, touched=("v1/build.json", "v1/other.json"))
RECORD = Published(
    sequence=7,
    built=manifest_of(objects={"v1/build.json": "d"}, markets={"m": ("open",)}),
    etags={"v1/build.json": '"e"'},
    work=WORK,
    due=(Retired(list="open/new", generation="p1", count=2, bytes=3, retired_at=AT),),
    are_caches_stale=True,
    probed_at="2026-01-31T12:00:00.000Z",
)


def test_it_is_read_back_as_it_was_written() -> None:
    assert decoded(RECORD.encoded()) == RECORD
    assert RECORD.encoded().endswith(b"}\n")
    assert {"sequence", "built", "etags", "work", "due", "areCachesStale", "probedAt"} < json.loads(
        RECORD.encoded()
    ).keys()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\xff", b'{"format": "one"}'])
def test_other_content_is_refused(content: bytes) -> None:
    with pytest.raises(ValidationError):
        decoded(content)


def test_a_damaged_record_is_refused() -> None:
    whole = json.loads(RECORD.encoded())
    for damaged in ({**whole, "surprise": 1}, {key: whole[key] for key in whole if key != "etags"}):
        with pytest.raises(ValidationError):
            decoded(json.dumps(damaged).encode())
    with pytest.raises(ValidationError):
        decoded(RECORD.encoded()[:-9])


def test_another_format_is_distinguished_from_damage() -> None:
    with pytest.raises(ValueError, match="format 3, this program knows 2") as caught:
        decoded(b'{"format": 3, "everything": "else"}')
    assert not isinstance(caught.value, ValidationError)


def test_an_archive_of_a_former_program_is_left_out_wherever_a_record_names_it() -> None:
    entry = {"list": "dumps/archive", "generation": "d1", "count": 1, "bytes": 1, "retiredAt": AT}
    other = {**entry, "list": "dumps"}
    root = json.loads(RECORD.encoded())
    state = {"format": 1, "retired": [entry, other]}
    root |= {"format": 1, "built": {**root["built"], **state}, "due": [other, entry]}
    root["built"]["current"] = {
        name: {"generation": "d1", "count": 1, "bytes": 1} for name in ("dumps", "dumps/archive")
    }
    root["abandoned"] = [{"until": AT, "touched": [], "generations": [entry], "due": [entry, other]}]
    found = decoded(json.dumps(root).encode())
    assert [one.list for one in (*found.built.retired, *found.due)] == ["dumps"] * 2
    assert (found.doubted_until, found.is_doubted) == (AT, True)
    assert [*found.built.current] == ["dumps"]
    assert (found.format, found.built.format, found.built.may_have_archive) == (record.FORMAT, 1, True)


def test_instants_sort_chronologically_as_text() -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 999_999, UTC)
    assert instant(moment) == "2026-01-31T12:00:00.999Z"
    assert instant(moment.astimezone(timezone(timedelta(hours=-8)))) == "2026-01-31T12:00:00.999Z"
    later = [moment + timedelta(milliseconds=number * 377) for number in range(20)]
    assert [instant(moment) for moment in later] == sorted(instant(moment) for moment in later)
