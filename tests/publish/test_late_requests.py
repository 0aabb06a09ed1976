"""A request without an answer is sent again; the first one may take effect later, also after the run ended well."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from generator.api import keys
from generator.publish import record
from generator.stores.directory import Directory
from generator.stores.store import BeforeEach, UnavailableError, UnreachableError, Watched, nothing
from tests.support.sites.builds import NOW
from tests.support.sites.publishing import CLOSED, PREFIX, PublishedSite
from tests.support.sites.rows import market_id
from tests.support.stores.s3.behaviour import DENIED, DROPPED, Fault
from tests.support.stores.s3.wire import Answer, Request

# Many requests are sent twice here.
pytestmark = pytest.mark.usefixtures("impatient")

#: A market that later pages of the list of open ones show, too.
MARKET = 5
DETAIL = keys.detail(market_id(MARKET))
#: The request that lists a small store.
LISTING = "ListObjectsV2 "
#: More requests than any command here needs.
MANY = 600


@contextmanager
def dropping(site: PublishedSite, is_chosen: Callable[[Request], bool]) -> Iterator[list[Request]]:
    """Answer none of these requests the first time; yields those."""
    dropped = list[Request]()

    def before(request: Request) -> Fault | None:
        if request.key_id is None or not is_chosen(request) or any(_name(request) == _name(found) for found in dropped):
            return None
        dropped.append(request)
        return DROPPED

    site.server.before = before
    try:
        yield dropped
    finally:
        site.server.before = None


def _name(request: Request) -> tuple[str, str, bytes]:
    return request.operation, request.key, request.body


def is_deletion(request: Request) -> bool:
    return request.operation == "DeleteObjects" and b"/v1/" in request.body


def is_page(request: Request) -> bool:
    key = request.key.removeprefix(PREFIX)
    return request.operation == "PutObject" and keys.is_immutable(key) and "/lists/open/new/" in key


def undo(site: PublishedSite) -> None:
    site.done("takedown", "--undo", market_id(MARKET))
    site.done("rebuild")


def test_what_was_answered_leaves_no_doubt_and_what_was_not_is_doubted_for_an_hour_and_one_look(
    published_site: PublishedSite,
) -> None:
    published_site.edit(MARKET, volume=77.0)
    published_site.done("rebuild")
    assert published_site.record().doubted_until == ""
    published_site.edit(MARKET, volume=78.0)
    with dropping(published_site, is_page):
        published_site.done("rebuild")
    until = published_site.record().doubted_until
    before = published_site.stored()
    published_site.server.behaviour.clock_offset_s += 600
    assert published_site.requests("publish") == ["GetObject manifest.json", "GetObject blocked.json", LISTING]
    assert published_site.stored() == before, "a look that finds nothing writes nothing"
    published_site.server.behaviour.clock_offset_s += 3_700
    published_site.remove(DETAIL)
    published_site.done("publish")
    assert DETAIL in published_site.objects(), "nothing is forgotten before a look after the hour"
    assert published_site.record().doubted_until == ""
    assert until
    assert len(published_site.requests("publish")) <= 5
    assert LISTING not in published_site.requests("publish")


def test_a_record_of_a_former_program_that_names_late_requests_is_doubted(published_site: PublishedSite) -> None:
    root = json.loads(published_site.stored()[record.KEY])
    entry = {"touched": [DETAIL], "generations": []}
    root["abandoned"] = [{**entry, "until": "2099-01-31T12:00:00.000Z"}, {**entry, "until": NOW}]
    published_site.put(record.KEY, json.dumps(root).encode())
    published_site.remove(DETAIL)
    published_site.done("publish")
    assert DETAIL in published_site.objects()
    assert NOW < published_site.record().doubted_until < "2099", "the store's clock was ahead then"


def test_a_detail_that_a_late_deletion_of_an_undone_takedown_removed_is_put_again(
    published_site: PublishedSite,
) -> None:
    """No record names that deletion, as it is sent without a lease; and nothing else has changed.

    The run that looks last is the first whose build is later than that hour, however late it comes.
    """
    published_site.done("takedown", market_id(MARKET))
    undo(published_site)
    published_site.remove(DETAIL)
    published_site.done("publish")
    published_site.check()
    published_site.remove(DETAIL)
    published_site.server.behaviour.clock_offset_s += 7_200
    later = datetime.now(UTC) + timedelta(hours=2)
    published_site.done("rebuild", "--as-of", later.isoformat())
    published_site.check()
    assert LISTING not in published_site.requests("publish")


def test_a_takedown_that_puts_in_vain_what_late_deletions_remove_ends_and_says_so(
    published_site: PublishedSite,
) -> None:
    with dropping(published_site, is_deletion):
        published_site.done("takedown", market_id(MARKET))
    undo(published_site)
    pages = (key for key in sorted(published_site.objects()) if "/lists/open/new/" in key)
    published_site.remove(lost := next(filter(keys.is_immutable, pages)))
    published_site.forget_output()
    asked = 0

    def before(_: Request) -> Fault | None:
        nonlocal asked
        asked += 1
        return DENIED if asked > MANY else None

    def after(request: Request, _: Answer) -> None:
        if request.operation == "PutObject" and request.key.endswith(lost):
            published_site.remove(lost)

    published_site.server.before, published_site.server.after = before, after
    result = published_site.run("takedown", market_id(CLOSED))
    assert asked < MANY
    assert result.exit_code == 1
    assert f"{lost}: deleted or altered by a request that took effect late" in result.stderr
    assert published_site.record().work is None, "the lease is released"
    published_site.server.before = published_site.server.after = None
    published_site.done("rebuild")
    assert published_site.traces(CLOSED) == []
    published_site.check()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("is_verifying", [False, True])
def test_what_a_late_put_showed_again_is_removed_from_caches_by_whichever_run_finds_it(
    published_site: PublishedSite,
    tmp_path: Path,
    is_verifying: bool,  # noqa: FBT001 - a row
) -> None:
    notes = tmp_path / "notes"
    purge = {"publish__purge_command": f"sh -c 'echo purged >> {notes}'"}
    detail = published_site.objects()[DETAIL]
    with dropping(published_site, is_deletion):
        published_site.done("takedown", market_id(MARKET), **purge)
    notes.unlink()
    published_site.put(DETAIL, detail)
    published_site.done("publish", *(["--verify"] if is_verifying else []), **purge)
    assert DETAIL not in published_site.objects()
    assert notes.exists()


@pytest.mark.parametrize(("error", "may_be_late"), [(UnavailableError, True), (UnreachableError, False)])
def test_only_a_request_that_was_sent_may_take_effect_late(
    tmp_path: Path, error: type[UnavailableError], *, may_be_late: bool
) -> None:
    class Silent(Directory):
        def delete(self, keys: Sequence[str], before_each: BeforeEach = nothing) -> None:  # noqa: ARG002 - the protocol's
            raise error

    store = Watched(Silent(tmp_path))
    with pytest.raises(error):
        store.delete(["v1/a"])
    assert store.is_unanswered is may_be_late
