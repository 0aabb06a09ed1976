"""What readers and operators may see: after every write, when an actor ends, and after the next run."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, product
from typing import Final, NamedTuple

from generator.api import keys
from generator.api.contract import API_VERSION
from generator.models import replaced
from generator.publish import record
from generator.search.buckets import KEY_LENGTH
from generator.tree import blocklist, manifest
from generator.tree.generations import object_keys
from tests.publish.explorer import downloads
from tests.publish.explorer.contents import (
    CONTENTS,
    LIMITS,
    LISTS,
    NEVER_PUBLISHED,
    QUESTION_LISTS,
    REFERENCE,
    SEARCHES,
    built,
)
from tests.publish.explorer.scenarios import Scenario, lose_record
from tests.publish.explorer.scheduler import Actor, Fault, Watcher
from tests.publish.explorer.world import Op, World, label
from tests.publish.faults import sites
from tests.support.faults import GoneError, Seen, expected_keys
from tests.support.readers.remembered import Get, Remembered
from tests.support.readers.searching_reader import SearchingReader
from tests.support.sites.builds import tells_of_earlier_builds
from tests.support.sites.rows import market_id
from tests.support.stores import records

NUMBERS: Final = (1, 2, 3)
#: Everything under `v1/`.
Site = frozenset[tuple[str, bytes]]
#: A list, a limit and the cursor of the second page.
Place = tuple[str, int, str]
#: Walks, and what remains of each.
Held = frozenset[tuple[Place, tuple[object, ...]]]
GONE: Final = ("gone",)
#: Walks and first pages, by what was read for them.
_READ: Final = Remembered()
#: How the names of actors begin that publish nothing, and of those that publish no build.
_OF_HOLDS: Final = ("hold", "release")
_OF_OPERATORS: Final = ("takedown", "undo", *_OF_HOLDS)


@dataclass(frozen=True)
class Look:
    """What readers find: every walk by list and limit, the rest of the walks that begin now, and markets by number.

    `shown` are those of which any object tells anything, `listed` those that a walk shows, `bare` the listed ones that
    have no detail. The dump counts as a walk. `faults` are those of the heads of downloads, and that an object shows
    what was never published.
    """

    walks: Mapping[tuple[str, int], tuple[object, ...]]
    begun: Mapping[Place, tuple[object, ...]]
    shown: frozenset[int]
    listed: frozenset[int]
    bare: frozenset[int]
    faults: tuple[str, ...]


@lru_cache(maxsize=200_000)
def look(site: Site) -> Look:
    objects = dict(site)
    walks: dict[tuple[str, int], tuple[object, ...]] = {}
    begun: dict[Place, tuple[object, ...]] = {}
    for name, limit in walked(objects):
        walks[name, limit] = walk(objects, name, limit)
        cursor = _second(objects, name, limit)
        if cursor and (rest := walk(objects, name, limit, cursor)) != GONE:
            begun[name, limit, cursor] = rest
    begun |= downloads.begun(objects)
    if keys.head(keys.DUMPS) in objects:
        found = downloads.markets(objects)
        walks[keys.DUMPS, 0] = GONE if found is None else found
    seen = {item[0] for items in walks.values() for item in items if isinstance(item, tuple)}
    listed = frozenset(number for number in NUMBERS if market_id(number) in seen)
    shown = {item[0]: numbers for item in site if (numbers := _shows(*item))}
    bare = frozenset(number for number in listed if keys.detail(market_id(number)) not in objects)
    leaks = kinds(key for key, numbers in shown.items() if 0 in numbers)
    faults = (*downloads.faults(objects), *(f"a {kind} shows what was never published" for kind in leaks))
    return Look(walks, begun, frozenset(NUMBERS).intersection(chain(*shown.values())), listed, bare, faults)


def walked(objects: Mapping[str, bytes]) -> Iterator[tuple[str, int]]:
    """The lists and limits, and the searches if there is an index."""
    yield from product(LISTS, LIMITS)
    if any(key.startswith(keys.QUESTIONS) for key in objects):
        yield from product(QUESTION_LISTS, LIMITS)
    if keys.head(keys.SEARCH) in objects:
        yield from product(SEARCHES, LIMITS[:1])


def walk(objects: Mapping[str, bytes], name: str, limit: int, cursor: str | None = None) -> tuple[object, ...]:
    """The items from the cursor on; GONE if an object is missing or damaged."""
    if name == keys.DUMPS and cursor:
        lines = downloads.lines_of(objects, keys.chunk(name, cursor))
        return GONE if lines is None else downloads.seen(lines)

    def ask(get: Get) -> tuple[object, ...]:
        try:
            return (*SearchingReader(get).walk(name, limit, cursor),)
        except (GoneError, ValueError, AssertionError):
            return GONE

    found: tuple[object, ...] = _READ.answer((name, limit, cursor), objects.get, ask)
    return found


def _second(objects: Mapping[str, bytes], name: str, limit: int) -> str | None:
    def ask(get: Get) -> str | None:
        try:
            return SearchingReader(get).page(name, limit)[1]
        except (GoneError, ValueError):
            return None

    found: str | None = _READ.answer((name, limit), objects.get, ask)
    return found


@lru_cache(maxsize=20_000)
def _shows(key: str, body: bytes) -> frozenset[int]:
    """The markets of which an object tells anything, by number; 0 stands for what was never published."""
    told = downloads.readable(key, body)
    shown = {number for number in NUMBERS if market_id(number) in key or any(text in told for text in _texts(number))}
    return frozenset(shown | {0} if NEVER_PUBLISHED in told else shown)


@cache
def _texts(number: int) -> tuple[bytes, ...]:
    """What gives a market away: its id, and the part of its own word that stands in a line of the search index."""
    return market_id(number).encode(), sites.secret(number)[KEY_LENGTH:].encode()


@lru_cache(maxsize=200_000)
def public(site: Site) -> frozenset[Seen]:
    """Whatever readers find of markets, in any list and in their details."""
    objects, found = dict(site), look(site)
    details = [objects.get(keys.detail(market_id(number))) for number in NUMBERS]
    markets = [json.loads(body)["market"] for body in details if body]
    listed = (item for items in found.walks.values() for item in items if isinstance(item, tuple))
    return frozenset((*listed, *((market["id"], market["question"], market["status"]) for market in markets)))


@cache
def possible(contents: frozenset[str], hidden: frozenset[int], name: str, layout: str) -> frozenset[tuple[Seen, ...]]:
    """Whatever a list or the dump may show: any content, without any of the markets that a takedown hides."""
    found: set[tuple[Seen, ...]] = set()
    for content in contents:
        for number in range(1 << len(hidden)):
            left_out = {market_id(market) for bit, market in enumerate(sorted(hidden)) if number >> bit & 1}
            if name.startswith(keys.OF_QUESTIONS):
                # Without a market, its question shows others, or is gone.
                ways = (built(layout, content, frozenset(left_out | more)) for more in (set(), {REFERENCE}))
                found.update(tuple(way.state[name]) for way in ways)
                continue
            state = built(layout, content).state
            items = sorted(state["all/popular"]) if name == keys.DUMPS else state[name]
            found.add(tuple(seen for seen in items if seen[0] not in left_out))
    return frozenset(found)


@lru_cache(maxsize=200_000)
def untruths(site: Site, content: bytes, blocked_: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """How a record that nobody works on differs from the store, but for missing details that show blocked markets."""
    published = record.decoded(content)
    if published.work:
        return ()
    objects, built_ = dict(site), published.built
    taken_down = {*built_.showing(blocked_)} - objects.keys()
    wrong = [
        key for key, digest in built_.objects.items()
        if key not in taken_down and (key not in objects or manifest.digest(key, objects[key]) != digest)
    ]  # fmt: skip
    lost = [
        key for (name, _), entry in built_.generations().items() for key in object_keys(name, entry)
        if key not in objects and not getattr(entry, "partial", False)
    ]  # fmt: skip
    due = {key for entry in published.due for key in object_keys(entry.list, entry)}
    unknown = objects.keys() - expected_keys(built_) - due
    return (
        *(f"{kind} differs from the record" for kind in kinds(wrong)),
        *(f"{kind} is missing" for kind in kinds(lost)),
        *(f"{kind} is unknown to the record" for kind in kinds(unknown)),
    )


def kinds(found: Iterable[str]) -> list[str]:
    return sorted({label(key) for key in found})


class Moment(NamedTuple):
    """The world after a number of an actor's requests, the walks that readers are in, and the markets reported gone."""

    actor: Actor
    requests: int
    world: World
    held: Held
    gone: frozenset[int]
    is_soiled: bool = False


