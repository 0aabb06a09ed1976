"""Made-up states of a dump, and the feed that leads through them as a build would make it."""

import hashlib
import json
import uuid
import zlib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final

from hypothesis import strategies as st

from generator.downloads import dump, market_lines, segments, steps
from generator.downloads.dump import Changed, Markets, Previous

#: The lines of a dump by id, ascending.
State = dict[str, bytes]


def _ids(*, begins_group: bool) -> list[str]:
    made = (str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)) for number in count(1))
    return [*islice((one for one in made if (zlib.crc32(one.encode()) % 256 == 0) is begins_group), 9)]


#: Half of them begin a group, so that a few markets have several groups.
IDS: Final = sorted(_ids(begins_group=True)[:6] + _ids(begins_group=False))
NAMES: Final = ("question", "prob", "volume", 'a"b', "größe", "tags", "fx")
VALUES: Final = (
    "0.1", "0.10", "1e-7", "1e22", "-0.0", "0.0", "1E+2", "123456789012345678901234567890", "null", "true", "false",
    '""', r'"a\"b,c:{d}[e\\"', r'"\\"', '"☃️ \u2028 \\u2028 \\ud83d\\ude80"', '"null"', '"},{"', "[]",
    '["a","b]",1]', '{"familyId":"x","outcome":"}"}',
)  # fmt: skip
_properties = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=4, unique_by=lambda p: p[0])


def line(market_id: str, properties: list[tuple[str, str]]) -> bytes:
    """The line of a market with these JSON texts as values."""
    names = [(name.replace('"', '\\"'), value) for name, value in [("id", f'"{market_id}"'), *properties]]
    return ("{" + ",".join(f'"{name}":{value}' for name, value in names) + "}").encode()


def state(markets: Mapping[str, list[tuple[str, str]]]) -> State:
    return {market_id: line(market_id, markets[market_id]) for market_id in sorted(markets)}


states = st.dictionaries(st.sampled_from(IDS), _properties, max_size=12).map(state)


def _mixed(drawn: list[tuple[State, set[str]]]) -> list[State]:
    found = [drawn[0][0]]
    for new, touched in drawn[1:]:
        kept = {one: text for one, text in found[-1].items() if one not in touched}
        found.append(dict(sorted((kept | {one: text for one, text in new.items() if one in touched}).items())))
    return found


#: States that share most markets with the one before, as those of a site do.
histories = st.lists(st.tuples(states, st.sets(st.sampled_from(IDS), max_size=6)), min_size=1, max_size=7).map(_mixed)


def text(state: State) -> bytes:
    return b"".join(line + b"\n" for line in state.values())


def changes(before: State, after: State) -> list[Changed]:
    """What changed between two states, ascending by id."""
    found = (Changed(one, before.get(one), after.get(one)) for one in sorted({*before, *after}))
    return [change for change in found if change.before != change.after]


@dataclass
class Made:
    """A dump that was made: its bytes, and what was said of it."""

    body: bytes
    written: segments.Written
    is_compared: bool
    reported: list[Changed]
    asked: list[str]

    @property
    def previous(self) -> Previous:
        return Previous(lambda offset, size: self.body[offset : offset + size], self.written.segments)


def make(state: State, previous: Previous | None = None, changed: frozenset[str] = frozenset()) -> Made:
    """Make the dump of a state."""
    pieces, reported, asked = list[bytes](), list[Changed](), list[str]()

    def line_of(market_id: str) -> bytes:
        asked.append(market_id)
        return state[market_id]

    made = dump.make(pieces.append, Markets([*state], changed, line_of), previous, reported.append)
    return Made(b"".join(pieces), made.written, made.is_compared, reported, asked)


def step(changes: list[Changed], limit: int | None = None) -> bytes | None:
    """The step with these changes."""
    pieces = list[bytes]()
    writer = steps.StepWriter(limit)
    for change in changes:
        writer.add(change)
    return None if writer.close(pieces.append) is None else b"".join(pieces)


def without(body: bytes, keep: Container[str]) -> bytes:
    """The step without markets that are not to be kept; the same bytes if it has none of them."""
    pieces = list[bytes]()
    return body if steps.without(pieces.append, body, keep) is None else b"".join(pieces)


def applied(lines: Mapping[str, bytes], step: bytes) -> State:
    """The lines of a dump after a step, as a follower makes them; raise ValueError if the step is damaged."""
    found = [*segments.lines([step])]
    gone = {json.loads(line)["gone"] for line in found if line.startswith(b'{"gone":')}
    result = {one: line for one, line in lines.items() if hashlib.sha256(one.encode()).hexdigest() not in gone}
    for line in found[len(gone) :]:
        known = result.get(market_lines.id_of(line))
        result[market_lines.id_of(line)] = line if known is None else _merged(known, line)
    return dict(sorted(result.items()))


def _merged(known: bytes, line: bytes) -> bytes:
    return market_lines.of((market_lines.properties(known) | market_lines.properties(line)).items())


@dataclass
class Feed:
    """A change feed without heads: the steps that lead to the state, after the state each begins with."""

    state: State
    steps: list[tuple[State, bytes]] = field(default_factory=list)

    def move(self, after: State) -> None:
        """Add the step to another state, and remove from all others what is withdrawn with it."""
        made = step(changes(self.state, after))
        if made is not None:
            before = [(state, without(body, after.keys())) for state, body in self.steps]
            self.steps = [*before, (self.state, made)]
        self.state = after
