"""Downloads of a dry build: sizes of the very dump and step that a build makes, without writing them."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from generator.api import contract, downloads, keys
from generator.api.downloads import ENTRY_SIZE, DumpHead, MarketsFile
from generator.builder.dry_downloads import LastDownloads, Measured, Meter
from generator.config.settings import Config
from generator.cost.sizes import NO_DOWNLOADS
from generator.tree.generation import Weight
from tests.downloads import states
from tests.downloads.states import IDS, State, histories
from tests.support.builds import make_config

PARTITION = "state=open/part=07"
FIRST, SECOND = "2026-01-31T12:00:00.000Z", "2026-01-31T13:00:00.000Z"


def body(line: bytes) -> bytes:
    """A detail with this market."""
    return b'{"market":' + line + b',"orderBook":{"bids":[],"asks":[]},"recentFills":[],"probHistory":[]}'


def measure(config: Config, last: LastDownloads, before: State, now: State) -> Measured:
    meter = Meter(config, last)
    for market_id, line in now.items():
        meter.add(
            market_id, body(line), PARTITION, is_new=market_id not in before, is_changed=before.get(market_id) != line
        )
    return meter.measured(before.keys() - now.keys(), SECOND)


def left_of(config: Config, state: State) -> LastDownloads:
    """What a build of a state leaves."""
    made = states.make(state).written
    name = downloads.name(made.sha256, downloads.NDJSON, downloads.MARKETS_FOLDER)
    url = downloads.url(config.files_url, keys.DUMPS, name)
    file = MarketsFile(name=name, url=url, sha256=made.sha256, size=made.size, format="ndjson")
    head = DumpHead(as_of=FIRST, count=made.count, state=made.state, markets=[file])
    changes = downloads.begun(head).model_copy(update={"session": "5" * 32, "serial": 7})
    stored = {keys.detail(market_id): body(line) for market_id, line in state.items()}
    heads = {keys.head(keys.DUMPS): contract.encode(head), keys.head(keys.CHANGES): contract.encode(changes)}
    return LastDownloads.found_by({**stored, **heads}.get)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return make_config(tmp_path_factory.mktemp("config"))


def some(*numbers: int, value: str = "0.5") -> State:
    """So many markets with a property, and others that take room."""
    rest = [(f"p{number}", f'"{number * 7919}"') for number in range(20)]
    return states.state({IDS[number]: [("prob", value), *rest] for number in numbers})


@given(histories)
@settings(max_examples=15)
def test_dump_and_step_are_as_large_as_those_that_are_made(config: Config, found: list[State]) -> None:
    before, now = found[0], found[-1]
    dump = states.make(now)
    step = states.step(states.changes(before, now), limit=states.make(before).written.size)
    measured = measure(config, left_of(config, before), before, now)
    assert measured.site.dump_bytes == dump.written.size
    is_kept = step is not None and len(step) + ENTRY_SIZE <= dump.written.size
    assert (measured.site.steps, measured.site.steps_bytes) == ((1, len(step)) if step and is_kept else (0, 0))
    assert measured.step_bytes == measured.site.steps_bytes


def test_what_a_change_makes_anew_are_the_dump_and_a_step_with_an_index_and_a_head_each(config: Config) -> None:
    before, now = some(0, 1, 2, 3), some(0, 1, 2) | some(3, value="0.75")
    measured = measure(config, left_of(config, before), before, now)
    assert (measured.new.immutable, measured.new.mutable) == (4, 2)
    heads = measured.new.mutable_bytes
    assert measured.new == Weight(4, measured.site.dump_bytes + measured.step_bytes + heads, 2, heads)
    assert measured.site.weight == measured.new, "the last feed had no steps"
    assert 300 < measured.step_bytes + heads < 3_000


def test_nothing_is_new_if_no_market_changed_whatever_else_did(config: Config) -> None:
    state = some(0, 1, 2)
    measured = measure(config, left_of(config, state), state, state)
    assert (measured.new, measured.step_bytes) == (NO_DOWNLOADS, 0)
    assert measured.site.weight.objects == 5
    changed_elsewhere = Meter(config, left_of(config, state))
    for market_id, line in state.items():
        changed_elsewhere.add(market_id, body(line), PARTITION, is_new=False, is_changed=True)
    assert changed_elsewhere.measured([], SECOND) == measured


def test_a_first_build_makes_a_dump_and_a_feed_without_steps(config: Config) -> None:
    measured = measure(config, LastDownloads.found_by(lambda _: None), {}, some(0, 1, 2))
    assert (measured.new.immutable, measured.new.mutable, measured.site.steps) == (3, 2, 0)
    assert measured.new == measured.site.weight


def test_without_a_change_feed_there_is_the_dump_alone(tmp_path: Path) -> None:
    config = make_config(tmp_path, changes__enabled=False)
    measured = measure(config, LastDownloads(), {}, some(0, 1, 2))
    assert (measured.new.immutable, measured.new.mutable, measured.site.steps) == (2, 1, 0)


def test_markets_in_another_order_count_as_changed_and_their_dump_is_about_as_large(config: Config) -> None:
    state = some(0, 1, 2, 3)
    measured = measure(config, left_of(config, state), state, dict(reversed(state.items())))
    assert measured.new.mutable == 2
    assert measured.site.dump_bytes == pytest.approx(states.make(state).written.size, rel=0.1)