@lru_cache(maxsize=200_000)
def readers(scenario: Scenario, layout: str, site: Site, held: Held) -> tuple[tuple[str, ...], Held]:
    """What is broken for readers who come now or are in a walk, and the walks they are in then."""
    found, objects = look(site), dict(site)
    broken = [*found.faults, *(f"there is no {key}" for key in sorted(heads(layout).difference(objects)))]
    for (name, limit), items in found.walks.items():
        # A first page that is missing from the start is no torn walk.
        if items not in possible(scenario.contents, scenario.hidden, name, layout) and not scenario.damage:
            broken.append(f"a walk of {name} by {limit} is torn")
    for (name, limit, cursor), rest in held:
        if name == keys.CHANGES:
            if downloads.is_in_session(objects, cursor) and downloads.leads_astray(objects, limit, rest):
                broken.append("the change feed leads to another state")
            continue
        now = walk(objects, name, limit, cursor)
        if now != rest and not (now == GONE and scenario.withdrawn):
            broken.append(f"a walk of {name} by {limit} was interrupted")
    if found.bare - scenario.withdrawn:
        broken.append(f"listed without a detail: {sorted(found.bare)}")
    return tuple(broken), held | frozenset(found.begun.items())


@cache
def heads(layout: str) -> frozenset[str]:
    """Those of search index and downloads: no run ends what is published."""
    return frozenset(map(keys.head, keys.INDEXED)) & built(layout, "old").manifest.objects.keys()


