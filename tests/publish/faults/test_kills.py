"""Publishers killed at any request: readers see whole lists, and the next run finishes the work."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from generator.api import keys
from generator.tree import chunks
from tests.publish.faults.scene import LIFETIME_S, Scene, check_hidden, check_known, check_lists, check_whole, take_down
from tests.publish.faults.sites import SiteContent, without
from tests.publish.faults.strikes import Strike, Victims, places
from tests.support.campaigns import rounds, sample, thinned
from tests.support.faults import State
from tests.support.sites.rows import market_id


@dataclass(frozen=True)
class Case:
    """A command to kill, and the sites published before; `seen` are the states that readers may see."""

    published: list[SiteContent]
    arguments: list[str]
    seen: list[State]
    #: The site in the store when the work is finished; None for a takedown.
    site: SiteContent | None
    hidden: tuple[int, ...] = ()
    is_verifying: bool = False
    #: What happens before the command.
    between: Callable[[], object] = field(default=lambda: None)


def first(scene: Scene) -> Case:
    site = scene.site("a", 0)
    return Case([], scene.arguments("publish", "a"), [site.state], site)


def change(scene: Scene) -> Case:
    old = scene.site("a", 0)
    new = scene.site("b", 1, m1={"question": "Edited?"}, m3={}, m4={"status": "closed"}, m10={})
    return Case([old], scene.arguments("publish", "b"), [old.state, new.state], new)


def move(scene: Scene) -> Case:
    old = scene.site("a", 0)
    scene.layouts["b"] = chunks.LAYOUT
    new = scene.site("b", 1, m1={"question": "Edited?"}, m6=None)
    return Case([old], scene.arguments("publish", "b", "--accept=shrink"), [old.state, new.state], new, hidden=(6,))


def withdrawal(scene: Scene) -> Case:
    old = scene.site("a", 0, m1={"question": "Other?"})
    later = scene.site("b", 1)
    new = scene.site("c", 2, m6=None, m3=None)
    states = [later.state, new.state]
    return Case([old, later], scene.arguments("publish", "c", "--accept=shrink"), states, new, hidden=(3, 6))


def expiry(scene: Scene) -> Case:
    old, later = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"})
    new = scene.site("c", 2, m1={"question": "Edited again?"})
    return Case(
        [old, later], scene.arguments("publish", "c"), [later.state, new.state], new,
        between=lambda: scene.pass_time(LIFETIME_S + 5),
    )  # fmt: skip


def purge(scene: Scene) -> Case:
    old, new = scene.site("a", 0), scene.site("b", 1, m1={"question": "Edited?"})
    return Case([old], scene.arguments("publish", "b", "--purge-retired"), [old.state, new.state], new)


def withdrawn_by_command(scene: Scene) -> Case:
    old, later = scene.site("a", 0, m1={"question": "Other?"}), scene.site("b", 1)
    scene.config("elsewhere")
    arguments = scene.arguments("takedown", "elsewhere", market_id(7))
    return Case([old, later], arguments, [later.state, without(later.state, 7)], None, hidden=(7,))


def repair(scene: Scene) -> Case:
    site = scene.site("a", 0)

    def damage() -> None:
        objects = dict(scene.objects())
        harmed = (keys.DETAILS, keys.OPENAPI, keys.list_prefix(keys.SEARCH))
        for number, key in enumerate(sorted(key for key in objects if key.startswith(harmed))):
            if number % 2:
                del objects[key]
            else:
                objects[f"{key}.bak"] = objects[key]
        scene.reset(objects)

    return Case(
        [site], scene.arguments("publish", "a", "--verify"), [site.state], site, is_verifying=True, between=damage
    )


CASES = (first, change, move, withdrawal, expiry, purge, withdrawn_by_command, repair)
#: The cases that are played with whole records, too, and those whose sites are chunks from the beginning.
WHOLE = (change, withdrawn_by_command)
CHUNKED = (change, expiry, withdrawn_by_command, repair)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize(
    ("case", "is_split"),
    [*((case, True) for case in CASES), *((case, False) for case in WHOLE)],
    indirect=["is_split"],
    ids=lambda value: value.__name__ if callable(value) else "split" if value else "whole",
)
def test_a_run_killed_at_any_request_loses_nothing(
    scene: Scene, victims: Victims, case: Callable[[Scene], Case]
) -> None:
    scene.publish_everything()
    scene.layouts = dict.fromkeys(("a", "b", "c", "later", "elsewhere"), chunks.LAYOUT) if case in CHUNKED else {}
    prepared = case(scene)
    for site in prepared.published:
        scene.publish(site)
    prepared.between()
    before = scene.objects()
    struck = places(victims.run(prepared.arguments))
    strikes = sample(thinned(struck, kind_of, 0.05, seed=case.__name__), 2)
    finish(scene, prepared, None)
    later = scene.site("later", 9, m2={"question": "Later?"}, **{f"m{number}": None for number in prepared.hidden})
    for number, strike in enumerate(strikes):
        scene.reset(before)
        assert victims.kill(prepared.arguments, strike), strike
        if case is not repair:
            check_known(scene.objects())
        if prepared.published:
            check_lists(scene, *prepared.seen, with_searches=case is not repair)
        finish(scene, prepared, later if number % 3 == 2 else None)
    assert victims.kills == len(strikes) >= rounds(2, 12)


def kind_of(strike: Strike) -> object:
    """What stands for others like it; nothing stands for a request for the record, between which all steps are."""
    return strike if strike.label in {"Get record", "Put record"} else strike.label


def finish(scene: Scene, case: Case, later: SiteContent | None) -> None:
    """Repeat the killed command, or publish another site from another folder; no trace of the fault remains."""
    site = later or case.site
    if site:
        scene.publish(site, is_verifying=case.is_verifying)
        check_whole(scene.objects(), site)
        check_lists(scene, site.state)
    else:
        take_down(scene, *case.hidden)
        check_known(scene.objects())
        check_lists(scene, *case.seen[-1:])
    check_hidden(scene.objects(), *case.hidden)
