"""A blocked list that is damaged or cannot be written: no takedown is forgotten, and no publish goes on without it."""

from pathlib import Path

import pytest

from generator.tree import blocklist
from tests.support.sites.publishing import LONG_AGO, PublishedSite
from tests.support.sites.rows import market_id
from tests.support.stores.s3.behaviour import DENIED, Fault
from tests.support.stores.s3.wire import Request

NAME = "s3://markets/api"
COPY = Path("output", blocklist.KEY)
DAMAGED = b'{"format": 2, "markets": {"cut off'
ASIDE = blocklist.aside_name(DAMAGED)
REMEDY = "restore it, or delete it and take"
#: Everything that reads the list, but for takedowns.
READERS = (("publish",), ("publish", "--verify"), ("rebuild",), ("hold",), ("hold", "why"), ("hold", "--release"))


def blocking(number: int) -> bytes:
    """A list that blocks one market, as whoever restores a damaged one has it in a backup."""
    return blocklist.BlockedList().decided([market_id(number)], is_blocked=True, now=LONG_AGO).encoded()


def denies_the_list(request: Request) -> Fault | None:
    return DENIED if request.operation == "PutObject" and request.key.endswith(blocklist.KEY) else None


# ── a list that cannot be written ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", ["denied", "unconditional"])
def test_where_the_list_cannot_be_written_nothing_is_deleted_but_the_next_publish_from_the_folder_obeys(
    published_site: PublishedSite, fault: str
) -> None:
    if fault == "denied":
        published_site.server.before = denies_the_list
    published_site.server.behaviour.ignores_conditions = fault == "unconditional"
    message = published_site.refused(1, "takedown", market_id(1))
    said = {
        "denied": (f"{NAME}/{blocklist.KEY}: ", "s3:PutObject"), "unconditional": (NAME, "ignores conditional puts")
    }[fault]  # fmt: skip
    assert all(words in message for words in said), message
    assert published_site.traces(1, output=False)
    assert blocklist.decode(COPY.read_bytes()).ids() == {market_id(1)}
    published_site.server.before = None
    published_site.server.behaviour.ignores_conditions = False
    published_site.done("publish")
    assert published_site.traces(1) == []
    assert published_site.blocked_ids() == {market_id(1)}
    published_site.check()


# ── a damaged list in the store ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def damaged(published_site: PublishedSite) -> PublishedSite:
    """A site whose blocked list is damaged, in front of a build that would change what is published."""
    published_site.put(blocklist.KEY, DAMAGED)
    return published_site


def test_a_damaged_list_stops_all_but_takedowns_and_is_left_as_it_is(damaged: PublishedSite) -> None:
    for command in READERS:
        message = damaged.refused(1, *command)
        assert f"{NAME}: {blocklist.KEY}: " in message
        assert REMEDY in message
        assert damaged.stored()[blocklist.KEY] == DAMAGED
    assert REMEDY in damaged.run("check").output


def takes_down(site: PublishedSite, number: int, place: str) -> None:
    """Take a market down where a damaged list is kept aside: it is gone, and the exit code says that others may not."""
    result = site.run("takedown", market_id(number))
    assert result.exit_code == 1
    where = place.removesuffix(": ").removesuffix("/")
    assert f"{where}: nothing is left of the blocked markets" in result.stderr
    assert f"error: {place}{ASIDE}: " in result.stderr
    assert REMEDY in result.stderr


def test_a_takedown_removes_the_market_and_keeps_a_damaged_list_aside(damaged: PublishedSite) -> None:
    takes_down(damaged, 1, f"{NAME}: ")
    assert damaged.traces(1) == []
    assert damaged.stored()[ASIDE] == DAMAGED
    assert damaged.blocked_list().aside == (ASIDE,)
    assert damaged.blocked_ids() == {market_id(1)}
    for command in (("publish",), ("publish", "--verify"), ("rebuild",)):
        assert f"{NAME}: {ASIDE}: " in damaged.refused(1, *command)
    takes_down(damaged, 2, f"{NAME}: ")
    assert damaged.traces(2) == []
    assert damaged.stored()[ASIDE] == DAMAGED
    assert "error: " in (checked := damaged.run("check")).stdout
    assert (checked.exit_code, ASIDE in checked.stdout, REMEDY in checked.stdout) == (1, True, True)


