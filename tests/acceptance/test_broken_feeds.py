"""Change feeds that each break one rule, and the followers and checks that notice it: proof that they can."""
# ruff: noqa: SLF001 - the rules that are removed

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import downloads, keys
from generator.api.downloads import ChangesHead, DumpHead
from generator.downloads import steps
from generator.downloads.steps import StepWriter
from generator.site.catalog import Catalog
from generator.site.change_feed import ChangeFeed
from generator.tree.manifest import Retired
from public_markets_client import changes
from tests.support.kills import KilledError
from tests.support.readers.followed import Followed, quick, reading
from tests.support.sites.publishing import PublishedSite

Patch = pytest.MonkeyPatch


@pytest.fixture
def followed(published_site: PublishedSite, tmp_path: Path) -> Iterator[Followed]:
    published_site.settings["layout"] = "chunks"
    with quick(published_site), reading(published_site) as url:
        copies = tmp_path / "copies"
        copies.mkdir()
        yield Followed(published_site, url, copies, random.Random(19))  # noqa: S311 - nothing here is secret


# ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────────


def edits(followed: Followed, number: int = 2) -> None:
    followed.site.edit(number, volume=followed.draw.random())
    followed.publish()


def looked_at(followed: Followed) -> None:
    followed.check()
    followed.check_complete()
    followed.follow("often.ndjson")


def some_edits(followed: Followed) -> None:
    for _ in range(2):
        edits(followed)
        looked_at(followed)


def a_market_is_withdrawn(followed: Followed) -> None:
    followed.site.edit(3, prob=0.125)
    edits(followed)
    looked_at(followed)
    followed.hide(3)
    edits(followed)
    looked_at(followed)
    followed.show(3)
    followed.publish()


def a_market_is_taken_down(followed: Followed) -> None:
    edits(followed)
    looked_at(followed)
    for number in (4, 6):
        followed.take_down(number)
        looked_at(followed)


def a_build_is_killed_between_both_heads(followed: Followed) -> None:
    """One is of the new state already, the other not yet."""
    looked_at(followed)
    replaced = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        rename = os.replace

        def until_the_second(source: Any, target: Any, **named: Any) -> None:
            if str(target).endswith((keys.head(keys.DUMPS), keys.head(keys.CHANGES))):
                replaced.append(str(target))
            if len(replaced) > 1:
                raise KilledError
            rename(source, target, **named)

        patch.setattr(os, "replace", until_the_second)
        followed.site.edit(5, volume=followed.draw.random())
        with pytest.raises(KilledError):
            followed.build()
    edits(followed)
    looked_at(followed)


def a_week_passes(followed: Followed) -> None:
    edits(followed)
    followed.now += timedelta(days=8)
    edits(followed)
    looked_at(followed)


def a_follower_begins_while_it_changes(followed: Followed) -> None:
    followed.follow_during("new.ndjson", lambda: edits(followed, 5))


def somebody_alters_a_copy(followed: Followed) -> None:
    looked_at(followed)
    copy = followed.folder / "often.ndjson"
    first, *others = copy.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join([first.replace(b'"open"', b'"closed"'), *others]))
    followed.astray = {copy.name}
    edits(followed, 5)
    looked_at(followed)


def a_backup_takes_its_place(followed: Followed) -> None:
    backup = followed.save()
    edits(followed)
    looked_at(followed)
    followed.site.edit(5, volume=followed.draw.random())
    followed.restore(backup)
    looked_at(followed)


# ── the broken parts ──────────────────────────────────────────────────────────────────────────────────────────────


def keeps_steps_as_they_are(patch: Patch) -> None:
    patch.setattr(ChangeFeed, "_without_gone", ChangeFeed._in_place)


def never_says_who_is_gone(patch: Patch) -> None:
    add = StepWriter.add
    patch.setattr(StepWriter, "add", lambda self, change: change.after and add(self, change))


def has_one_session_for_all_takedowns(patch: Patch) -> None:
    begun, name = downloads.begun, "a" * downloads.SESSION_LENGTH

    def continued(dumped: DumpHead) -> ChangesHead:
        return begun(dumped).model_copy(update={"session": name})

    patch.setattr(downloads, "begun", continued)
    patch.setattr(downloads, "session_after", lambda _: name)


def keeps_the_market_in_the_dump(patch: Patch) -> None:
    patch.setattr(Catalog, "without", lambda catalog, _: catalog)


def never_raises_the_serial(patch: Patch) -> None:
    continued = ChangeFeed._continued

    def same(self: ChangeFeed, before: ChangesHead, begun: ChangesHead, _: int, found: Any) -> ChangesHead:
        return continued(self, before, begun, before.serial, found)

    patch.setattr(ChangeFeed, "_continued", same)


def makes_steps_from_another_state(patch: Patch) -> None:
    head = ChangeFeed.head

    def trusting(self: ChangeFeed, before: ChangesHead | None) -> ChangesHead:
        name = before.dump.name if before else ""
        return head(replace(self, state=replace(self.state, before=name)), before)

    patch.setattr(ChangeFeed, "head", trusting)


def keeps_all_steps(patch: Patch) -> None:
    patch.setattr(steps, "retained", lambda found, *_: [*found])


def deletes_replaced_files_at_once(patch: Patch) -> None:
    patch.setattr(Retired, "is_due", lambda *_: True)


def follows_without_a_look_at_the_digest(patch: Patch) -> None:
    """The follower is broken here."""

    patch.setattr(changes, "checked", lambda found, _: found)


Scenario = Callable[[Followed], None]
BROKEN: Final[dict[Callable[[Patch], None], Scenario]] = {
    keeps_steps_as_they_are: a_market_is_withdrawn,
    never_raises_the_serial: some_edits,
    makes_steps_from_another_state: a_build_is_killed_between_both_heads,
    never_says_who_is_gone: a_market_is_withdrawn,
    has_one_session_for_all_takedowns: a_market_is_taken_down,
    keeps_the_market_in_the_dump: a_market_is_taken_down,
    keeps_all_steps: a_week_passes,
    deletes_replaced_files_at_once: a_follower_begins_while_it_changes,
    follows_without_a_look_at_the_digest: somebody_alters_a_copy,
}


SCENARIOS: Final = (*dict.fromkeys(BROKEN.values()), a_backup_takes_its_place)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_rule_that_is_removed_is_noticed(
    followed: Followed, broken: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        BROKEN[broken](followed)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_nothing_is_noticed_while_all_rules_hold(followed: Followed, scenario: Scenario) -> None:
    scenario(followed)
    looked_at(followed)