def lasting(site: Site, held: Held) -> Held:
    """The walks that can go on."""
    objects = dict(site)
    return frozenset(
        (place, rest) for place, rest in held
        if (downloads.is_in_session(objects, place[2]) if place[0] == keys.CHANGES else walk(objects, *place) == rest)
    )  # fmt: skip


@dataclass
class Watch(Watcher):
    """Checks one placement as it is played; `broken` are the violations so far."""

    scenario: Scenario
    layout: str
    world: World
    #: Is told every step.
    tell: Callable[[str], None] = lambda _: None
    broken: list[str] = field(default_factory=list)
    #: Markets that were reported gone.
    gone: set[int] = field(default_factory=set)
    #: Whether a dead actor's put arrived that no run could clean up yet.
    is_soiled: bool = False
    #: Whether to keep what every write of an actor leaves, for when it is killed right after that.
    keeps_trail: bool = False
    trail: list[Moment] = field(default_factory=list)
    #: The walks that readers are in, and the rest of each.
    held: Held = frozenset()
    #: What was public when builds were put on hold; None while they are not.
    frozen: frozenset[Seen] | None = None
    #: The takedowns that change what is published, from the first object that they change under the lease.
    withdrawing: list[Actor] = field(default_factory=list)

    def freeze(self) -> None:
        """From now on nothing else may become public if builds are on hold, and nobody releases them."""
        if is_held(self.world) and all(role.command != "release" for role in self.scenario.roles):
            self.frozen = public(self.world.site())

    def begin(self) -> None:
        """Look at the world before the first step."""
        self.freeze()
        self.held |= frozenset(look(self.world.site()).begun.items())
        self.gone |= {number for number in NUMBERS if market_id(number) in blocked(self.world)}

    def moment(self, actor: Actor) -> Moment:
        """How things are now, after an actor's requests."""
        return Moment(actor, len(actor.trace), self.world.copy(), self.held, frozenset(self.gone), self.is_soiled)

    # The watcher's part

    def began(self, actor: Actor) -> None:
        actor.blocked = blocked(self.world)
        if actor.name.startswith("release"):
            self.frozen = None
        actor.is_held = self.frozen is not None

    def wrote(self, actor: Actor, op: Op) -> None:
        self.tell(f"{actor.name}: {op}")
        if op.place.startswith(f"{API_VERSION}/"):
            if actor.name.startswith("takedown") and Op("put", record.KEY) in actor.trace:
                self.withdrawing.append(actor)
            if has_lost_lease(actor):
                self._say(f"{actor.name} goes on writing after its lease")
            self._check_readers()
            if actor in self.withdrawing and keys.is_first_page(op.place):
                self._check_questions(actor)
        elif op.place == record.KEY:
            self._check_record()
        elif op.place == blocklist.KEY:
            self._check_hold()
        if self.keeps_trail:
            self.trail.append(self.moment(actor))

    def landed(self) -> None:
        self.tell("the late put arrives")
        self.is_soiled = True
        self._check_readers()

    def ended(self, actor: Actor) -> None:
        self.tell(f"{actor.name} ends with {actor.code} {actor.error}")
        is_build = not actor.name.startswith(_OF_OPERATORS)
        if actor.code == 0 and actor.name.startswith("hold"):
            self.freeze()
        if actor.code == 0 and actor.is_held and is_build:
            self._say(f"{actor.name} publishes what is on hold")
        if actor.code not in self._codes(actor):
            self._say(f"{actor.name} ends with {actor.code}: {actor.error}")
        if actor.name.startswith("takedown"):
            self._check_details(actor)
        if actor.code == 0 and actor.name.startswith("takedown"):
            self.gone.add(hidden_by(actor))
        if actor.code in (0, 3) and not actor.name.startswith(_OF_HOLDS):
            self._check_gone(f"{actor.name} ended with {actor.code}", actor.blocked & blocked(self.world))
        self._check_readers()
        if actor.code == 0 and is_build and actor.game.is_alone(actor):
            self._check_published(actor)

    def _codes(self, actor: Actor) -> tuple[int, ...]:
        """The exit codes it may have now."""
        if not actor.name.startswith(_OF_OPERATORS):
            return (0, 1, 3, 4) if self.scenario.damage else (0, 3, 4)
        # Without a record, details are all that it can delete.
        blocked_ = blocked(self.world)
        is_private = not any(keys.detail(id_) in self.world.objects for id_ in blocked_)
        return (0, 1) if self.scenario.damage is lose_record and is_private else (0,)

    # Checks

    def _check_readers(self) -> None:
        broken, self.held = readers(self.scenario, self.layout, self.world.site(), self.held)
        # A first page that arrives late is as its condition allowed, until the next run finds it.
        for sentence in broken if not self.is_soiled else ():
            self._say(sentence)
        self._check_gone("reported gone")
        for actor in self.withdrawing:
            if not actor.is_dead and not actor.is_over:
                self._check_details(actor)
        if self.frozen is not None and not self.is_soiled and public(self.world.site()) - self.frozen:
            self._say("something became public in spite of the hold")

    def _check_gone(self, when: str, ids: frozenset[str] = frozenset()) -> None:
        if not self.gone and not ids:
            return
        gone = self.gone | {number for number in NUMBERS if market_id(number) in ids}
        back = look(self.world.site()).shown & still_gone(self.scenario, self.world, frozenset(gone))
        if back and not self.is_soiled:
            self._say(f"market {min(back)} is public: {when}")

    def _check_details(self, actor: Actor) -> None:
        numbers = still_gone(self.scenario, self.world, frozenset({hidden_by(actor)}))
        if not self.is_soiled and numbers & detailed(self.world.site()):
            self._say(f"{actor.name} withdraws a market, or has ended, and there is a detail of it")

    def _check_questions(self, actor: Actor) -> None:
        """Details of questions are without a market before any list is; without a dump, nothing else tells of them."""
        numbers = still_gone(self.scenario, self.world, frozenset({hidden_by(actor)}))
        if not self.is_soiled and numbers & in_questions(self.world.site()):
            self._say(f"{actor.name} leads to lists without a market that a question shows")

    def _check_record(self) -> None:
        found = (
            ()
            if is_at_work(self.world)
            else untruths(self.world.site(), stored_record(self.world), blocked(self.world))
        )
        if found and not self.is_soiled and not self.scenario.damage:
            self._say(f"the record is released, but {found[0]}")

    def _check_hold(self) -> None:
        if self.frozen is not None and not is_held(self.world):
            self._say("the hold was lost")

    def _check_published(self, actor: Actor) -> None:
        found = look(self.world.site())
        for (name, limit), items in found.walks.items():
            if items not in possible(frozenset((actor.content,)), self.scenario.hidden, name, self.layout):
                self._say(f"{actor.name} reports success, but {name} by {limit} shows something else")

    def _say(self, sentence: str) -> None:
        self.tell(f"BROKEN {sentence}")
        if sentence not in self.broken:
            self.broken.append(sentence)


