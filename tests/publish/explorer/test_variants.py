"""The explorer catches every rule that is taken away: each variant is explored until its first violation."""

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from generator.api import keys
from generator.cli import publish as cli_publish
from generator.cli import rebuild as cli_rebuild
from generator.config import shape
from generator.models import replaced
from generator.publish import blocklist, lease, protocol, takedown
from generator.publish.apply import Applier, Tally
from generator.publish.lease import Lease
from generator.publish.plan import NO_DOUBTS
from generator.publish.protocol import Run
from generator.publish.record import Published
from generator.site import published, sessions
from generator.stores.aside import AsideFile
from generator.tree import manifest, membership
from generator.tree.blocklist import BlockedList
from tests.publish.explorer import stand_ins
from tests.publish.explorer.exploration import Explorer, explore
from tests.publish.explorer.scenarios import SCENARIOS, made

#: What is replaced, and by what: a module or class, the name in it, the value.
Patch = tuple[object, str, object]


# ── the broken parts ──────────────────────────────────────────────────────────────────────────────────────────────


_WITH_BLOCKED: Final = protocol._rereading_blocked  # noqa: SLF001 - the rule that is removed
_LOOK: Final = protocol.look


def only_when_done(run: Run) -> Run:
    """Reads the blocked list again, but not under the lease."""
    return run if inspect.stack(0)[1].function == "look" else _WITH_BLOCKED(run)


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


_RENAME: Final = AsideFile.rename


def written_in_place(self: AsideFile, path: str, times: Any = None) -> None:
    if "/lists/" not in path:
        _RENAME(self, path, times)
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(handle, self._body)
    os.close(handle)


_MERGED: Final = BlockedList.merged
#: Overlooks a hold that came since the blocked list was read.
_UNSEEN_HOLD: Final[Patch] = (protocol, "look", lambda run: _LOOK(replace(run, is_begun=True)))


def without_hold(self: BlockedList, other: BlockedList) -> BlockedList:
    return replaced(_MERGED(self, other), hold=None)


# ── where each shows ──────────────────────────────────────────────────────────────────────────────────────────────


class Game(NamedTuple):
    """What is replaced, the game that catches it, and what is said then."""

    patches: Sequence[Patch]
    #: As the name of a placement begins: the scenario, the layout, and the role that begins.
    name: str
    said: str


_LISTS_OF: Final = membership.lists_of
#: Forgets what the dead may still put.
_NOTHING_LATE: Final[Patch] = (protocol, "_compared_in_doubt", lambda _: NO_DOUBTS)

BROKEN: Final[Mapping[str, Game]] = {
    "the blocked list is read again under the lease": Game(
        [(protocol, "_rereading_blocked", only_when_done)], "rebuild-takedown3/pages/0", "market 3 is public"
    ),
    "the blocked list is read again at all": Game(
        [(protocol, "_rereading_blocked", lambda run: run)], "rebuild-takedown2/chunks/0", "market 2 is public"
    ),
    "what the dead may still put is looked for": Game(
        [_NOTHING_LATE], "publish-other/pages/0", "unknown to the record"
    ),
    "what the dead touched is put again": Game(
        [(Published, "unfinished", lambda _: frozenset()), _NOTHING_LATE],
        "publish-other/pages/0",
        "not as built|differs from the record",
    ),
    # Both rules find them: details of blocked markets are looked for always, what the dead may put for an hour.
    "details of what is blocked are deleted again": Game(
        [
            (Run, "blocked_details", lambda _: frozenset()),
            *((module, "stray_details", lambda *_: NO_DOUBTS) for module in (protocol, takedown)),
            _NOTHING_LATE,
        ],
        "publish-takedown3/pages/0",
        "detail is unknown to the record",
    ),
    "a refused publish withdraws what is blocked": Game(
        [(module, "withdraw_hidden", lambda *_: None) for module in (cli_publish, cli_rebuild)],
        "guarded-takedown1/pages/1",
        "ended with 3",
    ),
    "a takedown needs a record to succeed": Game(
        [(takedown._PublishedSite, "_withdraw_unrecorded", lambda *_: Tally())],  # noqa: SLF001 - the rule
        "no-record/pages/1",
        "market 1 is public",
    ),
    "a takedown waits for whoever holds the lease": Game(
        [(takedown, "retried_while_busy", lambda *_: Tally())], "rebuild-takedown3/pages/0", "market 3 is public"
    ),
    "a publisher whose lease has expired stops": Game(
        [(Lease, "require_valid", lambda _: None)], "publish-other/pages/0", "goes on writing after its lease"
    ),
    "retired generations go last": Game([*deletes_what_it_replaces_at_once()], "takedown1-undo/pages/0", "torn"),
    "a takedown ends every earlier index": Game(
        [(manifest, "lists_of", lambda memberships: _LISTS_OF(memberships) - {keys.SEARCH})],
        "search-publish-takedown1/searched/0",
        "market 1 is public",
    ),
    "a takedown makes the index again": Game(
        [(published, "shaped", lambda recorded: shape.shaped(recorded).model_copy(update={"search": "off"}))],
        "search-publish-takedown1/searched/0",
        "there is no v1/public/markets/lists/all/search",
    ),
    "steps to what was never published are joined": Game(
        [(sessions, "_has_one_new_step", lambda *_: True)],
        "all-kinds-publish-takedown1/everything/0",
        "was never published",
    ),
    "what is on hold is refused": Game(
        [(blocklist, "refuse_held", lambda *_, **__: []), _UNSEEN_HOLD],
        "held-publish-takedown1/pages/0",
        "in spite of the hold",
    ),
    "a hold waits for whoever holds the lease": Game(
        [(blocklist, "refuse_running", lambda *_: None)], "publish-hold/pages/0", "in spite of the hold"
    ),
    "a hold replaces what others have read": Game(
        [(blocklist, "_fenced", lambda store: lease.root(store)[0]), _UNSEEN_HOLD],
        "publish-hold/pages/0",
        "in spite of the hold",
    ),
    "every change of the blocked list carries the hold along": Game(
        [(BlockedList, "merged", without_hold)], "takedown1-hold/pages/1", "the hold was lost"
    ),
    "files are replaced, never written in place": Game(
        [(AsideFile, "rename", written_in_place)], "disk-publish-publish/pages/0", "torn|interrupted"
    ),
}


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("rule", BROKEN)
def test_a_rule_that_is_removed_is_noticed(rule: str) -> None:
    patches, (name, layout, first), parts = BROKEN[rule].patches, BROKEN[rule].name.split("/"), BROKEN[rule].said
    made.cache_clear()
    with stand_ins.in_place() as patch:
        made(SCENARIOS[name], layout)
        for place, attribute, broken in patches:
            patch.setattr(place, attribute, broken)
        found = explore(Explorer(), SCENARIOS[name], layout, int(first), strikes=1)
        said = (text for played in found for text in played.broken)
        assert any(part in text for text in said for part in parts.split("|")), "no placement shows it"