def test_a_list_that_was_kept_aside_and_is_restored_is_obeyed_and_deleted_by_the_next_publish(
    damaged: PublishedSite,
) -> None:
    takes_down(damaged, 1, f"{NAME}: ")
    restored = blocklist.decode(blocking(2)).model_copy(
        update={"hold": blocklist.Hold(reason="why", who="me", since=LONG_AGO)}
    )
    damaged.put(ASIDE, restored.encoded())
    held = damaged.run("publish")
    assert (held.exit_code, ": why; no build is published" in held.stderr) == (3, True)
    assert damaged.traces(2, output=False) == [], "what is blocked is withdrawn all the same"
    assert damaged.blocked_list().hold == restored.hold
    damaged.done("hold", "--release")
    damaged.done("publish")
    assert damaged.traces(1) == damaged.traces(2) == []
    assert damaged.blocked_ids() == {market_id(1), market_id(2)}
    assert damaged.blocked_list().aside == ()
    assert ASIDE not in damaged.stored()
    damaged.done("rebuild")
    assert damaged.traces(1) == damaged.traces(2) == []


def test_a_list_that_was_kept_aside_and_is_deleted_by_hand_stops_nothing_any_more(damaged: PublishedSite) -> None:
    takes_down(damaged, 1, f"{NAME}: ")
    damaged.remove(ASIDE)
    damaged.done("takedown", market_id(2))
    assert damaged.blocked_list().aside == ()
    damaged.done("publish")
    assert damaged.blocked_ids() == {market_id(1), market_id(2)}
    damaged.check()


# ── a damaged copy in the folder ──────────────────────────────────────────────────────────────────────────────────


def test_in_a_folder_without_target_a_damaged_list_is_kept_aside_too_and_stops_builds(
    published_site: PublishedSite,
) -> None:
    site = published_site
    site.target = ""
    COPY.unlink(missing_ok=True)
    COPY.write_bytes(DAMAGED)
    assert REMEDY in site.refused(1, "build")
    assert COPY.read_bytes() == DAMAGED
    takes_down(site, 1, "output/")
    aside = Path("output", ASIDE)
    assert (aside.read_bytes(), aside.stat().st_mode & 0o777) == (DAMAGED, 0o600)
    assert not [key for key in site.traces(1) if key.startswith("output ")]
    assert ASIDE in site.refused(1, "build")
    aside.write_bytes(blocking(2))
    site.done("build")
    assert not [key for number in (1, 2) for key in site.traces(number) if key.startswith("output ")]
    assert not aside.exists()
    assert blocklist.decode(COPY.read_bytes()).ids() == {market_id(1), market_id(2)}


def test_a_damaged_copy_in_the_folder_of_a_target_stops_publishes_from_there_only(
    published_site: PublishedSite,
) -> None:
    COPY.unlink(missing_ok=True)
    COPY.write_bytes(DAMAGED)
    result = published_site.run("takedown", market_id(1))
    assert result.exit_code == 1
    assert f"output/{ASIDE}: " in result.stderr
    assert published_site.traces(1) == []
    assert ASIDE in published_site.refused(1, "publish")
    published_site.done("rebuild", output="elsewhere")
    Path("output", ASIDE).write_bytes(blocking(2))
    published_site.done("publish", "--accept=older")
    assert published_site.traces(2) == []


# ── other formats ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_list_of_a_later_format_is_refused_everywhere_and_left_as_it_is(published_site: PublishedSite) -> None:
    later = b'{"format": 3, "markets": {}}'
    published_site.put(blocklist.KEY, later)
    for command in (*READERS, ("takedown", market_id(1)), ("takedown",)):
        assert "format 3, this program knows 2; upgrade this program" in published_site.refused(1, *command)
    assert published_site.stored()[blocklist.KEY] == later
    published_site.remove(blocklist.KEY)
    COPY.unlink(missing_ok=True)
    COPY.write_bytes(later)
    for target, commands in ((NAME, (("publish",), ("rebuild",))), ("", (("build",), ("takedown", market_id(1))))):
        published_site.target = target
        for command in commands:
            assert "format 3, this program knows 2; upgrade this program" in published_site.refused(1, *command)
    assert COPY.read_bytes() == later
    assert not [*Path("output").glob("blocked-*")]
