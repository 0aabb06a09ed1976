"""Two actors, each a thread, of which one runs at a time: at its strike an actor stops, dies, or loses an answer."""

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from generator.errors import PublicMarketsError
from generator.publish.lease import LEASE
from generator.stores.store import ConditionFailedError, UnavailableError
from tests.publish.explorer.world import Op, World

LEASE_S: Final = LEASE.total_seconds()
#: An actor that waits longer than this for another one waits for its lease.
_PATIENCE_S: Final = 0.4
#: An actor that sleeps for less waits for a lock.
_SHORT_S: Final = 0.05
#: More naps or requests than any actor needs.
_ENDLESS: Final = 40
_ENDLESS_OPS: Final = 1_000
#: Exit code of an error that is not ours, as of a bug.
BUG: Final = 70


class Fault(StrEnum):
    """What happens to an actor at its strike."""

    STOP = "stop"  # it stops before the request, and goes on when the other has ended or was struck
    STALL = "stall"  # it stops while its lease expires
    KILL = "kill"  # it dies before the request
    LATE = "late"  # it dies with the request on its way, which arrives at the other's strike or after its end
    LOST = "lost"  # the request is carried out, the answer lost; the other runs before it learns of this
    TWICE = "twice"  # it sends the request again, as nobody answers; the first one arrives like a late one
    LAND = "land"  # the request that is on its way arrives


class Strike(NamedTuple):
    """Which request of an actor, from 0, and what happens there."""

    at: int
    fault: Fault

    def __str__(self) -> str:
        return f"{self.at}-{self.fault}"


class KilledError(BaseException):
    """Ends an actor; whatever it tries after that fails, too."""


class EndlessError(BaseException):
    """An actor waits or works without end."""


@dataclass
class Actor:
    """A command at work. `trace` are its requests so far; `code` is its exit code once it has ended by itself."""

    name: str
    run: Callable[["Actor"], None]
    content: str
    strike: Strike | None = None
    trace: list[Op] = field(default_factory=list)
    #: The blocked markets when it began.
    blocked: frozenset[str] = frozenset()
    #: Whether builds were on hold when it began.
    is_held: bool = False
    code: int | None = None
    error: str = ""
    is_dead: bool = False
    is_over: bool = False
    naps: int = 0
    tokens: int = 0
    #: Its own writes, and those of all actors when it began.
    writes: int = 0
    writes_before: int = 0
    #: The number of its requests when it first handed over; None if it never did.
    handed_over_at: int | None = None
    game: "Game" = field(init=False)
    thread: threading.Thread | None = None
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Watcher:
    """Looks at the world after every write, when one arrives late, and when an actor begins and ends.

    This one sees nothing.
    """

    def wrote(self, actor: Actor, op: Op) -> None:
        """An actor wrote."""

    def landed(self) -> None:
        """A request arrived late."""

    def began(self, actor: Actor) -> None:
        """An actor begins."""

    def ended(self, actor: Actor) -> None:
        """An actor ended by itself."""


