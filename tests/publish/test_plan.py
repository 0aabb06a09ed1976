"""Plans, case by case, and applied to a model of a store left in any state."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import keys
from generator.api.contract import MarketStatus
from generator.publish.plan import NO_DOUBTS, Doubts, GenerationStep, Plan, Reason, Rules, Step, plan
from generator.publish.record import Published, Work
from generator.tree import generations
from generator.tree.manifest import Current, Manifest, Retired
from tests.support.campaigns import rounds
from tests.support.sites.builds import manifest_of
from tests.support.sites.rows import market_id

LIFETIME = timedelta(hours=6)
NOW = "2026-01-31T12:00:00.000Z"
EARLIER = "2026-01-31T11:00:00.000Z"
LONG_AGO = "2026-01-31T05:59:59.000Z"
RULES = Rules(NOW, LIFETIME)
LIST = "open/new"
OTHER = "closed/new"
#: Generations of the layout `chunks`, which share chunks.
CHUNKS = {"c1": ("x", "y"), "c2": ("y", "z"), "c3": ("x", "z", "y"), "c4": ("w",)}
DETAIL = keys.detail(market_id(1))


def current(generation: str, count: int = 3) -> Current:
    chunks = CHUNKS.get(generation, ())
    return Current(generation=generation, count=count, bytes=count * 100, chunks=chunks)


def retired(generation: str, at: str = EARLIER, *, name: str = LIST, partial: bool = False) -> Retired:
    return Retired(list=name, retired_at=at, partial=partial, **dict(current(generation)))


def manifest(
    lists: dict[str, str] | None = None,
    objects: dict[str, str] | None = None,
    markets: dict[str, tuple[MarketStatus, ...]] | None = None,
    old: tuple[Retired, ...] = (),
) -> Manifest:
    found = {name: current(generation) for name, generation in (lists or {}).items()}
    return manifest_of(as_of=NOW, retired=old, objects=objects or {}, current=found, markets=markets or {})


def record(built: Manifest, touched: tuple[str, ...] | None = None, due: tuple[Retired, ...] = ()) -> Published:
    work = None
    if touched is not None:
        work = Work(owner="o", process="p", who="w", since=NOW, deadline=NOW, touched=touched)
    return Published(sequence=1, built=built, etags=dict.fromkeys(built.objects, "etag"), work=work, due=due)


def doubt(*doubted: str) -> Rules:
    return Rules(NOW, LIFETIME, doubts=Doubts(keys=frozenset(doubted)))


def steps(made: Plan) -> list[tuple[str, str, Reason]]:
    """The steps for mutable objects."""
    deletions = [("delete", step.key, step.reason) for step in (*made.withdrawals, *made.deletions)]
    return deletions + [("upload", step.key, step.reason) for step in made.uploads]


def moves(made: Plan) -> list[tuple[str, str, Reason]]:
    """The steps for generations."""
    due = [("delete", step.entry.generation, step.reason) for step in made.due]
    return due + [("upload", step.entry.generation, step.reason) for step in made.generations]


# Mutable objects

IN_BUILD, IN_RECORD = {keys.SNAPSHOT: "1"}, {keys.SNAPSHOT: "1"}


@pytest.mark.parametrize(
    ("built", "recorded", "is_unfinished", "expected"),
    [
        (IN_BUILD, {}, False, ("upload", Reason.NEW)),
        (IN_BUILD, IN_RECORD, False, None),
        (IN_BUILD, {keys.SNAPSHOT: "2"}, False, ("upload", Reason.CHANGED)),
        (IN_BUILD, IN_RECORD, True, ("upload", Reason.UNFINISHED)),
        (IN_BUILD, {keys.SNAPSHOT: "2"}, True, ("upload", Reason.UNFINISHED)),
        (IN_BUILD, {}, True, ("upload", Reason.UNFINISHED)),
        ({}, IN_RECORD, False, ("delete", Reason.GONE)),
        ({}, IN_RECORD, True, ("delete", Reason.GONE)),
        ({}, {}, True, ("delete", Reason.UNFINISHED)),
        ({}, {}, False, None),
    ],
)
@pytest.mark.parametrize("is_by_work", [True, False], ids=["unfinished", "doubted"])
def test_a_mutable_object(
    built: dict[str, str], recorded: dict[str, str], is_unfinished: bool, expected: tuple[str, Reason] | None, is_by_work: bool  # noqa: FBT001, E501 - columns
) -> None:  # fmt: skip
    touched = (keys.SNAPSHOT,) if is_unfinished and is_by_work else None
    rules = doubt(keys.SNAPSHOT) if is_unfinished and not is_by_work else RULES
    made = plan(manifest(objects=built), record(manifest(objects=recorded), touched), rules)
    assert steps(made) == ([(expected[0], keys.SNAPSHOT, expected[1])] if expected else [])
    assert not made.withdrawals


@pytest.mark.parametrize("touched", [None, (DETAIL,)])
def test_the_detail_of_a_withdrawn_market(touched: tuple[str, ...] | None) -> None:
    before = manifest(objects={DETAIL: "1", keys.BUILD: "1"}, markets={market_id(1): ("open",)})
    made = plan(manifest(objects={keys.BUILD: "2"}), record(before, touched), RULES)
    assert made.withdrawals == (Step(DETAIL, Reason.WITHDRAWN),)
    assert made.deletions == ()
    assert made.purges


def test_uploads_are_in_publication_order() -> None:
    wanted = [DETAIL, keys.error(404), keys.OPENAPI, keys.SNAPSHOT, keys.first_page(LIST, 1), keys.BUILD]
    made = plan(manifest(objects=dict.fromkeys(reversed(wanted), "1")), record(manifest()), RULES)
    assert [step.key for step in made.uploads] == wanted


# Generations


BROKEN = Rules(NOW, LIFETIME, doubts=Doubts(generations=frozenset({(LIST, "p1")})))


@pytest.mark.parametrize(
    ("built", "before", "due", "rules", "expected"),
    [
        ("p1", manifest({LIST: "p1"}), (), RULES, []),
        ("p1", manifest(), (), RULES, [("upload", "p1", Reason.NEW)]),
        ("p1", manifest(old=(retired("p1", partial=True),)), (), RULES, [("upload", "p1", Reason.UNFINISHED)]),
        ("p1", manifest(old=(retired("p1"),)), (), RULES, []),
        (
            "p1", manifest({LIST: "p1"}), (), BROKEN,
            [("upload", "p1", Reason.UNFINISHED)],
        ),
        ("p1", manifest(), (retired("p1"),), RULES, [("upload", "p1", Reason.NEW)]),
        ("p2", manifest({LIST: "p1"}), (), RULES, [("upload", "p2", Reason.NEW)]),
        ("p2", manifest({LIST: "p2"}, old=(retired("p1"),)), (), RULES, []),
        (
            "p2", manifest({LIST: "p2"}, old=(retired("p1", LONG_AGO),)), (), RULES,
            [("delete", "p1", Reason.EXPIRED)],
        ),
        (
            "p2", manifest({LIST: "p2"}, old=(retired("p1"),)), (), Rules(NOW, LIFETIME, purges=True),
            [("delete", "p1", Reason.PURGED)],
        ),
        (
            "p2", manifest({LIST: "p1"}), (), Rules(NOW, LIFETIME, purges=True),
            [("delete", "p1", Reason.PURGED), ("upload", "p2", Reason.NEW)],
        ),
        (
            "p2", manifest({LIST: "p2"}, old=(retired("p1"),)), (),
            BROKEN,
            [("delete", "p1", Reason.UNFINISHED)],
        ),
        ("p2", manifest({LIST: "p2"}), (retired("p1"),), RULES, [("delete", "p1", Reason.UNFINISHED)]),
        (
            "p2", manifest({LIST: "p2"}, old=(retired("p1"),), markets={market_id(1): ("open",)}), (), RULES,
            [("delete", "p1", Reason.WITHDRAWN)],
        ),
    ],
)  # fmt: skip
def test_a_generation(
    built: str, before: Manifest, due: tuple[Retired, ...], rules: Rules, expected: list[tuple[str, str, Reason]]
) -> None:
    made = plan(manifest({LIST: built}), record(before, due=due), rules)
    assert moves(made) == expected
    gone = {generation for what, generation, _ in expected if what == "delete"}
    assert {entry.generation for entry in made.final.retired} == {name for _, name in before.generations()} - gone - {
        built
    }


def test_a_withdrawal_leaves_lists_that_never_held_the_market_alone() -> None:
    before = manifest(
        {LIST: "p2", OTHER: "q2"}, old=(retired("p1"), retired("q1", name=OTHER)), markets={market_id(1): ("closed",)}
    )
    made = plan(manifest({LIST: "p2", OTHER: "q3"}), record(before), RULES)
    assert moves(made) == [
        ("delete", "q1", Reason.WITHDRAWN), ("delete", "q2", Reason.WITHDRAWN), ("upload", "q3", Reason.NEW),
    ]  # fmt: skip


def test_withdrawing_a_member_of_an_fx_family_deletes_no_generation() -> None:
    before = manifest({LIST: "p1"}, objects={DETAIL: "1"}, markets={market_id(1): ()})
    made = plan(manifest({LIST: "p2"}), record(before), RULES)
    assert moves(made) == [("upload", "p2", Reason.NEW)]
    assert steps(made) == [("delete", DETAIL, Reason.WITHDRAWN)]


# The plan as a whole


def test_nothing_to_do_is_an_empty_plan() -> None:
    built = manifest({LIST: "p1"}, {keys.BUILD: "1"}, {market_id(1): ("open",)})
    published = record(built)
    made = plan(built, published, RULES)
    assert made.is_empty(published)
    assert (made.steps, list(made.lines()), made.final) == (0, [], built)


def test_an_invalidation_that_nobody_could_make_is_no_work_without_a_cdn() -> None:
    built = manifest({LIST: "p1"}, {keys.BUILD: "1"})
    published = record(built).model_copy(update={"are_caches_stale": True})
    assert plan(built, published, RULES).is_empty(published)


@pytest.mark.parametrize("owed", ["are_caches_stale", "are_versions_kept"])
def test_a_failed_invalidation_or_purge_of_versions_alone_makes_a_plan(owed: str) -> None:
    built = manifest({LIST: "p1"}, {keys.BUILD: "1"})
    published = record(built).model_copy(update={owed: True})
    made = plan(built, published, replace(RULES, has_cdn=owed == "are_caches_stale"))
    assert made.steps == 0
    assert made.purges
    assert not made.is_empty(published)
    assert not made.shows_markets


def test_a_build_record_alone_shows_no_market() -> None:
    before, after = manifest(objects={keys.BUILD: "1"}), manifest(objects={keys.BUILD: "2"})
    assert not plan(after, record(before), RULES).shows_markets
    assert plan(manifest(objects={keys.SNAPSHOT: "1"}), record(before), RULES).shows_markets
    assert plan(manifest({LIST: "p1"}), record(before), RULES).shows_markets


def test_a_plan_is_printed_in_execution_order() -> None:
    before = manifest(
        {LIST: "p1"}, {DETAIL: "1", keys.error(405): "1", keys.BUILD: "1"}, {market_id(1): ("open",)},
    )  # fmt: skip
    made = plan(manifest({LIST: "p2"}, {keys.SNAPSHOT: "1", keys.BUILD: "2"}), record(before), RULES)
    prefix = keys.list_prefix(LIST)
    assert list(made.lines()) == [
        f"delete {DETAIL}: its market is no longer public",
        f"upload {prefix}/p2/ (3 objects): new",
        f"upload {keys.SNAPSHOT}: new",
        f"upload {keys.BUILD}: changed",
        f"delete {keys.error(405)}: no longer part of the build",
        f"delete {prefix}/p1/ (3 objects): its market is no longer public",
    ]
    assert made.steps == 10
    assert set(made.touched()) == {DETAIL, keys.SNAPSHOT, keys.BUILD, keys.error(405)}


def test_a_generation_is_counted_by_its_pages() -> None:
    step = GenerationStep(LIST, Current(generation="p1", count=21, bytes=9), Reason.NEW)
    assert step.objects == len([*step.object_keys()]) == sum(20 // limit for limit in range(1, 101))


def chunk_moves(made: Plan) -> list[tuple[str, set[str]]]:
    """The steps for chunks, by name."""
    due = [("delete", step) for step in made.due]
    uploaded = [("upload", step) for step in made.generations]
    return [(done, names(step.object_keys())) for done, step in (*due, *uploaded)]


def names(objects: Iterator[str]) -> set[str]:
    """The names of the chunks among these objects."""
    return {key[-6:-5] for key in objects if f"/{keys.CHUNKS}/" in key}


def test_a_chunk_already_in_the_store_is_not_uploaded() -> None:
    made = plan(manifest({LIST: "c2"}), record(manifest({LIST: "c1"})), RULES)
    assert chunk_moves(made) == [("upload", {"z"})]
    assert made.steps == 2


def test_a_chunk_is_deleted_with_the_last_generation_that_refers_to_it() -> None:
    old = (retired("c3", LONG_AGO), retired("c4", LONG_AGO), retired("c2"))
    made = plan(manifest({LIST: "c1"}), record(manifest({LIST: "c1"}, old=old)), RULES)
    assert chunk_moves(made) == [("delete", set()), ("delete", {"w"})]


def test_chunks_of_a_generation_that_is_in_doubt_are_uploaded_again() -> None:
    before = manifest({LIST: "c1"}, old=(retired("c2", partial=True),))
    assert chunk_moves(plan(manifest({LIST: "c2"}), record(before), RULES)) == [("upload", {"z"})]
    rules = Rules(NOW, LIFETIME, doubts=Doubts(generations=frozenset(((LIST, "c1"),))))
    assert chunk_moves(plan(manifest({LIST: "c1"}), record(manifest({LIST: "c1"})), rules)) == [("upload", {"x", "y"})]


def test_chunks_being_deleted_do_not_count_as_present() -> None:
    before = record(manifest({LIST: "p1"}), due=(retired("c1"),))
    made = plan(manifest({LIST: "c2"}), before, RULES)
    assert chunk_moves(made) == [("delete", {"x"}), ("upload", {"y", "z"})]


# Applied to a model


@dataclass
class Model:
    """The content of a store: digests of mutable objects by key, and the keys of immutable ones."""

    objects: dict[str, str]
    immutable: set[str]

    def apply(self, made: Plan, built: Manifest) -> None:
        for step in made.withdrawals:
            self.objects.pop(step.key, None)
        for upload in made.generations:
            self.immutable.update(upload.object_keys())
        for step in made.uploads:
            self.objects[step.key] = built.objects[step.key]
        for step in made.deletions:
            self.objects.pop(step.key, None)
        for deletion in made.due:
            self.immutable.difference_update(deletion.object_keys())


def object_keys(known: generations.Known) -> set[str]:
    return {key for (name, _), generation in known.items() for key in generations.object_keys(name, generation)}


NAMES = (LIST, OTHER, "all/new")
GENERATIONS = st.sampled_from(["p1", "p2", "p3", *CHUNKS])
STATES: list[tuple[MarketStatus, ...]] = [(), ("open",), ("closed",), ("closed", "open")]
MARKETS = st.dictionaries(st.sampled_from([market_id(n) for n in (1, 2, 3)]), st.sampled_from(STATES))
DOCUMENTS = (keys.SNAPSHOT, keys.BUILD, keys.first_page(LIST, 1), keys.first_page(OTHER, 7))


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    markets = draw(MARKETS)
    digests = st.sampled_from("ab")
    documents = draw(st.dictionaries(st.sampled_from(DOCUMENTS), digests))
    details = {keys.detail(market): draw(digests) for market in markets}
    return manifest(draw(st.dictionaries(st.sampled_from(NAMES), GENERATIONS)), documents | details, markets)


@st.composite
def stores(draw: st.DrawFn) -> tuple[Published, Model]:
    """A record and a store it may describe: objects that an interrupted publisher touched may be in any state."""
    built = draw(manifests())
    currents = {(name, current.generation) for name, current in built.lists().items()}
    pairs = draw(st.lists(st.tuples(st.sampled_from(NAMES), GENERATIONS), unique=True))
    old = [pair for pair in pairs if pair not in currents]
    split = draw(st.integers(0, len(old)))
    known = tuple(
        retired(generation, draw(st.sampled_from([EARLIER, LONG_AGO])), name=name, partial=draw(st.booleans()))
        for name, generation in old[:split]
    )
    due = tuple(retired(generation, name=name) for name, generation in old[split:])
    touched = draw(
        st.lists(st.sampled_from((*DOCUMENTS, *(keys.detail(market_id(n)) for n in (1, 2, 3)))), unique=True)
    )
    is_unfinished = draw(st.booleans())
    stored = dict(built.objects)
    for key in touched if is_unfinished else ():
        stored.pop(key, None)
        if digest := draw(st.sampled_from([*"abc", ""])):
            stored[key] = digest
    recorded = built.model_copy(update={"retired": known, "complete": not is_unfinished})
    published = record(recorded, tuple(touched) if is_unfinished else None, due)
    return published, Model(stored, draw(stored_keys(published)))


@st.composite
def stored_keys(draw: st.DrawFn, published: Published) -> set[str]:
    """Draw the immutable keys: all of every complete generation, any part of the others."""
    built = published.built
    partial = {(entry.list, entry.generation) for entry in built.retired if entry.partial}
    whole = object_keys({pair: entry for pair, entry in built.generations().items() if pair not in partial})
    due = {(entry.list, entry.generation): entry for entry in published.due}
    others = object_keys(built.generations() | due) - whole
    return whole | {key for key in sorted(others) if draw(st.booleans())}


@pytest.mark.campaign(short=0)
@settings(max_examples=rounds(100, 400), deadline=None)
@given(manifests(), stores(), st.booleans())
def test_a_carried_out_plan_leaves_the_build_and_the_retained_generations(
    built: Manifest,
    before: tuple[Published, Model],
    purges: bool,  # noqa: FBT001 - drawn
) -> None:
    published, model = before
    made = plan(built, published, Rules(NOW, LIFETIME, purges))
    model.apply(made, built)
    assert model.objects == built.objects
    kept = {(entry.list, entry.generation): entry for entry in made.final.retired}
    whole = {pair: entry for pair, entry in kept.items() if not entry.partial}
    assert (
        object_keys(built.current_generations() | whole)
        <= model.immutable
        <= object_keys(built.current_generations() | kept)
    )
    assert made.final.generations().keys() == built.current_generations().keys() | kept.keys()
    assert made.final.current == built.current
    assert kept.keys() <= published.built.generations().keys()
    assert not (purges and kept)


@pytest.mark.campaign(short=0)
@settings(max_examples=rounds(50, 200), deadline=None)
@given(manifests(), stores())
def test_a_second_plan_is_empty(built: Manifest, before: tuple[Published, Model]) -> None:
    published, _ = before
    made = plan(built, published, RULES)
    after = Published(sequence=2, built=made.final, etags=dict.fromkeys(made.final.objects, "etag"))
    again = plan(built, after, RULES)
    assert again.is_empty(after)


@pytest.mark.campaign(short=0)
@settings(max_examples=rounds(50, 200), deadline=None)
@given(manifests(), stores())
def test_no_generation_is_kept_that_may_hold_a_withdrawn_market(
    built: Manifest, before: tuple[Published, Model]
) -> None:
    published, _ = before
    made = plan(built, published, Rules(NOW, LIFETIME, doubts=NO_DOUBTS))
    for market, states in published.built.markets.items():
        if market not in built.markets:
            shown = {"all", *states}
            assert not [entry for entry in made.final.retired if entry.list.split("/")[0] in shown and states]
            assert keys.detail(market) not in made.final.objects
