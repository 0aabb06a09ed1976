"""Rules that the publisher does not keep by itself, each taken away: the test that is about it notices."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import pytest

from generator.api import keys
from generator.errors import BusyError, OutputError
from generator.publish.begun import Begun
from generator.publish.record import DamagedShardError
from generator.tree import manifest, pages, shards
from tests.publish import test_record_shards
from tests.publish.faults import test_copies, test_races, test_switches, test_takedowns
from tests.publish.faults.scene import Scene
from tests.support.faults import GoneError

_PLACE: Final = shards.place
_RETIRED: Final = manifest._retired  # noqa: SLF001 - the real one


def forget_the_index(current: Mapping[str, manifest.Current], now: str, *, partial: bool = False) -> Any:
    return _RETIRED({name: entry for name, entry in current.items() if name != keys.SEARCH}, now, partial=partial)


moved_and_killed = partial(
    test_takedowns.test_after_a_killed_move_between_layouts_a_takedown_brings_no_withdrawn_market_back, writes=14
)
between_states = partial(
    test_takedowns.test_a_takedown_between_two_states_leaves_lists_and_searches_of_one, layout="chunks"
)
#: Every rule: what keeps it, what breaks it, the test that notices, and the error.
REMOVED: Final[dict[str, tuple[str, Callable[..., Any], Callable[[Scene], None], str]]] = {
    "no list shows a market whose detail is gone": (
        "generator.publish.withdrawal.StoredState.half_withdrawn",
        lambda _: frozenset(),
        moved_and_killed,
        "shows market 6",
    ),
    "what a killed run may have replaced is not what the record says": (
        "generator.publish.withdrawal.StoredState.unknown",
        lambda _: frozenset(),
        between_states,
        "missing; run",
    ),
    "an index that was replaced is kept for walks": (
        "generator.tree.manifest._retired",
        forget_the_index,
        partial(test_switches.test_walks_and_searches_stay_exact_while_settings_change, seed=0),
        "all/search|GoneError",
    ),
    "what nothing leads to is deleted first": (
        "generator.publish.begun.find",
        lambda *_: Begun(),
        partial(test_races.test_runs_that_are_always_killed_do_not_fill_the_bucket, layout=pages.LAYOUT),
        "assert \\d+ <= \\d+",
    ),
    "what a late request deleted is looked for": (
        "generator.publish.audit._vanished",
        lambda *_: set(),
        test_races.test_a_delete_that_arrives_after_its_chunk_was_published_again_is_undone_by_the_next_run,
        "is missing|of another site|index.json: missing",
    ),
    "the age of what is replaced counts from the commit": (
        "generator.tree.manifest.retired_at",
        lambda built, *_: built,
        test_races.test_a_long_publish_does_not_shorten_the_lifetime_of_cursors,
        "2-0/2.json",
    ),
    "putting shards renews the lease": (
        "generator.publish.lease.Lease._renew",
        lambda _: None,
        test_record_shards.test_a_store_so_slow_that_putting_all_shards_outlasts_the_lease_is_published_to,
        "could not renew its lease",
    ),
    "an intent has few shards": (
        "generator.publish.record_shards.StoredShards._number",
        lambda self, built: shards.number(len(built.markets), max(0, len(self._names) - 1)),
        test_record_shards.test_a_first_publish_puts_each_shard_once_and_announces_the_markets_in_a_few,
        "assert \\d+ == ",
    ),
    "what is retired has a shard": (
        "generator.publish.retired_shards.are_split",
        lambda *_, **__: False,
        test_record_shards.test_a_publish_reads_and_writes_only_the_shards_of_what_changed,
        "one more is of what was retired",
    ),
    "first pages lie by list": (
        "generator.tree.shards.place",
        lambda name, number: number if "/first/" in name else _PLACE(name, number),
        lambda _: test_record_shards.test_a_change_to_one_list_puts_the_rows_of_its_first_pages_and_not_of_all_lists(),
        "3,000 first pages",
    ),
    "no generation of a missing index is taken for one without chunks": (
        "generator.publish.chunk_names.of_index",
        lambda *_, **__: (),
        test_record_shards.test_a_missing_index_is_named_since_nothing_else_names_its_chunks,
        "DID NOT RAISE",
    ),
    "a feed that another copy of the folder led elsewhere begins a new session": (
        "generator.tree.sessions.forks",
        lambda *_: False,
        test_copies.test_no_serial_names_two_states_when_copies_of_a_folder_are_published_in_turn,
        "leads to another state",
    ),
    "a record says that days were replaced before what they were made of is deleted": (
        "generator.publish.record.with_days",
        lambda published, *_: published,
        partial(test_takedowns.test_a_takedown_killed_at_any_write_loses_no_archived_day, is_followed=True),
        "missing",
    ),
    "of a day that is not over, its own object tells while the head leaves days out": (
        "generator.site.archive_index._with_other_days",
        lambda _read, _before, index, _head: index,
        partial(test_takedowns.test_a_takedown_killed_at_any_write_loses_no_archived_day, is_followed=True),
        "the day that is not over",
    ),
    "withdrawals look for shards that no record names": (
        "generator.publish.lease.Lease.sweep_shards",
        lambda *_, **__: None,
        test_record_shards.test_a_withdrawal_from_a_small_site_deletes_shards_that_no_record_names,
        "shards/",
    ),
}


_NOTICED: Final = (AssertionError, GoneError, BusyError, DamagedShardError, OutputError, pytest.fail.Exception)


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("rule", REMOVED)
def test_without_a_rule_its_test_fails(scene: Scene, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    kept_by, broken, notices, error = REMOVED[rule]
    monkeypatch.setattr(kept_by, broken)
    with pytest.raises(_NOTICED) as caught:
        notices(scene)
    assert re.search(error, caught.exconly())
