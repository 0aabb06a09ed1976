"""The proxy injects what it says, as often as it counts, and nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.clients.faulting_proxy import FAULTS, Fate, FaultingProxy, running
from tests.downloads import states
from tests.downloads.states import IDS
from tests.support.readers.change_feed import HEAD, ChangeFeedSite, serving
from tests.support.sites.builds import ROOT


@pytest.fixture(scope="module")
def change_feed_site() -> Iterator[ChangeFeedSite]:
    with serving() as site:
        site.begin(states.state({one: [("question", '"Snow?"')] for one in IDS[:9]}))
        yield site


def told(url: str) -> bytes:
    """What a plain reader gets, or the words of its error."""
    try:
        with urlopen(url) as answer:  # noqa: S310 - of this machine
            return bytes(answer.read())
    except HTTPError as error:
        error.close()
        return b"status %d" % error.code
    except HTTPException as error:
        return type(error).__name__.encode()
    except OSError as error:
        return b"reset" if "reset" in str(error) or "closed" in str(error) else str(error).encode()


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_a_fault_can_be_noticed_and_is_counted(change_feed_site: ChangeFeedSite, fault: str) -> None:
    body = change_feed_site.answers[HEAD].body
    fate = Fate((fault,) if fault else (), seed=3, share=1, in_a_row=9)
    with running(FaultingProxy(change_feed_site.url, fate)) as proxy:
        if fault == "stall":
            proxy.released.set()
        found = told(proxy.url + HEAD)
        seen = {
            "5xx": found.startswith(b"status 5"),
            "429": found == b"status 429",
            "cut": found == b"IncompleteRead",
            "json": found != body and not found.startswith(b"status"),
            "reset": found in {b"reset", b"IncompleteRead"},
        }
        assert seen.get(fault, found == body), found
        assert fate.injected == ({fault: 1} if fault else {})


def test_no_more_requests_meet_a_fault_in_a_row_than_it_may(change_feed_site: ChangeFeedSite) -> None:
    fate = Fate(("5xx", "429"), seed=1, share=0.9, in_a_row=3)
    fates = [fate.next() for _ in range(200)]
    assert all(None in fates[start : start + 4] for start in range(196))
    assert sum(fate.injected.values()) == 200 - fates.count(None) > 100


def test_what_stalls_goes_on_when_it_is_released_and_ends_when_the_client_goes(
    change_feed_site: ChangeFeedSite,
) -> None:
    with running(FaultingProxy(change_feed_site.url, Fate(("stall",), seed=1, share=1, in_a_row=9))) as proxy:
        with urlopen(proxy.url + HEAD) as answer:  # noqa: S310 - of this machine
            assert answer.read(9) == change_feed_site.answers[HEAD].body[:9]
        answer = urlopen(proxy.url + HEAD)  # noqa: S310
        told(f"{proxy.url}/_proxy/release")
        assert answer.read() == change_feed_site.answers[HEAD].body


def test_it_runs_by_itself_and_is_told_what_to_inject(change_feed_site: ChangeFeedSite) -> None:
    command = [sys.executable, "-S", "-m", "tests.clients.faulting_proxy", "--target", change_feed_site.url]
    options = ["--seed", "5", "--faults", "429", "--share", "1", "--in-a-row", "99", "--base-url", change_feed_site.url]
    with subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            assert told(url + HEAD) == b"status 429"
            told(f"{url}/_proxy/faults?")
            head = json.loads(told(url + HEAD))
            assert head["dump"]["url"].startswith(f"{url}/v1/")
            assert json.loads(told(f"{url}/_proxy/counts")) == {"requests": 2, "429": 1}
        finally:
            process.terminate()
    with suppress(OSError):
        assert told(url) != b""