class Game:
    """One placement, played: the first actor begins; whoever stops hands over to the other."""

    def __init__(self, world: World, actors: list[Actor], watcher: Watcher) -> None:
        self.world = world
        self.actors = actors
        self.watcher = watcher
        self.writes = 0
        #: Where the store is a directory, that directory.
        self.disk: Any = None
        #: The request that is on its way, until it arrives.
        self.in_flight: Callable[[World], Any] | None = None
        #: The same, whether it arrived or not.
        self.sent: Callable[[World], Any] | None = None
        self._is_over = threading.Semaphore(0)
        self._broken: list[BaseException] = []
        for actor in actors:
            actor.game = self

    def play(self) -> bool:
        """Play to the end; returns whether every strike was reached."""
        if len(self.actors) == 1:
            # Nobody takes turns with it, so it needs no thread.
            self._run(self.actors[0])
            CURRENT.actor = None
        else:
            self._begin(self.actors[0])
        self._is_over.acquire()
        for actor in self.actors:
            if actor.thread:
                actor.thread.join()
        if self._broken:
            raise self._broken[0]
        self._land()
        return all(actor.strike is None or len(actor.trace) > actor.strike.at for actor in self.actors)

    # The actors' side

    def request(self, actor: Actor, op: Op, carry_out: Callable[[World], Any]) -> Any:
        """Carry out a request of the actor whose turn it is, or strike."""
        self._require_alive(actor)
        number = len(actor.trace)
        actor.trace.append(op)
        if number > _ENDLESS_OPS:
            raise EndlessError
        fault = actor.strike.fault if actor.strike and actor.strike.at == number else None
        if fault in (Fault.KILL, Fault.LATE):
            if fault is Fault.LATE:
                self.in_flight = self.sent = carry_out
            actor.is_dead = True
            raise KilledError
        if fault in (Fault.STOP, Fault.STALL):
            self.world.clock_s += LEASE_S + 2 if fault is Fault.STALL else 0
            self._hand_over(actor)
        elif fault is Fault.TWICE:
            self.in_flight = self.sent = carry_out
            raise UnavailableError("no answer")
        elif fault is Fault.LAND:
            self._land()
        result = carry_out(self.world)
        if op.writes:
            self.writes += 1
            actor.writes += 1
            if fault is Fault.STALL:
                self.watcher.landed()
            else:
                self.watcher.wrote(actor, op)
        if fault is Fault.LOST:
            self._hand_over(actor)
            raise UnavailableError("no answer")
        return result

    def sleep(self, actor: Actor, seconds: float) -> None:
        """Wait: for the other if it is at work, or until its lease has expired."""
        self._require_alive(actor)
        actor.naps += 1
        if actor.naps > _ENDLESS:
            raise EndlessError
        if seconds < _SHORT_S:
            self._hand_over(actor)
        elif seconds < _PATIENCE_S:
            self.world.clock_s += seconds
        elif self._other(actor) is None or actor.naps % 5 == 0:
            self.world.clock_s += LEASE_S + 2
        else:
            self._hand_over(actor)

    def is_alone(self, actor: Actor) -> bool:
        """Whether nobody else wrote since the actor began."""
        return self.writes - actor.writes_before == actor.writes

    def has_ended(self, name: str) -> bool:
        """Whether the process of that name has ended; None of other games is at work."""
        return all(actor.is_dead or actor.is_over for actor in self.actors if actor.name == name)

    def _require_alive(self, actor: Actor) -> None:
        if actor.is_dead:
            raise KilledError

    # Turns

    def _other(self, actor: Actor) -> Actor | None:
        """The other actor, if it can run."""
        return next((other for other in self.actors if other is not actor and not other.is_over), None)

    def _begin(self, actor: Actor) -> None:
        actor.thread = threading.Thread(target=self._run, args=(actor,), daemon=True)
        actor.thread.start()

    def _wake(self, actor: Actor) -> None:
        if actor.thread is None:
            self._begin(actor)
        else:
            actor.turn.release()

    def _hand_over(self, actor: Actor) -> None:
        other = self._other(actor)
        if other is not None:
            actor.handed_over_at = len(actor.trace) if actor.handed_over_at is None else actor.handed_over_at
            self._wake(other)
            actor.turn.acquire()

    def _run(self, actor: Actor) -> None:
        CURRENT.actor = actor
        actor.writes_before = self.writes
        try:
            self.watcher.began(actor)
            try:
                actor.run(actor)
                actor.code = 0
            except PublicMarketsError as error:
                actor.code, actor.error = error.exit_code, f"{type(error).__name__}: {error}"
            except Exception:  # noqa: BLE001 - a bug of the product, reported as such
                actor.code, actor.error = BUG, traceback.format_exc()
            actor.is_over = True
            self.watcher.ended(actor)
        except KilledError:
            pass
        except EndlessError:
            actor.code, actor.error = BUG, "waits without end"
            self.watcher.ended(actor)
        except BaseException as broken:  # noqa: BLE001 - raised again in the thread of the test
            self._broken.append(broken)
        actor.is_over = True
        if other := self._other(actor):
            self._wake(other)
        else:
            self._is_over.release()

    def _land(self) -> None:
        if self.in_flight:
            request, self.in_flight = self.in_flight, None
            if arrive(request, self.world):
                self.writes += 1
                self.watcher.landed()


def arrive(request: Callable[[World], Any], world: World) -> bool:
    """Carry out a late request; returns whether it changed anything."""
    before = dict(world.objects)
    with suppress(ConditionFailedError):
        request(world)
    return world.objects != before


class _Current(threading.local):
    actor: Actor | None = None


#: The actor whose thread this is.
CURRENT: Final = _Current()


def current() -> Actor:
    assert CURRENT.actor, "only actors do this"
    return CURRENT.actor


@contextmanager
def nobody() -> Iterator[None]:
    """A block of an actor's thread in which the test itself is at work, with its own clock and random numbers."""
    actor, CURRENT.actor = CURRENT.actor, None
    try:
        yield
    finally:
        CURRENT.actor = actor
