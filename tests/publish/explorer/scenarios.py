"""Which two actors meet, and on what; most with either of them first, and in both layouts.

Scenarios of a site with all kinds of objects, "all-kinds", have a layout of their own.

Bounded, because others show the same: takedowns of a new market, verification, a publish after `--undo`, refusals, a
missing first page, a directory, and holds but that of a publish in one layout; two takedowns, two holds, the same
publish twice, and a missing first page in one order. All processes are on one machine, where a dead one is taken over
from at once; elsewhere a run waits for the lease first, and then does the same.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from generator.api import keys
from generator.publish import record
from tests.publish.explorer.actors import (
    ANOTHER_HOLD,
    GUARDED,
    HOLD,
    MOVE,
    OTHER,
    PUBLISH,
    REBUILD,
    RELEASE,
    TAKEDOWN_OF_QUESTION,
    TAKEDOWNS,
    UNDO,
    UNDO_2,
    VERIFY,
    Role,
)
from tests.publish.explorer.contents import ASKED, CONTENTS, DEFINED, EVERYTHING, LISTS, WHOLE
from tests.publish.explorer.scheduler import Game, Watcher
from tests.publish.explorer.world import World
from tests.support.stores.records import split

#: Changes the world before the actors begin; gets the layout.
Damage = Callable[[World, str], None]


@dataclass(frozen=True)
class Scenario:
    """Two actors; `before` are the roles that ran in turn to make the world, `next` the content of the next build."""

    name: str
    roles: tuple[Role, Role]
    before: tuple[Role, ...] = ()
    next: str = "new"
    damage: Damage | None = None
    #: Whether the store is a directory; a file system answers, so there are only switches and kills.
    on_disk: bool = False

    #: The layouts, each with the roles that begin, by number.
    games: tuple[tuple[str, int], ...] = (("pages", 0), ("pages", 1), ("chunks", 0), ("chunks", 1))

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def hidden(self) -> frozenset[int]:
        """The markets that a takedown may hide at some time."""
        return frozenset[int]().union(*(role.may_hide for role in (*self.before, *self.roles)))

    @cached_property
    def withdrawn(self) -> frozenset[int]:
        """The markets that may cease to be public: hidden, or not part of every content."""
        contents = [CONTENTS[role.content][0].keys() for role in self._builders()]
        common = frozenset(contents[0]).intersection(*contents)
        return self.hidden | (frozenset[int]().union(*contents) - common)

    @cached_property
    def contents(self) -> frozenset[str]:
        """The contents that may be published."""
        return frozenset(role.content for role in self._builders()) | {self.next}

    def _builders(self) -> list[Role]:
        return [FIRST, *(role for role in (*self.before, *self.roles) if role.builds)]


FIRST: Final = Role("first", "publish", content="old")


@contextmanager
def recorded(layout: str) -> Iterator[None]:
    """Have even the smallest record split, except in games about whole ones."""
    with nullcontext() if layout == WHOLE else split():
        yield


@cache
def made(scenario: Scenario, layout: str) -> World:
    """The world in which a scenario begins; play in copies of it."""
    world = World()
    for role in (FIRST, *scenario.before):
        actor = role.actor(layout, role.name)
        with recorded(layout):
            Game(world, [actor], Watcher()).play()
        assert actor.code == 0, actor.error
    world.folders.clear()
    if scenario.damage:
        scenario.damage(world, layout)
    return world


def lose_record(world: World, _: str) -> None:
    world.delete(record.KEY)


def _lose_first_page(world: World, layout: str) -> None:
    """Of the last list."""
    name = LISTS[-1]
    world.delete(keys.first_page(name, 100) if layout == "pages" else keys.head(name))


_PAGES: Final = (("pages", 0), ("pages", 1))
#: Of a site with all kinds of objects, whose record is split or whole.
_ALL_KINDS: Final = ((EVERYTHING, 0), (WHOLE, 1))
#: For two actors that do the same.
_FIRST: Final = (("pages", 0), ("chunks", 0))
_ALL: Final = (
    Scenario("publish-takedown1", (PUBLISH, TAKEDOWNS[1])),
    Scenario("publish-takedown3", (PUBLISH, TAKEDOWNS[3]), games=_PAGES),
    Scenario("rebuild-takedown2", (REBUILD, TAKEDOWNS[2])),
    Scenario("rebuild-takedown3", (REBUILD, TAKEDOWNS[3]), games=_PAGES),
    Scenario("publish-other", (PUBLISH, OTHER), next="other"),
    Scenario("guarded-takedown1", (GUARDED, TAKEDOWNS[1]), before=(PUBLISH,), games=_PAGES),
    Scenario("takedown1-takedown2", (TAKEDOWNS[1], TAKEDOWNS[2]), games=(*_FIRST, ("searched", 0))),
    Scenario("takedown1-undo", (TAKEDOWNS[1], UNDO)),
    Scenario("takedown2-undo", (TAKEDOWNS[2], UNDO_2), games=_PAGES),
    Scenario("publish-undo", (PUBLISH, UNDO), before=(TAKEDOWNS[1],), games=_PAGES),
    Scenario("verify-takedown1", (VERIFY, TAKEDOWNS[1]), games=_PAGES),
    Scenario("verify-publish", (VERIFY, OTHER), next="other", games=(("pages", 0),)),
    Scenario("move-takedown1", (MOVE, TAKEDOWNS[1])),
    Scenario("move-publish", (MOVE, OTHER), next="other"),
    Scenario("no-record", (PUBLISH, TAKEDOWNS[1]), damage=lose_record),
    Scenario("no-first-page", (PUBLISH, TAKEDOWNS[1]), damage=_lose_first_page, games=(("pages", 1),)),
    Scenario("search-publish-takedown1", (PUBLISH, TAKEDOWNS[1]), games=(("searched", 0),)),
    Scenario("search-publish-other", (PUBLISH, OTHER), next="other", games=(("searched", 0),)),
    Scenario("all-kinds-publish-takedown1", (PUBLISH, TAKEDOWNS[1]), games=_ALL_KINDS),
    Scenario("all-kinds-publish-takedown3", (PUBLISH, TAKEDOWNS[3]), games=((EVERYTHING, 0),)),
    Scenario("all-kinds-rebuild-takedown2", (REBUILD, TAKEDOWNS[2]), games=((EVERYTHING, 1), (WHOLE, 0))),
    Scenario("all-kinds-publish-other", (PUBLISH, OTHER), next="other", games=((EVERYTHING, 0),)),
    Scenario("all-kinds-takedown1-takedown2", (TAKEDOWNS[1], TAKEDOWNS[2]), games=((EVERYTHING, 0),)),
    Scenario("all-kinds-takedown1-undo", (TAKEDOWNS[1], UNDO), games=((WHOLE, 0),)),
    Scenario("all-kinds-publish-undo", (PUBLISH, UNDO), before=(TAKEDOWNS[1],), games=((EVERYTHING, 0),)),
    Scenario("all-kinds-verify-takedown1", (VERIFY, TAKEDOWNS[1]), games=((EVERYTHING, 0),)),
    Scenario("questions-publish-takedown1", (PUBLISH, TAKEDOWNS[1]), games=((ASKED, 0), (DEFINED, 1))),
    Scenario("questions-rebuild-takedown2", (REBUILD, TAKEDOWNS[2]), games=((ASKED, 1), (DEFINED, 0))),
    Scenario("questions-publish-takedown", (PUBLISH, TAKEDOWN_OF_QUESTION), games=((ASKED, 1), (DEFINED, 0))),
    Scenario("questions-publish-other", (PUBLISH, OTHER), next="other", games=((ASKED, 0),)),
    Scenario("questions-takedown1-takedown2", (TAKEDOWNS[1], TAKEDOWNS[2]), games=((DEFINED, 0),)),
    Scenario("questions-takedown1-undo", (TAKEDOWNS[1], UNDO), games=((ASKED, 0),)),
    Scenario("publish-hold", (PUBLISH, HOLD)),
    Scenario("rebuild-hold", (REBUILD, HOLD), games=(("chunks", 0), ("pages", 1))),
    Scenario("verify-hold", (VERIFY, HOLD), games=_PAGES),
    Scenario("takedown1-hold", (TAKEDOWNS[1], HOLD), games=_PAGES),
    Scenario("publish-release", (PUBLISH, RELEASE), before=(HOLD,), games=_PAGES),
    Scenario("held-takedown2-release", (TAKEDOWNS[2], RELEASE), before=(HOLD,), games=(("chunks", 0), ("pages", 1))),
    Scenario("held-publish-takedown1", (PUBLISH, TAKEDOWNS[1]), before=(HOLD,), games=(("pages", 0),)),
    Scenario("hold-release", (HOLD, RELEASE), before=(ANOTHER_HOLD,), games=_PAGES),
    Scenario("hold-hold", (HOLD, ANOTHER_HOLD), games=(("pages", 0),)),
    Scenario("all-kinds-publish-hold", (PUBLISH, HOLD), games=((EVERYTHING, 1), (WHOLE, 1))),
    Scenario("disk-publish-hold", (PUBLISH, HOLD), on_disk=True, games=_FIRST),
    Scenario("disk-publish-publish", (PUBLISH, PUBLISH), on_disk=True, games=_FIRST),
    Scenario("disk-publish-other", (PUBLISH, OTHER), next="other", on_disk=True, games=(("pages", 0),)),
    Scenario("disk-publish-takedown3", (PUBLISH, TAKEDOWNS[3]), on_disk=True, games=(("pages", 0),)),
)
SCENARIOS: Final[Mapping[str, Scenario]] = {scenario.name: scenario for scenario in _ALL}
