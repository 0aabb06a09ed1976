"""The requests for the record and the blocked list, case by case, as the store counts them; readers' objects aside."""

from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

from generator.api.contract import API_VERSION
from generator.publish import record
from generator.tree.blocklist import KEY
from generator.tree.files import STATES
from tests.publish.faults.scene import LEASE_S, PREFIX, Scene, publish_site, take_down
from tests.publish.faults.strikes import DiedError, DiesAfter
from tests.support.stores.records import split
from tests.support.stores.s3.server import Entry

#: What a case does after a first publish; it returns what is counted, or None if it was all of that.
Case: TypeAlias = Callable[[Scene], None]


def kind(entry: Entry) -> str | None:
    """What a request is about; None for one of readers' objects."""
    key = entry.key.removeprefix(PREFIX)
    if key.startswith(f"{API_VERSION}/"):
        return None
    names = {record.KEY: "root", KEY: "list"}
    of = "state" if key.startswith(STATES) else names.get(key, "probe" if key.startswith("probe-") else "")
    operation = {"DeleteObjects": "Delete", "ListObjectsV2": "List", "GetBucketVersioning": "Versions"}
    return f"{operation.get(entry.operation, entry.operation.removesuffix('Object'))} {of}".strip()


def counted(scene: Scene, done: int) -> str:
    """The requests since so many, in the order of their kinds."""
    found = Counter(filter(None, map(kind, scene.server.log[done:])))
    return ", ".join(f"{number} {name}" for name, number in sorted(found.items()))


def nothing(scene: Scene) -> None:
    scene.publish(scene.site("a", 1))


def changed(scene: Scene) -> None:
    scene.publish(scene.site("a", 1, m1={"question": "New?"}, m2={"question": "New?"}))


def elsewhere(scene: Scene) -> None:
    scene.publish(scene.site("b", 1, m1={"question": "New?"}))


def withdrawn(scene: Scene) -> None:
    scene.publish(scene.site("a", 1, m6=None))


def verified(scene: Scene) -> None:
    scene.publish(scene.site("a", 1), is_verifying=True)


def taken_down(scene: Scene) -> None:
    take_down(scene, 6)


def taken_over(scene: Scene) -> None:
    site = scene.site("a", 1, m1={"question": "New?"})
    with pytest.raises(DiedError):
        publish_site(site, DiesAfter(scene.store(site.config), 8))
    scene.pass_time(LEASE_S + 2)
    del scene.server.log[:]
    scene.publish(site)


#: By case: the requests where the record is large, and where it is small.
CASES: Final[dict[str, tuple[Case, str, str]]] = {
    "nothing changed": (nothing, "1 Get list, 1 Get root, 2 Put root", "1 Get list, 1 Get root, 2 Put root"),
    "some markets changed": (
        changed,
        "3 Get list, 1 Get root, 1 List, 3 Put root, 2 Put state",
        "3 Get list, 1 Get root, 3 Put root",
    ),
    "another machine published last": (
        elsewhere,
        "3 Get list, 1 Get root, 1 Get state, 1 List, 3 Put root, 2 Put state",
        "3 Get list, 1 Get root, 3 Put root",
    ),
    "a market withdrawn": (
        withdrawn,
        "4 Delete, 3 Get list, 1 Get root, 2 List, 3 Put root, 2 Put state, 2 Versions",
        "3 Delete, 3 Get list, 1 Get root, 2 List, 3 Put root, 2 Versions",
    ),
    "a market taken down": (
        taken_down,
        "5 Delete, 3 Get list, 1 Get root, 1 Get state, 3 List, 2 Put list, 3 Put root, 2 Put state, 2 Versions",
        "4 Delete, 3 Get list, 1 Get root, 3 List, 2 Put list, 3 Put root, 2 Versions",
    ),
    "verified": (
        verified,
        "1 Delete, 1 Get list, 1 Get root, 1 Get state, 1 Head probe, 3 List, 5 Put probe, 3 Put root",
        "1 Delete, 1 Get list, 1 Get root, 1 Head probe, 3 List, 5 Put probe, 3 Put root",
    ),
    "a killed publisher's work": (
        taken_over,
        "3 Get list, 1 Get root, 1 Get state, 3 List, 3 Put root, 1 Put state",
        "3 Get list, 1 Get root, 3 List, 3 Put root",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_large_record_takes_these_requests(scene: Scene, case: str) -> None:
    act, wanted, _ = CASES[case]
    with split(has_small_intents=True):
        scene.publish(scene.site("a", 0))
        done = len(scene.server.log)
        act(scene)
    found = counted(scene, 0 if act is taken_over else done)
    assert found == wanted, found


@pytest.mark.parametrize("case", CASES)
def test_a_small_record_takes_these_requests(scene: Scene, case: str) -> None:
    act, _, wanted = CASES[case]
    scene.publish(scene.site("a", 0))
    done = len(scene.server.log)
    act(scene)
    found = counted(scene, 0 if act is taken_over else done)
    assert found == wanted, found
