"""Plans, case by case, and applied to a model of a store left in any state."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.api import keys
from generator.api.contract import MarketStatus
from generator.models import replaced
from generator.publish.plan import Doubts, Plan, Reason, Rules, plan
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


def moves(made: Plan) -> list[tuple[str, str, Reason]]:
    """The steps for generations."""
    due = [("delete", step.entry.generation, step.reason) for step in made.due]
    return due + [("upload", step.entry.generation, step.reason) for step in made.generations]


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


def test_a_question_of_a_withdrawn_market_is_deleted_first_and_put_again() -> None:
    """Its object by the slug goes first; what the publish did not change stays, and so does another question."""
    one, two = keys.question_reference("1" * 36), keys.question_reference("2" * 36)
    of = [*keys.questions("1" * 36, "a"), *keys.questions("2" * 36, None)]
    states: dict[str, tuple[MarketStatus, ...]] = {market_id(1): ("open",), market_id(2): ("open",)}
    lists = {keys.DUMPS: "p2"}
    before = manifest(lists, dict.fromkeys([DETAIL, *of], "1"), states)
    before = replaced(
        before, members={one: (market_id(1), market_id(2)), two: (market_id(2),)}, slugs={one: ("a",)}
    )  # fmt: skip
    after = manifest(lists, dict.fromkeys(of, "2"), {market_id(2): ("open",)})
    made = plan(after, record(before), RULES)
    assert [step.key for step in made.withdrawals] == [DETAIL, *of[:2]]
    reasons = {step.key: step.reason for step in made.uploads}
    assert reasons == {of[0]: Reason.REMADE, of[1]: Reason.REMADE, of[2]: Reason.CHANGED}
    assert sorted(made.touched()) == sorted([DETAIL, *of])
    killed = plan(after, record(before, touched=tuple(of)), RULES)
    assert [step.key for step in killed.withdrawals] == [DETAIL, *of[:2]]
    assert {step.reason for step in killed.uploads} == {Reason.UNFINISHED}
    # Without definitions, nothing else would tell what it says if the publish is killed.
    undefined = plan(replaced(after, current={}), record(replaced(before, current={})), RULES)
    assert [step.key for step in undefined.withdrawals] == [DETAIL]
    assert {step.reason for step in undefined.uploads} == {Reason.CHANGED}


def test_a_question_that_goes_ends_lists_of_questions_and_definitions_alone() -> None:
    name = keys.question_list_name("open", "new")
    question = keys.question_reference("1" * 36)
    old = (*(retired("p1", name=of) for of in (LIST, name, keys.DUMPS, keys.SEARCH, keys.CHANGES)),)
    lists = dict.fromkeys([LIST, name, *keys.INDEXED], "p2")
    before = manifest(lists, {keys.question("1" * 36): "1"}, old=old)
    before = replaced(before, markets={market_id(1): ("open",), question: ("questions/open",)})
    after = manifest({**lists, name: "p3", keys.DUMPS: "p3"}, {}, {market_id(1): ("open",)})
    made = plan(after, record(before), RULES)
    assert {step.list_name for step in made.due} == {name, keys.DUMPS}
    assert made.purges
    assert [step.key for step in made.withdrawals] == [keys.question("1" * 36)]


# The plan as a whole


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


def test_a_chunk_already_in_the_store_is_not_uploaded() -> None:
    made = plan(manifest({LIST: "c2"}), record(manifest({LIST: "c1"})), RULES)
    (step,) = made.generations
    assert [key for key in step.object_keys() if f"/{keys.CHUNKS}/" in key] == [keys.chunk(LIST, "z")]
    assert made.steps == 2


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


def object_keys(known: generations.Generations) -> set[str]:
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
@settings(max_examples=rounds(150, 600), deadline=None)
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
    for market, states in published.built.markets.items():
        if states and market not in built.markets:
            shown = {"all", *states}
            assert not [entry for entry in made.final.retired if entry.list.split("/")[0] in shown], "it may hold it"
