"""Every placement of up to two strikes in a scenario, without those that can only repeat what others show.

Two requests of different actors commute unless one writes what the other reads or writes. So a placement is left out if

- the first actor stops before a request that commutes with everything the second does until it hands back, or loses
  the answer to one: stopping one request later comes to the same;
- an actor is killed, or a late request arrives, after a request that changed nothing that matters for it: one request
  earlier comes to the same;
- the second stops before a read, loses an answer, or dies with a request on its way, and this commutes with everything
  the first still does: a stop, or a kill, one request later comes to the same.

When the first was killed, the second meets nobody, so it is only killed, too. A file system loses no answers, and a
process that was killed has no writes under way.

Of requests of one kind in a row that conflict with the same kinds of requests of the other actor, as puts of several
pages do, the last stands for all.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from tests.publish.explorer.actors import RELEASE, TAKEDOWNS, VERIFY, Role
from tests.publish.explorer.directory import on_disk
from tests.publish.explorer.invariants import Moment, Watch, check_settled, is_held, lasting, still_gone
from tests.publish.explorer.scenarios import SCENARIOS, Scenario, made, recorded
from tests.publish.explorer.scheduler import Actor, Fault, Game, Strike, arrive
from tests.publish.explorer.world import Op, World, label

#: When the next run begins; after an undo, also so late that no request of an earlier run can be under way.
_SOON_S: Final = 1_000
_LATER_S: Final = 8_000


class Placement(NamedTuple):
    """Where the actors of a scenario are struck; `first` is the number of the role that begins."""

    scenario: str
    layout: str
    first: int
    strikes: tuple[Strike | None, Strike | None] = (None, None)

    def __str__(self) -> str:
        return "/".join((self.scenario, self.layout, str(self.first), *(str(strike or "-") for strike in self.strikes)))

    @classmethod
    def parsed(cls, text: str) -> "Placement":
        """The placement of that name."""
        scenario, layout, first, *strikes = text.split("/")
        one, two = (_strike(text) for text in strikes)
        return cls(scenario, layout, int(first), (one, two))


def _strike(text: str) -> Strike | None:
    at, _, fault = text.partition("-")
    return Strike(int(at), Fault(fault)) if fault else None


@dataclass(frozen=True)
class Played:
    """A placement after it was played: the actors, and what was broken."""

    placement: Placement
    actors: tuple[Actor, Actor]
    broken: tuple[str, ...]
    watch: Watch
    in_flight: Callable[[World], Any] | None = None

    def described(self) -> str:
        """Its name, where the actors were struck, and what was broken."""
        places = [
            f"{actor.name}: {strike.fault} at {strike.at}, {dict(enumerate(actor.trace)).get(strike.at, 'its end')}"
            for actor, strike in zip(self.actors, self.placement.strikes, strict=True)
            if strike
        ]
        return f"{self.placement} ({'; '.join(places)}): {'; '.join(self.broken)}"


@dataclass
class Explorer:
    """Explores scenarios; `nexts` remembers what the next runs make of a world."""

    played: int = 0
    nexts: dict[object, tuple[str, ...]] = field(default_factory=dict)

    def play(
        self, placement: Placement, tell: Callable[[str], None] = lambda _: None, *, keeps_trail: bool = False
    ) -> Played | None:
        """Play a placement, then the next runs; None if an actor ended before it was struck."""
        with recorded(placement.layout):
            return self._play(placement, tell, keeps_trail=keeps_trail)

    def _play(self, placement: Placement, tell: Callable[[str], None], *, keeps_trail: bool) -> Played | None:
        scenario, layout = SCENARIOS[placement.scenario], placement.layout
        world = made(scenario, layout).copy()
        roles = (scenario.roles[placement.first], scenario.roles[1 - placement.first])
        one, two = (role.actor(layout, f"m{number}") for number, role in enumerate(roles))
        one.strike, two.strike = placement.strikes
        watch = Watch(scenario, layout, world, tell, keeps_trail=keeps_trail)
        watch.begin()
        game = Game(world, [one, two], watch)
        with on_disk(game) if scenario.on_disk else nullcontext():
            is_reached = game.play()
        if not is_reached:
            return None
        self.played += 1
        broken = dict.fromkeys((*watch.broken, *self.next(scenario, layout, watch.moment(two), tell)))
        return Played(placement, (one, two), (*broken,), watch, game.sent)

    def killed(self, base: Played) -> Iterator[Played]:
        """The placements in which the second actor of a played one is killed, too, after each of its writes."""
        one, two = base.actors
        for moment in base.watch.trail:
            if moment.actor is one or _is_repeated(two.trace, moment.requests - 1, one.trace):
                continue
            self.played += 1
            strikes = (base.placement.strikes[0], Strike(moment.requests, Fault.KILL))
            is_soiled = bool(base.in_flight and arrive(base.in_flight, moment.world))
            broken = self.next(base.watch.scenario, base.placement.layout, moment._replace(is_soiled=is_soiled))
            yield Played(base.placement._replace(strikes=strikes), base.actors, broken, base.watch)

    def next(
        self, scenario: Scenario, layout: str, moment: Moment, tell: Callable[[str], None] = lambda _: None
    ) -> tuple[str, ...]:
        """What is broken in the runs that come next, each after this moment."""
        site = moment.world.site()
        moment = moment._replace(gone=still_gone(scenario, moment.world, moment.gone))
        held = lasting(site, moment.held)
        key = (scenario.name, layout, frozenset(moment.world.objects.items()), held, moment.gone, moment.is_soiled)
        if key not in self.nexts:
            ways: list[Role] = [Role("next", "rebuild", content=scenario.next)]
            if VERIFY in scenario.roles:
                ways.append(replace(VERIFY, content=scenario.next))
            ways += [TAKEDOWNS[number] for number in sorted({role.hides for role in scenario.roles} & moment.gone)]
            soon, later = (
                moment._replace(held=held, world=moment.world.later(seconds)) for seconds in (_SOON_S, _LATER_S)
            )
            runs = [(role, soon) for role in ways]
            if any(role.command == "undo" for role in scenario.roles):
                runs.append((ways[0], later))
            with recorded(layout):
                self.nexts[key] = tuple(
                    text for role, left in runs for text in _followed(scenario, left, layout, role, tell)
                )
        return self.nexts[key]


def _followed(scenario: Scenario, left: Moment, layout: str, role: Role, tell: Callable[[str], None]) -> Iterator[str]:
    """What is broken while one more run of the role finishes, or after it."""
    world = left.world.copy()
    watch = Watch(scenario, layout, world, tell, held=left.held, gone={*left.gone}, is_soiled=left.is_soiled)
    watch.freeze()
    was_held = is_held(world)
    actor = role.actor(layout, "next")
    Game(world, [actor], watch).play()
    if was_held and role.builds:
        if actor.code != 3:
            yield f"next {role.name}: ends with {actor.code} although builds are on hold"
        for then in (RELEASE, role):
            actor = then.actor(layout, "next")
            Game(world, [actor], watch).play()
    if actor.code == 0:
        # What a run reports to have finished is as if nothing had ever been late.
        watch.is_soiled = False
        watch.ended(actor)
    broken = [*watch.broken]
    if actor.code == 4:
        broken.append("is refused")
    elif role.builds and not (actor.code and scenario.damage):
        # Only a run that probes the store looks for the probes of others.
        broken += check_settled(world, layout, role.content, may_have_probes=not role.options)
    yield from (f"next {role.name}: {text}" for text in broken)


def explore(
    explorer: Explorer, scenario: Scenario, layout: str, first: int, *, strikes: int = 2, every: int = 1, start: int = 0
) -> Iterator[Played]:
    """Play every placement of up to so many strikes in which that role begins.

    With `every`, the last of the strikes comes only with a first at one in so many requests, from `start` on.
    """
    alone = explorer.play(Placement(scenario.name, layout, first))
    assert alone
    yield alone
    trace, others = (actor.trace for actor in alone.actors)
    places = [at for at in range(len(trace)) if not _is_repeated(trace, at, others)]
    chosen = places[start % every :: every]
    for at in reversed(chosen if strikes == 1 else places):
        for fault in _first_faults(trace, at):
            if scenario.on_disk and fault not in (Fault.STOP, Fault.KILL):
                continue
            is_dead = fault in (Fault.KILL, Fault.LATE)
            placement = Placement(scenario.name, layout, first, (Strike(at, fault), None))
            if base := explorer.play(placement, keeps_trail=is_dead):
                yield base
                if strikes > 1 and at in chosen:
                    yield from explorer.killed(base)
                    yield from _second(explorer, base, trace[at])


def _is_repeated(trace: list[Op], at: int, others: list[Op]) -> bool:
    """Whether the next request is of the same kind, and can matter to the same kinds of the other actor's."""
    return at + 1 < len(trace) and _met(trace[at], others) == _met(trace[at + 1], others)


