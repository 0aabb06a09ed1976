"""Rules that the publisher does not keep by itself, each taken away: the test that is about it notices."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from generator.api import keys
from generator.tree import list_reader, manifest, pages
from tests.publish.faults import test_races, test_switches, test_takedowns
from tests.publish.faults.scene import Scene
from tests.support.faults import GoneError


def read_strictly(withdrawal: Any, list_name: str) -> list[bytes]:
    return list_reader.items(withdrawal._read, list_name)  # noqa: SLF001 - as the real one


_RETIRED: Final = manifest._retired  # noqa: SLF001 - the real one


def forget_the_index(lists: manifest.Lists, now: str, *, partial: bool = False) -> Any:
    return _RETIRED({name: current for name, current in lists.items() if name != keys.SEARCH}, now, partial=partial)


moved_and_killed = partial(
    test_takedowns.test_after_a_killed_move_between_layouts_a_takedown_brings_no_withdrawn_market_back, writes=14
)
between_states = partial(
    test_takedowns.test_a_takedown_between_two_states_leaves_whole_searches_or_none, layout="chunks"
)
#: Every rule: what keeps it, what breaks it, the test that notices, and the error.
REMOVED: Final[dict[str, tuple[str, Callable[..., Any], Callable[[Scene], None], str]]] = {
    "no list shows a market whose detail is gone": (
        "generator.publish.withdrawal.StoredState.half_withdrawn",
        lambda _: frozenset(),
        moved_and_killed,
        "shows market 6",
    ),
    "what cannot be read does not stop a takedown": (
        "generator.publish.withdrawal._Withdrawal._items",
        read_strictly,
        test_takedowns.test_what_cannot_be_read_keeps_no_detail_from_being_deleted,
        "00000007",
    ),
    "no index leads into lists of two states": (
        "generator.publish.reindex._are_of_one_state",
        lambda *_: True,
        between_states,
        "IndexError",
    ),
    "the index is the one that readers find": (
        "generator.publish.withdrawal._Withdrawal._roots",
        lambda _, recorded: [recorded.generation],
        between_states,
        "assert False",
    ),
    "an index that was replaced is kept for walks": (
        "generator.tree.manifest._retired",
        forget_the_index,
        partial(test_switches.test_walks_and_searches_stay_exact_while_settings_change, seed=0),
        "all/search|GoneError",
    ),
    "without a record nothing is known": (
        "generator.publish.takedown._PublishedSite._withdraw_unrecorded",
        lambda *_: None,
        test_takedowns.test_without_a_record_no_success_is_reported,
        "0 == 1",
    ),
    "what nothing leads to is deleted first": (
        "generator.publish.protocol.unreached",
        lambda *_: frozenset(),
        partial(test_races.test_runs_that_are_always_killed_do_not_fill_the_bucket, layout=pages.LAYOUT),
        "assert \\d+ <= \\d+",
    ),
    "what a late request deleted is looked for": (
        "generator.publish.audit._vanished",
        lambda *_: set(),
        test_races.test_a_delete_that_arrives_after_its_chunk_was_published_again_is_undone_by_the_next_run,
        "is missing|of another site",
    ),
    "the age of what is replaced counts from the commit": (
        "generator.tree.manifest.retired_at",
        lambda built, *_: built,
        test_races.test_a_long_publish_does_not_shorten_the_lifetime_of_cursors,
        "2-0/2.json",
    ),
}


@pytest.mark.campaign(short=5)
@pytest.mark.parametrize("rule", REMOVED)
def test_without_a_rule_its_test_fails(scene: Scene, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    kept_by, broken, notices, error = REMOVED[rule]
    monkeypatch.setattr(kept_by, broken)
    with pytest.raises((AssertionError, GoneError, IndexError)) as caught:
        notices(scene)
    assert re.search(error, caught.exconly())
