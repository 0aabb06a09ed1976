"""The blocked list: each market's last word counts, whoever spoke it and wherever."""

import json
import threading
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import OutputError, StoreError
from generator.publish import blocklist as store_blocked
from generator.tree.blocklist import KEY, Blocked, Word, held
from generator.tree.folder import locked
from tests.support.s3.behaviour import APPLIED_BUT_FAILED, Fault
from tests.support.s3.bucket import Conditions
from tests.support.s3.server import S3Server
from tests.support.s3.wire import Request
from tests.support.stores import open_bucket, use_credentials

T1, T2, T3 = (f"2026-01-31T12:00:0{second}.000Z" for second in (1, 2, 3))
WORDS = st.builds(lambda at, block: Word(at=at, is_blocked=block), st.sampled_from([T1, T2, T3]), st.booleans())
LISTS = st.builds(lambda words: Blocked(markets=words), st.dictionaries(st.sampled_from("abc"), WORDS))


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch)


def said(at: str, *ids: str, is_blocked: bool = True) -> Blocked:
    return Blocked().told(ids, is_blocked=is_blocked, now=at)


def test_a_market_is_blocked_until_somebody_lifts_it() -> None:
    words = said(T1, "a", "b")
    assert words.ids() == {"a", "b"}
    lifted = words.told(["a"], is_blocked=False, now=T2)
    assert lifted.ids() == {"b"}
    assert lifted.told(["a"], is_blocked=True, now=T3).ids() == {"a", "b"}


def test_the_last_word_counts_in_whatever_order_copies_meet() -> None:
    copies = [said(T1, "a"), said(T2, "a", is_blocked=False), said(T3, "b"), said(T2, "b", is_blocked=False)]
    for first, second, third, fourth in permutations(copies):
        assert first.merged(second).merged(third).merged(fourth).ids() == {"b"}


def test_of_two_words_at_one_instant_the_one_that_blocks_counts() -> None:
    off, on = said(T1, "a", is_blocked=False), said(T1, "a")
    assert off.merged(on).ids() == on.merged(off).ids() == {"a"}


def test_a_clock_that_was_set_back_has_the_last_word_all_the_same() -> None:
    before = said(T3, "a")
    words = before.told(["a"], is_blocked=False, now=T1)
    assert words.ids() == frozenset()
    assert words.merged(before).ids() == frozenset()
    assert words.markets["a"].at > T3


@given(LISTS, LISTS, LISTS)
def test_merging_is_the_same_in_any_order(one: Blocked, two: Blocked, three: Blocked) -> None:
    assert one.merged(two) == two.merged(one)
    assert one.merged(two).merged(three) == one.merged(two.merged(three))
    assert one.merged(one) == one


@given(LISTS)
def test_it_is_read_back_as_it_was_written(words: Blocked) -> None:
    assert Blocked.model_validate_json(words.encoded()) == words
    assert words.encoded() == Blocked(markets=dict(reversed([*words.markets.items()]))).encoded()


def test_a_folder_without_a_list_blocks_nothing(tmp_path: Path) -> None:
    with locked(tmp_path / "output") as folder:
        assert held(folder) == Blocked()
        folder.save(KEY, said(T1, "a").encoded())
        assert held(folder).ids() == {"a"}


@pytest.mark.parametrize("content", ["", "{}{", "[]", '{"format": 1, "markets": {"a": true}}', '{"surprise": 1}'])
def test_a_damaged_list_is_an_error_everywhere(content: str, tmp_path: Path, s3: S3Server) -> None:
    (tmp_path / "blocked.json").write_text(content, "utf-8")
    s3.bucket.put("blocked.json", content.encode(), {}, Conditions())
    store = open_bucket(s3, "obstore")
    with locked(tmp_path) as folder, pytest.raises(OutputError, match="taken-down markets would come back"):
        held(folder)
    with pytest.raises(StoreError, match=r"blocked\.json: damaged \(\d mistakes\); without it taken-down markets"):
        store_blocked.read(store)
    with pytest.raises(StoreError):
        store_blocked.change(store, said(T1, "a"))
    assert s3.objects()["blocked.json"][0] == content.encode()


def test_a_list_of_another_format_is_not_guessed_at(s3: S3Server) -> None:
    s3.bucket.put("blocked.json", b'{"format": 2, "markets": {}}', {}, Conditions())
    with pytest.raises(StoreError, match="format 2, this program knows 1"):
        store_blocked.read(open_bucket(s3, "obstore"))


def test_a_change_that_says_nothing_new_writes_nothing(s3: S3Server) -> None:
    store = open_bucket(s3, "obstore")
    assert store_blocked.change(store, Blocked()) == Blocked()
    store_blocked.change(store, said(T2, "a"))
    for _ in range(2):
        assert store_blocked.change(store, said(T1, "a", is_blocked=False)).ids() == {"a"}
    assert s3.count("PutObject") == 1


def test_many_at_once_lose_no_word(s3: S3Server) -> None:
    threads = [
        threading.Thread(target=store_blocked.change, args=(open_bucket(s3, "boto3"), said(T1, f"market {number}")))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store_blocked.read(open_bucket(s3, "obstore")).ids() == {f"market {number}" for number in range(8)}


def test_a_lost_answer_is_no_rival(s3: S3Server) -> None:
    faults = [APPLIED_BUT_FAILED]

    def before(request: Request) -> Fault | None:
        return faults.pop() if request.operation == "PutObject" and faults else None

    s3.before = before
    assert store_blocked.change(open_bucket(s3, "obstore"), said(T1, "a")).ids() == {"a"}
    assert json.loads(s3.objects()["blocked.json"][0])["markets"].keys() == {"a"}


def test_a_list_that_changes_all_the_time_is_given_up_on(s3: S3Server) -> None:
    numbers = iter(range(1_000))

    def rival(request: Request) -> None:
        if request.operation == "PutObject":
            other = said(T1, f"rival {next(numbers)}")
            s3.bucket.put("blocked.json", other.encoded(), {}, Conditions())

    s3.before = rival
    with pytest.raises(StoreError, match="changes all the time; who else writes it"):
        store_blocked.change(open_bucket(s3, "obstore"), said(T1, "a"))
