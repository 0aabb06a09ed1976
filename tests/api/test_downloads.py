"""The heads of downloads: short, and read by programs of every version."""

import hashlib
from typing import NamedTuple

import pytest

from generator.api import changes, contract
from generator.api.changes import ChangesHead, Step
from generator.api.downloads import ENTRY_SIZE, DumpHead, MarketsFile

AS_OF = "2026-01-31T12:00:00.000Z"


class Content(NamedTuple):
    sha256: str
    size: int


def content(number: int) -> Content:
    return Content(hashlib.sha256(str(number).encode()).hexdigest(), number)


def head(steps: int) -> ChangesHead:
    file = MarketsFile.of(content(150_000), "https://api.example.org")
    dump = DumpHead(as_of=AS_OF, count=1_940, state=content(0).sha256, markets=[file])
    found = [Step.of(content(99 + number), AS_OF) for number in range(steps)]
    return changes.begun(dump).model_copy(update={"serial": 1 + steps, "steps": found})


def test_a_step_takes_about_a_hundred_bytes_of_the_head_and_names_its_digest_once() -> None:
    none, many = (contract.encode(head(steps)) for steps in (0, 2_000))
    assert (len(many) - len(none)) / 2_000 == pytest.approx(ENTRY_SIZE, abs=1)
    digest = content(99).sha256
    assert many.count(digest[:32].encode()) == 1
    assert many.count(digest[32:].encode()) == 0


def test_the_address_of_a_step_is_that_of_all_steps_and_its_name() -> None:
    found = head(1)
    (step,) = found.steps
    assert found.steps_url + step.name == f"https://api.example.org/{step.key}"


def test_each_step_leads_from_one_serial_to_the_next_and_the_last_to_that_of_the_head() -> None:
    found = head(3).model_copy(update={"serial": 9})
    assert [serial for serial, _ in found.numbered()] == [6, 7, 8]


def feed(serial: int, *instants: int, state: int = 0) -> ChangesHead:
    """A head at the last of these instants, in minutes, with a step for each."""
    times = [f"2026-01-31T12:{minute:02}:00.000Z" for minute in instants]
    found = [Step.of(content(1), time) for time in times]
    return head(0).model_copy(
        update={"serial": serial, "as_of": times[-1], "state": content(state).sha256, "steps": found}
    )


@pytest.mark.parametrize(
    ("later", "before", "leads_on"),
    [
        (feed(5, 4, 5), feed(4, 3, 4), True),
        (feed(5, 4, 5), feed(4, 3, 6), False),  # another state at serial 4
        (feed(5, 3, 4, 5), feed(5, 2, 4, 5), False),  # the same state by another step
        (feed(5, 4, 5), feed(5, 4, 5, state=1), False),
        (feed(9, 8, 9), feed(4, 3, 4), True),  # too far behind: its readers begin with the dump
        (feed(9, 8, 9), feed(7, 6, 7), False),  # nothing tells what was at serial 7, where the first step starts
        (feed(2, 2), feed(1, 1), True),  # sessions have one beginning
        (feed(4, 3, 4), feed(5, 4, 5), False),
    ],
)
def test_a_feed_leads_on_if_no_reader_of_the_former_one_is_led_astray(
    later: ChangesHead, before: ChangesHead, *, leads_on: bool
) -> None:
    assert later.leads_on(before) == leads_on
