"""A live site whose settings change: search, layout and variant. Walks and searches in progress go on exactly."""
# ruff: noqa: S311 - nothing here is secret, and every run must make the same choices

import random

import pytest

from generator.tree import layouts
from tests.publish.faults import sites
from tests.publish.faults.scene import Scene, check_lists, check_whole
from tests.publish.faults.sites import LISTS, SEARCHES, SiteContent
from tests.support.campaigns import rounds
from tests.support.faults import Walk

#: The settings of search, for either variant.
SETTINGS = (
    {"variant": "core"},
    {"variant": "extended", "search": "off"},
    {"variant": "extended", "search": "title"},
    {"variant": "extended", "search": "title+description"},
)


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("seed", range(rounds(1, 4)))
def test_walks_and_searches_stay_exact_while_settings_change(scene: Scene, seed: int) -> None:
    rng, walks = random.Random(seed), list[Walk]()
    scene.has_downloads = seed % 2 == 0
    order = [settings for _ in range(rounds(1, 3)) for settings in rng.sample(SETTINGS, len(SETTINGS))]
    for minute, settings in enumerate([*order, order[0]]):
        scene.pass_time(60)
        site = switched(scene, rng, minute, settings)
        scene.publish(site)
        check_whole(scene.objects(), site)
        names = (*LISTS, *SEARCHES) if site.config.can_search else LISTS
        scene.searches = site.config.can_search
        check_lists(scene, site.state)
        for walk in walks:
            scene.reader.finish(walk)
        walks += [scene.reader.begin(name, 1) for name in rng.sample(names, 3)]
    assert any("?" in walk.list_name and walk.at for walk in walks), "no search was in progress"


def switched(scene: Scene, rng: random.Random, minute: int, settings: dict[str, str]) -> SiteContent:
    """The site with these settings, in either layout, after an edit."""
    config = scene.config("a", **settings, layout=rng.choice(layouts.LAYOUTS))
    edited = {f"m{rng.randint(1, 9)}": {"question": f"Question {minute}, edited?", "trader_count": rng.randint(1, 9)}}
    return sites.make(config, sites.markets(**edited), minute)
