"""The explorer catches every rule that is taken away: each variant is explored until its first violation."""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from generator.api import keys
from generator.cli import publish as cli_publish
from generator.cli import rebuild as cli_rebuild
from generator.config import shape
from generator.models import replaced
from generator.publish import hold, protocol, takedown
from generator.publish.apply import Applier, Tally
from generator.publish.plan import NO_DOUBTS
from generator.publish.protocol import Publisher
from generator.publish.record import Published
from generator.publish.record_shards import StoredShards
from generator.site import published, published_feed
from generator.stores.aside import AsideFile
from generator.tree import membership
from tests.publish.explorer import stand_ins
from tests.publish.explorer.contents import EVERYTHING
from tests.publish.explorer.exploration import Explorer, Played, explore
from tests.publish.explorer.scenarios import SCENARIOS, made

#: What is replaced, and by what: a module or class, the name in it, the value.
Patch = tuple[object, str, object]


# ── the broken parts ──────────────────────────────────────────────────────────────────────────────────────────────


def reads_the_blocked_list_only_at_the_end() -> Iterator[Patch]:
    blocked_since = Publisher._blocked_since  # noqa: SLF001 - the rule that is removed

    def only_when_done(self: Publisher, plan: Any) -> frozenset[str]:
        caller = inspect.stack(0)[1].function
        return frozenset() if caller == "_plan_without_blocked" else blocked_since(self, plan)

    yield Publisher, "_blocked_since", only_when_done


def never_reads_the_blocked_list_again() -> Iterator[Patch]:
    yield Publisher, "_blocked_since", lambda *_: frozenset()


def forgets_what_the_dead_may_still_put() -> Iterator[Patch]:
    yield protocol, "late", lambda *_: NO_DOUBTS


def trusts_what_the_dead_touched() -> Iterator[Patch]:
    yield Published, "unfinished", lambda _: frozenset()
    yield from forgets_what_the_dead_may_still_put()


def withdraws_nothing_when_refused() -> Iterator[Patch]:
    for module in (cli_publish, cli_rebuild):
        yield module, "withdraw_hidden", lambda *_: None


def takes_a_missing_record_for_an_empty_store() -> Iterator[Patch]:
    yield takedown._PublishedSite, "_withdraw_unrecorded", lambda *_: Tally()  # noqa: SLF001


def leaves_stray_details() -> Iterator[Patch]:
    """Both rules find them: details of blocked markets are looked for always, what the dead may put for an hour."""
    yield Publisher, "_blocked_details", lambda *_: frozenset()
    for module in (protocol, takedown):
        yield module, "stray_details", lambda *_: NO_DOUBTS
    yield from forgets_what_the_dead_may_still_put()


def reports_a_takedown_that_is_not_done() -> Iterator[Patch]:
    yield takedown, "retried_while_busy", lambda *_: Tally()


def deletes_what_it_replaces_at_once() -> Iterator[Patch]:
    withdraw, upload = Applier.withdraw, Applier.upload_generations
    plans = dict[int, Any]()

    def noting(self: Applier, plan: Any, blocked: Any) -> None:
        plans[id(self)] = plan
        withdraw(self, plan, blocked)

    def and_delete(self: Applier, generations: Any) -> None:
        upload(self, generations)
        self.sweep(plans[id(self)])

    yield Applier, "withdraw", noting
    yield Applier, "upload_generations", and_delete


def truncates_files_in_place() -> Iterator[Patch]:
    rename = AsideFile.rename

    def write(self: AsideFile, path: str, times: Any = None) -> None:
        if "/lists/" not in path:
            rename(self, path, times)
            return
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(handle, self._body)
        os.close(handle)

    yield AsideFile, "rename", write


def puts_shards_unannounced() -> Iterator[Patch]:
    yield StoredShards, "intent", lambda *_: None


def forgets_that_every_market_is_in_the_index() -> Iterator[Patch]:
    lists_of = membership.lists_of
    yield membership, "lists_of", lambda memberships: lists_of(memberships) - {keys.SEARCH}


def makes_no_index_again() -> Iterator[Patch]:
    def without_search(recorded: Any) -> Any:
        return shape.shaped(recorded).model_copy(update={"search": "off"})

    yield published, "shaped", without_search


