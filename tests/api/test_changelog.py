"""The changelog of the API is published, true, and names whatever would break programs since it was last accepted."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any, Final

from generator.api import changelog, contract
from generator.api.changelog import NOTICE, Changelog
from generator.config.downloads import Dumps, PublishedHistory
from generator.config.questions import Questions
from generator.config.settings import Config
from generator.models import replaced
from generator.site.families import openapi
from tests.api.reader_contract import breaks, complaints, promises
from tests.support.project import ROOT
from tests.support.sites.builds import VARIANTS

#: What readers were promised when `make bless` last accepted it, by variant and place; and how many entries there were
#: then, with a digest of them.
ACCEPTED: Final = ROOT / "tests" / "api" / "accepted_contract.json"
QUESTIONS: Final = "questions"
#: Settings that add to objects that are closed, so that only sites which switch them on promise it.
SWITCHED: Final[Mapping[str, dict[str, Any]]] = {
    QUESTIONS: {"questions": Questions(enabled=True)}, "history": {"history": PublishedHistory(public=True)},
}  # fmt: skip
#: How many places there are at least, with each of them.
LEAST: Final = {QUESTIONS: 80, "history": 20}
ENTRIES: Final = changelog.published(has_questions=True).entries


def promised() -> dict[str, dict[str, Any]]:
    """What each variant promises now, with everything usual switched on; and what each other setting adds."""
    configs = {str(variant): Config(variant=variant, dumps=Dumps(parquet=True, fills=True)) for variant in VARIANTS}
    found = {name: promises(openapi(config)) for name, config in configs.items()}
    for name, config in configs.items():
        for switched, settings in SWITCHED.items():
            more = promises(openapi(replaced(config, **settings)))
            found[f"{name} {switched}"] = {where: facts for where, facts in more.items() if where not in found[name]}
    return found


def accepted() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ACCEPTED.read_text("utf-8"))
    return found


def digest(number: int) -> str:
    """The digest of so many of the oldest entries."""
    return sha256(contract.encode(Changelog(entries=ENTRIES[len(ENTRIES) - number :]))).hexdigest()


def accept() -> None:
    """Keep what is promised now, a line for each place."""
    parts = [f'"entries": {len(ENTRIES)}', f'"digest": "{digest(len(ENTRIES))}"']
    for variant, places in promised().items():
        lines = ",\n".join(f'  "{where}": {json.dumps(facts, sort_keys=True)}' for where, facts in places.items())
        parts.append(f'"{variant}": {{\n{lines}\n }}')
    ACCEPTED.write_text("{\n " + ",\n ".join(parts) + "\n}\n", "utf-8")


def test_readers_are_promised_what_was_accepted_and_the_changelog_names_whatever_would_break_programs() -> None:
    """`make bless` accepts what is promised now, unless an entry is missing."""
    before, now = accepted(), promised()
    assert digest(before["entries"]) == before["digest"], "an entry that was accepted is not as it was: put it back"
    found = {one for name in now if name in before for one in breaks(before[name], now[name])}
    wrong = complaints(sorted(found), ENTRIES, before["entries"])
    assert not wrong, "\n".join(["the change would break programs of readers:", *wrong])
    if os.environ.get("BLESS") == "1":
        accept()
    current = {"entries": len(ENTRIES), "digest": digest(len(ENTRIES)), **now}
    assert accepted() == current, "if that is meant: make bless"
    assert all(len(places) > LEAST.get(name.partition(" ")[2], 300) for name, places in now.items())


def test_every_place_of_an_entry_is_one_of_the_openapi_document() -> None:
    known = {where for places in promised().values() for where in places}
    gone = set[str]()
    for entry in ENTRIES:
        gone |= {*entry.where} if entry.kind == "removed" else set()
        wrong = {*entry.where} - known - gone
        if entry.kind == "announced":  # it may be of something that is to come, within what there is
            wrong = {where for where in wrong if where.rpartition(".")[0] not in known}
        assert not wrong, f"{entry.date}: no such place: {wrong}"
        assert entry.where
    assert len(ENTRIES) > 20


def test_sites_without_questions_publish_no_entry_about_them() -> None:
    without = changelog.published().entries
    others = [entry for entry in ENTRIES if entry not in without]
    assert [entry for entry in ENTRIES if entry in without] == without
    assert others
    only = {where for name, places in promised().items() if QUESTIONS in name for where in places}
    assert all(only.issuperset(entry.where) for entry in others)
    assert all(only.isdisjoint(entry.where) for entry in without)


def test_entries_are_sentences_newest_first() -> None:
    days = [entry.date for entry in ENTRIES]
    assert days == sorted(days, reverse=True)
    assert date.fromisoformat(days[0]) <= datetime.now(UTC).date(), "notice is counted from a day that has come"
    for entry in ENTRIES:
        assert entry.text.endswith(".")
        assert "\n" not in entry.text
        assert entry.where == list(dict.fromkeys(entry.where))


def test_exactly_what_is_announced_has_a_day_and_readers_have_time() -> None:
    for entry in ENTRIES:
        assert (entry.effective is not None) == (entry.kind == "announced")
        if entry.effective is not None:
            assert date.fromisoformat(entry.effective) - date.fromisoformat(entry.date) >= NOTICE