def has_lost_lease(actor: Actor) -> bool:
    """Whether its lease expired before an earlier request, and it has neither read nor put the record since."""
    if actor.strike is None or actor.strike.fault is not Fault.STALL:
        return False
    before, since = actor.trace[: actor.strike.at], actor.trace[actor.strike.at + 1 :]
    return (
        bool(since)
        and Op("put", record.KEY) in before
        and {Op("get", record.KEY), Op("put", record.KEY)}.isdisjoint(since)
    )


def blocked(world: World) -> frozenset[str]:
    return _blocked_list(world).ids()


def is_held(world: World) -> bool:
    """Whether builds are on hold."""
    return _blocked_list(world).hold is not None


def _blocked_list(world: World) -> blocklist.BlockedList:
    return blocklist.decode(world.objects.get(blocklist.KEY, b"{}"))


def hidden_by(takedown: Actor) -> int:
    """The market of a takedown, by number."""
    return int(takedown.name[len("takedown")])


@lru_cache(maxsize=200_000)
def detailed(site: Site) -> frozenset[int]:
    """The markets that have a detail, by id or by slug."""
    return frozenset(chain(*(_shows(*item) for item in site if keys.is_detail(item[0]))))


@lru_cache(maxsize=200_000)
def in_questions(site: Site) -> frozenset[int]:
    """The markets that details of questions show."""
    return frozenset(chain(*(_shows(*item) for item in site if keys.is_question(item[0]))))


