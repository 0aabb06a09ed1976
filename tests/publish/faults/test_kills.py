"""Publishers killed at requests: readers see whole lists, and the next run finishes the work."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from generator.tree import chunks
from tests.publish.faults.scene import (
    LIFETIME_S,
    Scene,
    check_hidden,
    check_known,
    check_lists,
    check_whole,
    take_down,
)
from tests.publish.faults.sites import SiteContent, without
from tests.publish.faults.strikes import ANY, Strike, Victims
from tests.support.campaigns import rounds, sample
from tests.support.faults import State
from tests.support.sites.rows import market_id

#: The market that is taken down.
HIDDEN = 7


@dataclass(frozen=True)
class Case:
    """A command to kill where sites were published before; `seen` are the states that readers may see."""

    arguments: list[str]
    seen: list[State]
    #: The site in the store when the work is finished; None for a takedown.
    site: SiteContent | None


def first(scene: Scene) -> Case:
    site = scene.site("a", 0)
    return Case(scene.arguments("publish", "a"), [site.state], site)


def change(scene: Scene) -> Case:
    old = scene.site("a", 0)
    new = scene.site("b", 1, m1={"question": "Edited?"}, m3={}, m4={"status": "closed"}, m10={})
    scene.publish(old)
    return Case(scene.arguments("publish", "b"), [old.state, new.state], new)


def expiry(scene: Scene) -> Case:
    old, later = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"})
    new = scene.site("c", 2, m1={"question": "Edited again?"})
    scene.publish(old)
    scene.publish(later)
    scene.pass_time(LIFETIME_S + 5)
    return Case(scene.arguments("publish", "c"), [later.state, new.state], new)


def purge(scene: Scene) -> Case:
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"})
    scene.publish(old)
    return Case(scene.arguments("publish", "b", "--purge-retired"), [old.state, new.state], new)


def withdrawn_by_command(scene: Scene) -> Case:
    old, later = scene.site("a", 0, m1={"question": "Other?"}), scene.site("b", 1)
    scene.publish(old)
    scene.publish(later)
    scene.config("elsewhere")
    arguments = scene.arguments("takedown", "elsewhere", market_id(HIDDEN))
    return Case(arguments, [later.state, without(later.state, HIDDEN)], None)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("case", [first, change, expiry, purge, withdrawn_by_command])
def test_a_run_killed_at_any_kind_of_request_loses_nothing(
    scene: Scene, victims: Victims, case: Callable[[Scene], Case]
) -> None:
    """That each single request may be the last, the explorer shows; here are real processes."""
    scene.publish_everything()
    scene.layouts = dict.fromkeys(("a", "b", "c", "elsewhere"), chunks.LAYOUT) if case is not purge else {}
    prepared = case(scene)
    before = scene.objects()
    counts = victims.run(prepared.arguments)
    strikes = sample((Strike(text, 1 + count // 2) for text, count in counts.items() if text != ANY), 2)
    finish(scene, prepared)
    for strike in strikes:
        scene.reset(before)
        assert victims.kill(prepared.arguments, strike), strike
        check_known(scene.objects())
        if case is not first:
            check_lists(scene, *prepared.seen)
        finish(scene, prepared)
    assert len(strikes) >= rounds(2, 8)


def finish(scene: Scene, case: Case) -> None:
    """Repeat the killed command; no trace of the fault remains."""
    if case.site:
        scene.publish(case.site)
        check_whole(scene.objects(), case.site)
        check_lists(scene, case.site.state)
    else:
        take_down(scene, HIDDEN)
        check_known(scene.objects())
        check_lists(scene, *case.seen[-1:])
        check_hidden(scene.objects(), HIDDEN)
