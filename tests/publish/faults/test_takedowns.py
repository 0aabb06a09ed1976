"""A takedown and a publish that interrupt each other, with requests in parallel: blocked markets stay away."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from generator.api import keys
from generator.search.buckets import KEY_LENGTH
from generator.tree import layouts
from tests.publish.faults.scene import (
    PREFIX,
    Scene,
    check_hidden,
    check_known,
    check_lists,
    code_of,
    record_of,
    take_down,
)
from tests.publish.faults.sites import SiteContent, secret, without
from tests.publish.faults.strikes import ANY, Strike, Watch
from tests.support.stores.s3.wire import Answer, Request
from tests.support.waiting import PATIENCE_S

#: Two of the lists do not hold it, so a takedown leaves them alone.
HIDDEN = 7


def check_quiet_without(scene: Scene, number: int) -> None:
    objects = scene.objects()
    published = record_of(objects)
    assert published
    assert published.work is None
    assert not published.due
    check_known(objects)
    check_hidden(objects, number)


def interrupted_publish(scene: Scene, site: SiteContent, strike: Strike) -> None:
    """Hold a publish at a request until a takedown is done, or waits for it; if it is done, nothing may undo it."""
    is_waiting_or_done, is_done = threading.Event(), threading.Event()
    shown: list[AssertionError] = []

    def look(request: Request, _: Answer) -> None:
        if request.operation == "PutObject":
            try:
                check_hidden(scene.objects(), HIDDEN)
            except AssertionError as error:
                shown.append(error)

    with ThreadPoolExecutor(1) as pool:

        def run() -> None:
            try:
                take_down(scene, HIDDEN, notify=lambda _: is_waiting_or_done.set())
                is_done.set()
            finally:
                is_waiting_or_done.set()

        started: list[Future[None]] = []

        def act() -> None:
            started.append(pool.submit(run))
            assert is_waiting_or_done.wait(timeout=PATIENCE_S)
            if is_done.is_set():
                scene.server.after = look

        with Watch(strike, act).over(scene.server):
            code = code_of(lambda: scene.publish(site))
        assert started, f"{strike} never came"
        started[0].result()
    assert code in (0, 4)
    assert not shown, f"{strike}: {shown[0]}"


@pytest.mark.campaign(short=2)
@pytest.mark.parametrize("request_", [2, 5, 20, 40])
def test_a_takedown_during_a_publish_wins(scene: Scene, request_: int) -> None:
    scene.publish_everything()
    scene.layouts = dict.fromkeys(("a", "b", "elsewhere"), layouts.COMPACT)
    old = scene.site("a", 0)
    new = scene.site("b", 1, m1={"question": "New?"}, m7={"question": "Question 7, edited?"})
    scene.publish(old)
    interrupted_publish(scene, new, Strike(ANY, request_))
    check_quiet_without(scene, HIDDEN)
    check_lists(scene, without(old.state, HIDDEN), without(new.state, HIDDEN))
    again = scene.site("b", 2, m7={"question": "Question 7, again?"})
    scene.publish(again)
    check_quiet_without(scene, HIDDEN)
    check_lists(scene, without(again.state, HIDDEN))


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("broken", [keys.head("all/popular"), keys.head("all/volume"), keys.SEARCH])
@pytest.mark.parametrize("body", [None, b"[\n]", b"<Error/>"])
def test_what_cannot_be_read_of_lists_and_their_index_is_made_again(
    scene: Scene, broken: str, body: bytes | None
) -> None:
    """The index leads into all lists; of it, the part that has the word of the market is broken."""
    scene.searches, scene.layouts = True, dict.fromkeys(("a", "elsewhere"), layouts.COMPACT)
    site = scene.site("a", 0)
    scene.publish(site)
    word = secret(HIDDEN)[KEY_LENGTH:].encode()
    spoilt = [key for key, found in scene.objects().items() if key == broken or (broken in key and word in found.body)]
    assert spoilt
    for key in spoilt:
        scene.server.bucket.delete(PREFIX + key)
        if body is not None:
            scene.server.bucket.put(PREFIX + key, body, {})
    take_down(scene, HIDDEN)
    check_quiet_without(scene, HIDDEN)
    check_lists(scene, without(site.state, HIDDEN))