def stored_record(world: World) -> bytes:
    """The whole record, as a small site has it."""
    return _whole_record(records.parts(world.objects))


def is_at_work(world: World) -> bool:
    """Whether the record says that somebody is at work; it can be read then, too."""
    root = record.decoded(world.objects[record.KEY])
    if root.work is None:
        return False
    # Who is at work, and until when, changes nothing in how its parts are read.
    asked = replaced(root, sequence=0, work=None).encoded()
    return bool(_whole_record(records.parts({**world.objects, record.KEY: asked})))


@lru_cache(maxsize=10_000)
def _whole_record(parts: Site) -> bytes:
    found = records.whole(dict(parts))
    assert found
    return found.encoded()


def forget() -> None:
    """Free what was remembered of worlds: those of other games are others."""
    for remembered in (look, public, untruths, readers, detailed):
        remembered.cache_clear()
    _READ.forget()


def still_gone(scenario: Scenario, world: World, gone: frozenset[int]) -> frozenset[int]:
    """The markets that were reported gone, except those that somebody unblocked since."""
    if all(role.command != "undo" for role in scenario.roles):
        return gone
    return frozenset(number for number in gone if market_id(number) in blocked(world))


def check_settled(world: World, layout: str, content: str, *, may_have_probes: bool) -> list[str]:
    """After a publish of the content that nobody disturbed: how the world differs from what a fresh publish leaves."""
    known = {market_id(number) for number in CONTENTS[content][0]} | {REFERENCE}
    made = built(layout, content, blocked(world) & known)
    if record.KEY not in world.objects:
        return ["there is no record"]
    stored, found = stored_record(world), dict(world.site())
    published, broken = record.decoded(stored), [*untruths(world.site(), stored)]
    if published.work or published.due or not published.built.complete:
        broken.append("the record is not settled")
    # A publish that withdraws markets changes the downloads of its folder, and a fresh build makes others.
    differing = [
        key for key in made.manifest.objects
        if found.get(key) != made.files[key] and not (key == keys.BUILD or tells_of_earlier_builds(key))
    ]  # fmt: skip
    broken += [f"{kind} is not as built" for kind in kinds(differing)]
    if _lists(published.built) != _lists(made.manifest):
        broken.append("the record has other lists")
    back = look(world.site()).shown & {number for number in NUMBERS if market_id(number) in blocked(world)}
    broken += [f"market {number} is public" for number in sorted(back)]
    beside = {key for key in world.objects if not key.startswith(f"{API_VERSION}/")}
    beside -= {record.KEY, blocklist.KEY} | records.named_states(world.objects) | records.newer_states(world.objects)
    # A state that no record names is found by the next publish that changes something, or verifies.
    return broken + [
        f"{kind} is left" for kind in kinds(beside) if kind not in ("probe", "state") or not may_have_probes
    ]


def _lists(built_: manifest.Manifest) -> dict[str, manifest.Current]:
    return {name: current for name, current in built_.current.items() if name not in keys.DOWNLOADS}