def names_steps_to_what_was_only_built() -> Iterator[Patch]:
    yield published_feed, "_has_one_new_step", lambda *_: True


def publishes_what_is_on_hold() -> Iterator[Patch]:
    yield hold, "refuse", lambda *_, **__: []


def holds_beside_a_publisher() -> Iterator[Patch]:
    yield hold, "refuse_running", lambda *_: None


def loses_the_hold() -> Iterator[Patch]:
    def without_hold(model: Any, **values: Any) -> Any:
        more = {"hold": None} if isinstance(model, Published) else {}
        return replaced(model, **values, **more)

    yield protocol, "replaced", without_hold


# ── where each shows ──────────────────────────────────────────────────────────────────────────────────────────────


class Game(NamedTuple):
    """A variant, the game that catches it, and what is said then."""

    variant: Callable[[], Iterator[Patch]]
    scenario: str
    layout: str
    first: int
    said: str
    strikes: int = 1


BROKEN: Final[Mapping[str, Game]] = {
    "the blocked list is read again under the lease": Game(
        reads_the_blocked_list_only_at_the_end, "rebuild-takedown3", "pages", 0, "market 3 is public"
    ),
    "the blocked list is read again at all": Game(
        never_reads_the_blocked_list_again, "rebuild-takedown2", "chunks", 0, "market 2 is public"
    ),
    "what the dead may still put is looked for": Game(
        forgets_what_the_dead_may_still_put, "publish-other", "pages", 0, "unknown to the record"
    ),
    "what the dead touched is put again": Game(
        trusts_what_the_dead_touched, "publish-other", "pages", 0, "not as built|differs from the record"
    ),
    "details of what is blocked are deleted again": Game(
        leaves_stray_details, "publish-takedown3", "pages", 0, "detail is unknown to the record"
    ),
    "a refused publish withdraws what is blocked": Game(
        withdraws_nothing_when_refused, "guarded-takedown1", "pages", 1, "ended with 3"
    ),
    "a takedown needs a record to succeed": Game(
        takes_a_missing_record_for_an_empty_store, "no-record", "pages", 1, "market 1 is public"
    ),
    "a takedown waits for whoever holds the lease": Game(
        reports_a_takedown_that_is_not_done, "rebuild-takedown3", "pages", 0, "market 3 is public"
    ),
    "retired generations go last": Game(deletes_what_it_replaces_at_once, "takedown1-undo", "pages", 0, "torn"),
    "a takedown ends every earlier index": Game(
        forgets_that_every_market_is_in_the_index, "search-publish-takedown1", "searched", 0, "market 1 is public"
    ),
    "a takedown makes the index again": Game(
        makes_no_index_again,
        "search-publish-takedown1",
        "searched",
        0,
        "there is no v1/public/markets/lists/all/search",
    ),
    "steps to what was never published are joined": Game(
        names_steps_to_what_was_only_built, "all-kinds-publish-takedown1", EVERYTHING, 0, "was never published"
    ),
    "the record says who puts shards": Game(puts_shards_unannounced, "publish-other", "pages", 0, "shard is left"),
    "what is on hold is refused": Game(
        publishes_what_is_on_hold, "held-publish-takedown1", "pages", 0, "in spite of the hold"
    ),
    "a hold waits for whoever holds the lease": Game(
        holds_beside_a_publisher, "publish-hold", "pages", 0, "in spite of the hold"
    ),
    "every run carries the hold along": Game(loses_the_hold, "takedown1-hold", "pages", 1, "the hold was lost"),
    "files are replaced, never written in place": Game(
        truncates_files_in_place, "disk-publish-publish", "pages", 0, "torn|interrupted"
    ),
}


@contextmanager
def explored(game: Game) -> Iterator[Iterator[Played]]:
    made.cache_clear()
    with stand_ins.in_place() as patch:
        scenario = SCENARIOS[game.scenario]
        made(scenario, game.layout)
        for place, name, broken in game.variant():
            patch.setattr(place, name, broken)
        yield explore(Explorer(), scenario, game.layout, game.first, strikes=game.strikes)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("rule", BROKEN)
def test_a_rule_that_is_removed_is_noticed(rule: str) -> None:
    with explored(BROKEN[rule]) as found:
        said = (text for played in found for text in played.broken)
        assert any(part in text for text in said for part in BROKEN[rule].said.split("|")), "no placement shows it"
