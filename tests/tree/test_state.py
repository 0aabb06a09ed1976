"""The state of a large manifest is read as it was written, whatever it says, and takes few bytes."""

import zlib
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import keys
from generator.tree import state
from generator.tree.manifest import Current, Manifest, Retired
from tests.support.sites.builds import manifest_of
from tests.support.sites.rows import market_id

TIMES: Final = ("2026-01-31T11:00:00.000Z", "2026-01-31T12:00:00.000Z")
LISTS: Final = ("all/new", "open.sport/popular", keys.SEARCH)
DIGITS: Final = st.text("0123456789abcdef", min_size=32, max_size=32)
#: Digests and ETags, most of them as this program and S3 make them.
VALUES: Final = st.one_of(DIGITS, st.sampled_from(["0" * 32, "F" * 32, "a-2", "", "W/é"]))
IDS: Final = st.one_of(st.integers(1, 20).map(market_id), st.sampled_from(["short", "x" * 36]))
NAMES: Final = st.lists(st.one_of(DIGITS, st.sampled_from(["c1", "c2", "files/c3.gz"])), max_size=6).map(tuple)
GENERATIONS: Final = st.builds(
    Current, generation=st.sampled_from(["g1", "g2", "g3"]), count=st.integers(0, 9), bytes=st.integers(0, 2**40),
    chunks=NAMES,
)  # fmt: skip


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Manifests whose fields need not fit together."""
    ids = draw(st.lists(IDS, unique=True, max_size=8))
    some = st.sampled_from(ids) if ids else st.nothing()
    details = [keys.detail(market_id) for market_id in ids] or [keys.SNAPSHOT]
    objects = st.dictionaries(st.sampled_from([*details, keys.SNAPSHOT, keys.BUILD, keys.head(LISTS[0])]), VALUES)
    retired = [
        Retired(list=draw(st.sampled_from(LISTS)), retired_at=draw(st.sampled_from(TIMES)),
                withdrawn=draw(st.booleans()), partial=draw(st.booleans()), may_be_current=draw(st.booleans()),
                **dict(entry))
        for entry in draw(st.lists(GENERATIONS, max_size=5))
    ]  # fmt: skip
    return manifest_of(
        layout="chunks", retired=tuple(retired), objects=dict(sorted(draw(objects).items())),
        current=draw(st.dictionaries(st.sampled_from(LISTS), GENERATIONS)),
        markets={key: draw(st.sampled_from([("open",), (), ("closed", "closed.sport")])) for key in sorted(ids)},
        slugs=draw(st.dictionaries(some, st.lists(st.text(max_size=3), max_size=2).map(tuple))),
        site_keys=draw(st.dictionaries(some, st.text(max_size=3))),
        members=draw(st.dictionaries(st.sampled_from(["questions/a", "questions/b"]), st.lists(some).map(tuple))),
    )  # fmt: skip


@given(built=manifests(), etags=st.dictionaries(st.sampled_from([keys.SNAPSHOT, keys.detail(market_id(1))]), VALUES))
def test_whatever_a_manifest_says_is_read_back(built: Manifest, etags: dict[str, str]) -> None:
    body = state.encoded(built, etags)
    name = f"7-{state.digest(body)}"
    assert state.is_name(name)
    assert state.is_intact(name, body)
    root = Manifest.model_validate_json(state.header(built, name, state.retirements(built)).encoded())
    found, read = state.decoded(root, body)
    list_by_list = tuple(sorted(built.retired, key=lambda entry: entry.list))
    assert found == built.model_copy(update={"retired": list_by_list})
    assert read == etags
    again = state.encoded(found, read)
    assert state.decoded(state.header(found, name, state.retirements(found)), again) == (found, read)


@pytest.mark.parametrize(
    "body", [b"", b"{}", zlib.compress(b"[]"), zlib.compress(b"{}"), zlib.compress(b'{"ids":{}}'), zlib.compress(b"x")]
)
def test_a_state_of_another_version_cannot_be_read(body: bytes) -> None:
    root: Any = manifest_of(objects={}, markets={})
    with pytest.raises(state.UNREADABLE):
        state.decoded(root, body)


def test_a_state_that_was_cut_off_cannot_be_read() -> None:
    built = manifest_of(objects={keys.detail(market_id(1)): "a" * 32}, markets={market_id(1): ("open",)})
    body = state.encoded(built)
    with pytest.raises(state.UNREADABLE):
        state.decoded(state.header(built, "x", ()), body[:-1])
