"""Whoever follows the change feed of a site has what the site has, whatever happens to it."""

import random
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.support.campaigns import rounds
from tests.support.readers.followed import Followed, quick, reading
from tests.support.sites.publishing import EVERY, PublishedSite
from tests.support.sites.rows import insert_point, market_id

_NO_DUMPS: Final = {"dumps.ndjson": "false", "dumps.parquet": "false"}
#: Seconds after which the campaign has seen enough.
_LONG_ENOUGH_S: Final = rounds(20.0, 300.0)


@pytest.fixture
def followed(published_site: PublishedSite, tmp_path: Path, one_processor: None) -> Iterator[Followed]:
    published_site.settings |= {"dumps.parquet": "true"}
    for number in EVERY:
        insert_point(published_site.database, "2024-01-10 00:00:00.000000", market_id=market_id(number))
    with quick(published_site), reading(published_site) as url:
        copies = tmp_path / "copies"
        copies.mkdir()
        yield Followed(published_site, url, copies, random.Random(19))  # noqa: S311 - nothing here is secret


# ── what may happen ───────────────────────────────────────────────────────────────────────────────────────────────


def switches(setting: str, first: str, other: str) -> Callable[[Followed], None]:
    """It is published with the other value of a setting, to and fro."""

    def switched(followed: Followed) -> None:
        followed.site.settings[setting] = first if followed.site.settings.get(setting) == other else other
        followed.publish()

    return switched


def publishes_after_some_builds(followed: Followed) -> None:
    for _ in range(followed.draw.randint(1, 3)):
        followed.edit()
        followed.build()
    followed.publish_built()


def is_killed(followed: Followed) -> None:
    """Once or twice, at any write of build or publish."""
    for _ in range(followed.draw.randint(1, 2)):
        followed.kill(followed.draw.randint(0, followed.writes))
        followed.check()
        followed.follow("often.ndjson")
        followed.edit()
    followed.publish()


def takes_down(followed: Followed) -> None:
    followed.take_down(followed.any_shown())


def is_killed_taking_down(followed: Followed) -> None:
    number = followed.any_shown()
    followed.kill(followed.draw.randint(0, 60), "takedown", market_id(number))
    followed.check()
    followed.follow("often.ndjson")
    followed.take_down(number)


def takes_no_longer_down(followed: Followed) -> None:
    if followed.blocked:
        followed.take_down(followed.draw.choice(sorted(followed.blocked)), undo=True)
    followed.publish()


def withdraws_without_a_build(followed: Followed) -> None:
    followed.hide(followed.any_shown())
    followed.fail_to_build()
    followed.check()
    followed.check_complete(output=False)
    followed.follow("often.ndjson")
    followed.publish()


def has_no_change_feed_for_a_while(followed: Followed) -> None:
    settings = followed.draw.choice([{}, _NO_DUMPS])
    before = dict(followed.site.settings)
    followed.site.settings |= {"changes.enabled": "false", **settings}
    followed.publish()
    assert followed.head() is None
    followed.follow("often.ndjson")
    followed.site.settings = before
    followed.edit()
    followed.publish()


def loses_its_output_folder(followed: Followed) -> None:
    shutil.rmtree(followed.output, ignore_errors=True)
    followed.publish()


def is_published_from_a_backup(followed: Followed) -> None:
    backup = followed.save()
    for _ in range(followed.draw.randint(1, 2)):
        followed.edit()
        followed.publish()
    followed.edit()
    followed.restore(backup)


def waits(followed: Followed) -> None:
    """Steps become too old."""
    followed.now += timedelta(days=followed.draw.choice([1, 4, 8]))
    followed.publish()


Event = Callable[[Followed], None]
#: What happens, from the most frequent to the rarest; the first ones come in the short tier.
_EVENTS: Final[tuple[tuple[Event, int], ...]] = (
    (is_killed, 8), (takes_down, 2), (switches("layout", "pages", "chunks"), 4), (Followed.publish, 6),
    (publishes_after_some_builds, 4), (is_killed_taking_down, 2), (takes_no_longer_down, 3),
    (withdraws_without_a_build, 2), (switches("variant", "core", "extended"), 1), (has_no_change_feed_for_a_while, 1),
    (loses_its_output_folder, 1), (switches("output", "output", "other"), 2), (is_published_from_a_backup, 1),
    (waits, 2),
)  # fmt: skip


def changes(followed: Followed) -> None:
    """The database changes: prices, new markets, hidden, shown and deleted ones."""
    followed.edit()
    if followed.draw.random() < 0.3 and len(followed.known) < 40:
        followed.add()
    if followed.draw.random() < 0.3:
        followed.hide(followed.any_shown())
    if followed.draw.random() < 0.3 and followed.hidden:
        followed.show(followed.draw.choice(sorted(followed.hidden)))
    if followed.draw.random() < 0.1:
        followed.delete(followed.any_shown())


@pytest.mark.campaign
def test_followers_have_what_the_site_has_whatever_happens(followed: Followed) -> None:
    events, weights = [event for event, _ in _EVENTS], [weight for _, weight in _EVENTS]
    most = rounds(3, 40)
    order = events[:most] + followed.draw.choices(events, weights, k=most - len(events[:most]))
    end = time.monotonic() + _LONG_ENOUGH_S
    for number, event in enumerate(order):
        changes(followed)
        event(followed)
        followed.check()
        followed.check_complete()
        followed.follow("often.ndjson")
        if number % 7 == 2:
            followed.follow("seldom.ndjson")
        if number % 10 == 1:
            followed.follow(f"new-{number}.ndjson")
            followed.edit()
            followed.follow_during("crossed.ndjson", followed.publish)
        if number % 10 == 6:
            followed.follow_during("crossed.ndjson", partial(takes_down, followed))
        followed.check_complete()
        if time.monotonic() > end:
            break
    done = number + 1
    assert followed.kills >= done // 10
    assert followed.by_steps > done / 3
