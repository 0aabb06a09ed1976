"""The gzip file in segments: others read it, and segments fit together."""

import gzip
import shutil
import subprocess
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.downloads import segments
from tests.downloads import states
from tests.downloads.states import IDS, State
from tests.support.campaigns import rounds

#: Reads a gzip file from the standard input by the interface of browsers.
_BROWSER = """
const chunks = []; for await (const chunk of process.stdin) chunks.push(chunk);
const stream = new Blob(chunks).stream().pipeThrough(new DecompressionStream("gzip"));
process.stdout.write(Buffer.from(await new Response(stream).arrayBuffer()));
"""
_SEVERAL_GROUPS = states.state({market_id: [("prob", "0.5")] for market_id in IDS})


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.states)
def test_the_file_is_one_member_of_gzip_with_all_lines(state: State) -> None:
    made = states.make(state)
    reading = zlib.decompressobj(31)
    assert reading.decompress(made.body) == states.text(state)
    assert (reading.eof, reading.unused_data) == (True, b"")
    assert gzip.decompress(made.body) == states.text(state)


@pytest.mark.parametrize(
    "command", [["gzip", "-dc"], ["node", "--input-type=module", "-e", _BROWSER]], ids=["gzip", "DecompressionStream"]
)
@pytest.mark.parametrize("state", [_SEVERAL_GROUPS, {}], ids=["groups", "empty"])
def test_other_programs_read_it(command: list[str], state: State) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run(command, input=states.make(state).body, capture_output=True, check=True)
    assert done.stdout == states.text(state)


def test_nothing_in_it_depends_on_when_or_where_it_was_made() -> None:
    empty = states.make({})
    assert empty.body.hex() == "1f8b08000000000000ff" + "0300" + "00" * 8
    assert (empty.written.size, empty.written.count, empty.written.segments) == (20, 0, ())
    assert states.make(_SEVERAL_GROUPS).body[:10].hex() == "1f8b08000000000000ff"


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(st.sets(st.sampled_from(IDS)).map(sorted), st.sampled_from(IDS))
def test_a_market_more_or_less_changes_one_group_or_two(ids: list[str], one: str) -> None:
    other = sorted({*ids} ^ {one})
    before, after = ({tuple(group) for group in segments.groups(some)} for some in (ids, other))
    assert len(before ^ after) <= 3
    assert [market_id for group in segments.groups(ids) for market_id in group] == ids


def test_a_group_is_bounded_even_where_no_id_begins_one() -> None:
    ids = [f"{number:036}" for number in range(40_000)]
    ordinary = [one for one in ids if zlib.crc32(one.encode()) % segments.GROUP_SIZE]
    sizes = [len(group) for group in segments.groups(ordinary)]
    assert len(ordinary) > 10 * segments.MOST_LINES
    assert max(sizes) == segments.MOST_LINES


@pytest.mark.parametrize("ids", [[IDS[1], IDS[0]], [IDS[0], IDS[0]]])
def test_ids_must_ascend(ids: list[str]) -> None:
    with pytest.raises(ValueError, match="ascend"):
        [*segments.groups(ids)]


@pytest.mark.campaign
@settings(max_examples=rounds(12, 400))
@given(states.states, st.integers(1, 400))
def test_lines_come_from_pieces_of_any_size(state: State, size: int) -> None:
    body = states.make(state).body
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert [*segments.lines(pieces)] == [*state.values()]


def test_a_long_text_in_few_bytes_is_read_piece_by_piece() -> None:
    text = (b"x" * 99 + b"\n") * 20_000
    assert sum(1 for line in segments.lines([gzip.compress(text)]) if line == b"x" * 99) == 20_000


def test_a_line_longer_than_any_is_refused_before_the_rest_is_read() -> None:
    body = gzip.compress(b"x" * (40 << 20), compresslevel=1)
    pieces = iter([body[start : start + 1_000] for start in range(0, len(body), 1_000)])
    with pytest.raises(ValueError, match="a line has more than 16,777,216 bytes"):
        [*segments.lines(pieces)]
    assert len([*pieces]) > len(body) / 2_000
    longest = [b"x" * segments.LONGEST_LINE, b"y"]
    assert [*segments.lines([gzip.compress(b"\n".join([*longest, b""]), 1)])] == longest


def test_what_follows_the_end_is_not_read() -> None:
    pieces = iter([gzip.compress(b"x\n"), *[b"y"] * 1_000])
    with pytest.raises(ValueError, match="follows"):
        [*segments.lines(pieces)]
    assert len([*pieces]) == 999


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body[:-1],
        lambda body: body + b"x",
        lambda body: body[:-8] + bytes(4) + body[-4:],
        lambda body: body[:20] + b"\xff" + body[21:],
        lambda body: gzip.compress(body[:3]),
    ],
    ids=["cut", "longer", "sum", "content", "line"],
)
def test_a_damaged_file_is_no_file(damage: Callable[[bytes], bytes]) -> None:
    body = damage(states.make(_SEVERAL_GROUPS).body)
    for pieces in ([body], [body[:30], body[30:]]):
        with pytest.raises(ValueError, match=r"gzip|line"):
            [*segments.lines(pieces)]