def _met(op: Op, others: list[Op]) -> tuple[tuple[str, str], set[tuple[str, str]]]:
    """The kind of a request, and the kinds of those that it conflicts with."""
    return _kind(op), {_kind(other) for other in others if op.conflicts(other)}


def _kind(op: Op) -> tuple[str, str]:
    return op.kind, label(op.place)


def _first_faults(trace: list[Op], at: int) -> Iterator[Fault]:
    yield from _faults_of_any(trace, at)
    if trace[at].writes:
        yield Fault.STALL
        yield Fault.TWICE


def _faults_of_any(trace: list[Op], at: int) -> Iterator[Fault]:
    """The faults that either actor may meet at a request."""
    yield Fault.STOP
    if at and trace[at - 1].writes:
        yield Fault.KILL
    if trace[at].writes:
        yield Fault.LATE
        yield Fault.LOST


def _second(explorer: Explorer, base: Played, op: Op) -> Iterator[Played]:
    """Play every strike of the second actor, the last ones first."""
    one, two = base.actors
    assert one.strike
    trace = two.trace
    until = len(trace) if two.handed_over_at is None else two.handed_over_at
    rest = one.trace[one.strike.at :]
    for at in reversed(range(until)):
        if _is_repeated(trace[:until], at, rest):
            continue
        after = rest
        for fault in _second_faults(one.strike.fault, op, trace, at):
            if base.watch.scenario.on_disk and fault not in (Fault.STOP, Fault.KILL):
                continue
            if not _matters(fault, trace[at], rest if fault is Fault.LATE else after):
                continue
            played = explorer.play(base.placement._replace(strikes=(one.strike, Strike(at, fault))))
            if played is None:
                continue
            if fault is Fault.STOP:
                rest = played.actors[0].trace[one.strike.at :]
            yield played


def _matters(fault: Fault, op: Op, rest: list[Op]) -> bool:
    """Whether a fault of the second actor at a request can show in what the first still does."""
    if fault in (Fault.KILL, Fault.LAND) or (fault is Fault.STOP and op.writes):
        return True
    return any(op.conflicts(other) for other in rest)


def _second_faults(first: Fault, op: Op, trace: list[Op], at: int) -> Iterator[Fault]:
    """The second actor's faults that cannot come to the same as others; it is `killed` for a first that is dead."""
    done = trace[:at]
    if first in (Fault.LATE, Fault.TWICE) and (at == 0 or trace[at - 1].conflicts(op)):
        yield Fault.LAND
    if first is Fault.STALL and at and trace[at - 1].conflicts(op):
        yield Fault.STOP
    if first in (Fault.LOST, Fault.STOP) and any(op.conflicts(other) for other in done):
        yield from _faults_of_any(trace, at)
