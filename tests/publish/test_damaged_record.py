"""A record that cannot be read is damaged: every command says so, `--verify` keeps what is left and makes it anew."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from generator.errors import GuardError, StoreError
from generator.publish import record, states
from generator.publish.guards import LiftedGuards
from generator.publish.lease import Lease
from generator.stores.store import If
from tests.publish.faults.scene import Scene, check_whole, record_of
from tests.support.sites.publishing import PublishedSite
from tests.support.sites.rows import market_id
from tests.support.stores.records import named_states, split

#: Work and memories of publishers that were cut short.
WORK: Final = {
    "owner": "o", "process": "p", "who": "w", "since": "2026-01-31T12:00:00Z", "deadline": "2026-01-31T12:00:00Z",
    "touched": [],
}  # fmt: skip
LATE: Final = {"until": "2100-01-01T00:00:00.000Z", "touched": ["v1/llms.txt"], "generations": []}


@pytest.fixture
def scene(scene: Scene) -> Iterator[Scene]:
    """A scene whose sites have a large record."""
    with split():
        yield scene


def root_of(scene: Scene) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(scene.objects()[record.KEY].body)
    return root


def put_root(scene: Scene, root: dict[str, Any]) -> None:
    scene.store(scene.config("a")).put(record.KEY, json.dumps(root).encode(), If.ALWAYS)


#: By what is damaged: how.
DAMAGES: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "as-of": lambda root: root["built"].update(asOf="yesterday"),
    "as-of without a time zone": lambda root: root["built"].update(asOf="2026-01-31T12:00:00"),
    "layout": lambda root: root["built"].update(layout="x"),
    "another state": lambda root: root["built"].update(state="x"),
    "no state": lambda root: root["built"].pop("state"),
    "state elsewhere": lambda root: root["built"].update(state=f"../{root['built']['state']}"),
    "retirement": lambda root: root["built"].update(retirements=["x"]),
    "retirements": lambda root: root["built"].pop("retirements"),
    "intent": lambda root: root.update(intent="x"),
    "work": lambda root: root.update(work={**WORK, "deadline": "x"}),
    "late": lambda root: root.update(abandoned=[{**LATE, "until": "x"}]),
    "probe": lambda root: root.update(probedAt="x"),
}


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_whatever_cannot_be_read_is_damage_that_verifying_gets_through(
    scene: Scene, damage: Callable[[dict[str, Any]], object]
) -> None:
    scene.publish(scene.site("a", 0))
    new = scene.site("a", 1, m1={"question": "New?"})
    scene.publish(new)
    root = root_of(scene)
    damage(root)
    put_root(scene, root)
    with pytest.raises(StoreError, match=r"(damaged|altered|missing).*rebuild|publish --verify"):
        scene.publish(scene.site("a", 2, m1={"question": "Newer?"}))
    again = scene.site("a", 3, m1={"question": "Newest?"})
    scene.publish(again, is_verifying=True)
    check_whole(scene.objects(), again)


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("share", [1, 2], ids=["all lost", "some lost"])
def test_verifying_with_lost_states_still_refuses_a_much_smaller_build(scene: Scene, share: int) -> None:
    scene.publish(scene.site("a", 0))
    found = sorted(named_states({key: found.body for key, found in scene.objects().items()}), reverse=True)
    scene.store(scene.config("a")).delete(found[::share])
    smaller = scene.site("b", 1, **dict.fromkeys(["m1", "m2", "m3", "m4", "m5", "m6"]))
    with pytest.raises(GuardError, match=r"6 of 9 markets would disappear"):
        scene.publish(smaller, lifted=LiftedGuards(), is_verifying=True)
    whole = scene.site("c", 1)
    scene.publish(whole, lifted=LiftedGuards(), is_verifying=True)
    check_whole(scene.objects(), whole)


def test_verifying_with_a_lost_state_remembers_what_killed_publishers_may_still_do(scene: Scene) -> None:
    site = scene.site("a", 0)
    scene.publish(site)
    put_root(scene, {**root_of(scene), "doubtedUntil": LATE["until"]})
    store = scene.store(site.config)
    store.delete([states.key(root_of(scene)["built"]["state"])])
    with pytest.raises(StoreError, match="missing; it is part of the record"):
        Lease(store).read()
    scene.publish(site, is_verifying=True)
    published = record_of(scene.objects())
    assert published
    assert published.is_doubted


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("error", [ValueError("a bug"), StoreError("damaged")], ids=["bug", "damage"])
@pytest.mark.parametrize("references", [[market_id(1)], [market_id(1), "some-slug"]], ids=["id", "id and slug"])
def test_a_takedown_blocks_markets_whatever_happens_while_it_reads_the_record(
    published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch, error: Exception, references: list[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Lease, "read", fail)
        result = published_site.run("takedown", *references)
    assert result.exit_code == 1
    assert str(error) in result.stderr
    assert market_id(1) in json.loads(published_site.stored()["blocked.json"])["markets"]
    assert market_id(1) in published_site.run("takedown").stdout
    if len(references) == 1:
        assert published_site.traces(1, output=True) == [
            key for key in published_site.traces(1) if key.startswith("store ")
        ]
    published_site.done("publish")
    assert published_site.traces(1) == []
