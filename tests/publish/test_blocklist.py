"""The blocked list in the store: no decision is lost to a concurrent change."""

import pytest

from generator.errors import StoreError
from generator.publish import blocklist as store_blocklist
from generator.tree.blocklist import KEY, BlockedList
from tests.support.stores.places import open_bucket, use_credentials
from tests.support.stores.s3.server import S3Server
from tests.support.stores.s3.wire import Request

T1, T2 = (f"2026-01-31T12:00:0{second}.000Z" for second in (1, 2))


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    use_credentials(monkeypatch)


def decided(at: str, *ids: str, is_blocked: bool = True) -> BlockedList:
    return BlockedList().decided(ids, is_blocked=is_blocked, now=at)


def test_a_merge_without_new_decisions_writes_nothing(s3: S3Server) -> None:
    store = open_bucket(s3, "obstore")
    assert store_blocklist.merge(store, BlockedList()) == BlockedList()
    store_blocklist.merge(store, decided(T2, "a"))
    for _ in range(2):
        assert store_blocklist.merge(store, decided(T1, "a", is_blocked=False)).ids() == {"a"}
    assert s3.count("PutObject") == 1


def test_copies_that_were_changed_apart_keep_the_names_of_both() -> None:
    one = BlockedList().decided(["a"], is_blocked=True, now=T1, names={"a": ["slug", "key"]})
    other = one.decided(["a"], is_blocked=False, now=T2).decided(["a"], is_blocked=True, now=T2, names={"a": ["new"]})
    assert one.merged(other) == other.merged(one) == other
    assert other.markets["a"].names == ("key", "new", "slug")
    assert BlockedList().decided(["a"], is_blocked=True, now=T2).merged(one).markets["a"].names == ("key", "slug")


def test_a_merge_gives_up_on_a_list_that_keeps_changing(s3: S3Server) -> None:
    numbers = iter(range(1_000))

    def rival(request: Request) -> None:
        if request.operation == "PutObject":
            other = decided(T1, f"rival {next(numbers)}")
            s3.bucket.put(KEY, other.encoded(), {})

    s3.before = rival
    with pytest.raises(StoreError, match="keeps changing; find out who else writes it"):
        store_blocklist.merge(open_bucket(s3, "obstore"), decided(T1, "a"))
