"""Copies of one folder that build by themselves and are published in turn: steps of the change feed never mislead."""
# ruff: noqa: S311 - nothing here is secret, and every run must make the same choices

import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from generator.api.changes import ChangesHead
from tests.publish.faults.scene import LEASE_S, ON_BOTH, Scene, check_lists, check_whole, publish_site
from tests.publish.faults.sites import SiteContent
from tests.publish.faults.strikes import DiedError, DiesAfter
from tests.support.campaigns import rounds
from tests.support.faults import State


@pytest.mark.campaign(short=1)
@ON_BOTH
def test_no_serial_names_two_states_when_copies_of_a_folder_are_published_in_turn(scene: Scene) -> None:
    """Few states are possible, so that copies come to the same one by different steps."""
    sessions, steps = set[str](), 0
    for seed in range(rounds(1, 2)):
        folder = scene.folder / str(seed)
        folder.mkdir()
        again = Scene(folder, scene.server)
        again.has_downloads = True
        again.reset({})
        for head in play(again, random.Random(seed)):
            sessions.add(head.session)
            steps += len(head.steps)
    assert len(sessions) > rounds(1, 2)
    assert steps > 0, "every publish began a session"


def play(scene: Scene, rng: random.Random) -> Iterator[ChangesHead]:
    """Build, copy and publish in turn; yields the heads that readers find."""
    sites, states = dict[str, SiteContent](), list[State]()
    for minute in range(rounds(6, 20)):
        name = rng.choice("abc")
        if rng.random() < 0.1 and (origin := rng.choice("abc")) in sites and origin != name:
            sites[name] = copied(scene, sites[origin], name)
        else:
            sites[name] = edited(scene, rng, name, minute)
        if rng.random() < 0.25:
            continue
        states.append(sites[name].state)
        if rng.random() < 0.1:
            store = DiesAfter(scene.store(sites[name].config), rng.randint(5, 60))
            with suppress(DiedError):
                publish_site(sites[name], store)
            scene.pass_time(LEASE_S + 2)
        else:
            scene.publish(sites[name])
            check_whole(scene.objects(), sites[name])
            states = [sites[name].state]
        if head := ChangesHead.found_by(scene.read):
            check_lists(scene, *states)
            yield head


def edited(scene: Scene, rng: random.Random, name: str, minute: int) -> SiteContent:
    """The next build of a machine; each of three markets has one of two texts."""
    changed = [number for number in (1, 2, 3) if rng.random() < 0.5]
    return scene.site(name, minute, **{f"m{number}": {"question": f"Question {number}, edited?"} for number in changed})


def copied(scene: Scene, site: SiteContent, name: str) -> SiteContent:
    """The site, with its folder restored on another machine."""
    config = scene.config(name)
    shutil.rmtree(config.output, ignore_errors=True)
    shutil.copytree(site.folder, config.output)
    return replace(site.published(), config=config)
