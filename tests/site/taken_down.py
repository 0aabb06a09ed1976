"""The commands on a site in a folder, and the differences of what two of them left, by family of objects."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Final

from click.testing import CliRunner, Result

from generator.api import keys
from generator.cli.main import main
from generator.site.families import FAMILIES
from generator.tree.files import INSPECTION, REPORT, UNCHANGED
from tests.site import chosen_sites
from tests.site.chosen_sites import FIRST, KEY_LETTERS, KEYED, ChosenSite
from tests.support import limits
from tests.support.faults import fast_folder
from tests.support.sites.builds import files, text_of
from tests.support.sites.publishing import copy_output

BLOCKED: Final = "blocked.json"
RECORD: Final = "manifest.json"
#: Beside `v1/`: files that a takedown leaves as a build made them.
_UNPUBLISHED: Final = (BLOCKED, "edge/", "details", "vendor/")
#: Private files that name by its id what was taken down: those for people, and what the next build compares with.
_NAMING: Final = (REPORT, INSPECTION, UNCHANGED)
_LIFTED: Final = ("--accept=shrink",)
#: Of the pages: some for which lists have several, and the limits that the product itself reads or links.
LIMITS: Final = (3, 20, 100)
Objects = Mapping[str, bytes]


class Workplace:
    """A folder with a database, settings and `output/`; commands run on them in this process."""

    def __init__(self, folder: Path, site: ChosenSite) -> None:
        self.folder = folder
        self.site = site
        #: More settings, such as those of a store.
        self.settings: dict[str, str] = {}
        chosen_sites.write_config(folder, site.settings)

    def run(self, *arguments: str, output: str = "output", target: str = "") -> Result:
        """Run a command; `target` is a directory beside the output folder."""
        given = {"output": str(self.folder / output), **self.settings}
        given |= {"publish.target": str(self.folder / target)} if target else {}
        overrides = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
        return CliRunner().invoke(main, [*arguments, "--config", str(self.folder / "config.yaml"), *overrides])

    def done(self, *arguments: str, output: str = "output", target: str = "") -> Result:
        """Run a command that must succeed."""
        result = self.run(*arguments, output=output, target=target)
        assert result.exit_code == 0, f"{' '.join(arguments)}: {result.output}"
        return result

    def build(self, as_of: str, *options: str, output: str = "output") -> None:
        self.done("build", "--as-of", as_of, *_LIFTED, "--accept=invalid", *options, output=output)

    def publish(self, *options: str, output: str = "output", target: str = "") -> None:
        self.done("publish", *_LIFTED, *options, output=output, target=target)

    def build_both(self) -> None:
        """Build the first state, then the second."""
        chosen_sites.fill(self.folder, self.site.first)
        self.build(FIRST)
        chosen_sites.fill(self.folder, self.site.second)
        self.build(self.site.as_of)

    def copy(self, source: str, target: str) -> None:
        """Copy an output folder."""
        copy_output(self.folder / source, self.folder / target)

    def objects(self, place: str) -> Objects:
        """What is below `v1/` in an output folder or a directory that was published to."""
        return files(self.folder / place)

    def traces(self, place: str) -> list[str]:
        """The files, outside what no reader and no later run shows, that say anything of the markets taken down."""
        return traces(self.site, files(self.folder / place, ""))


@contextmanager
def workplace(site: ChosenSite) -> Iterator[Workplace]:
    """An empty database in a folder of its own; builds there make few pages."""
    with fast_folder(Path()) as folder, limits.only(LIMITS), limits.on_one_processor():
        chosen_sites.create(folder)
        yield Workplace(folder, site)


def traces(site: ChosenSite, found: Objects) -> list[str]:
    """The keys of objects that say anything of the markets taken down, or do so in their keys, and the text."""
    never = "(?!)"  # matches nothing, if there is nothing to look for
    texts = re.compile("|".join(sorted(re.escape(text.lower()) for text in site.texts())) or never)
    # Those that name it stay where nothing public goes, with the ids of what earlier builds withdrew.
    hidden = _UNPUBLISHED if site.removed() else (*_UNPUBLISHED, *_NAMING)
    shown = {key: body for key, body in found.items() if not key.startswith(hidden)}
    said = {key: {*texts.findall(f"{key}\n{_text(key, body)}".lower())} for key, body in shown.items()}
    said |= {key: said[key].difference(site.ids) for key in _NAMING if key in said}
    return [
        *(f"{family(key)}: {key} says {', '.join(sorted(some))}" for key, some in said.items() if some),
        *(f"{family(key)}: {key} is still there" for key in sorted(shown.keys() & site.keys())),
    ]


def keys_told(site: ChosenSite, found: Objects) -> list[str]:
    """The published objects that say a key of the operator's site elsewhere than in an address that is made of it."""
    address = KEYED.partition("{key}")[0]
    is_keyed = site.settings.get("market_url") == KEYED
    letters = re.compile(rf"(?<!{re.escape(address)}){KEY_LETTERS}\d\d" if is_keyed else rf"{KEY_LETTERS}\d\d")
    published = {key: body for key, body in found.items() if key.startswith(("v1/", INSPECTION))}
    return [f"{family(key)}: {key} says a key" for key, body in published.items() if letters.search(_text(key, body))]


def _text(key: str, body: bytes) -> str:
    """What an object says; of the record, not what requests of a publisher that was killed may still bring back."""
    if key == RECORD:
        content = json.loads(body)
        return json.dumps({**content, "abandoned": None}, ensure_ascii=False)
    return text_of(key, body).decode(errors="replace")


def family(key: str) -> str:
    """What kind of object has the key: the last row of the table, as the search index has the keys of a list, too."""
    rows = [one for one in FAMILIES if one.pattern.fullmatch(key) or one.immutable_pattern.fullmatch(key)]
    return rows[-1].name if rows else "beside what is published"


def differences(expected: Objects, found: Objects) -> list[str]:
    """What differs, family by family, apart from the change feed; only `found` may have retired generations."""
    wanted, have = _without_feed(expected), _without_feed(found)
    strange = [f"{family(key)}: {key} is left" for key in have.keys() - wanted.keys() if not keys.is_immutable(key)]
    missing = [f"{family(key)}: {key} is missing" for key in wanted.keys() - have.keys()]
    other = [f"{family(key)}: {key} differs" for key in wanted.keys() & have.keys() if wanted[key] != have[key]]
    return sorted((*missing, *other, *strange))


def changes(before: Objects, after: Objects) -> list[str]:
    """What a run that has nothing to do put, replaced or deleted, apart from the change feed."""
    old, new = _without_feed(before), _without_feed(after)
    return [f"{family(key)}: {key} changed" for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]


def faults_of_feed(expected: Objects, found: Objects, before: Objects, *, is_in_lists: bool) -> Iterator[str]:
    """What is wrong with the change feed after a takedown, by what a build makes, and by what was `before`.

    A market that `is_in_lists` was in the feed, too.
    """
    bodies = [objects.get(keys.head(keys.CHANGES)) for objects in (expected, found, before)]
    if None in bodies:
        if bodies[:2] != [None, None]:
            yield "changes: there is a feed only in one of both"
        return
    made, feed, old = (json.loads(body or b"") for body in bodies)
    for name in ("dump", "state", "count"):
        if feed[name] != made[name]:
            yield f"changes: {name} is {feed[name]}, not {made[name]}"
    if is_in_lists and feed["steps"]:
        yield f"changes: has {len(feed['steps'])} steps"
    if is_in_lists and feed["session"] == old["session"]:
        yield "changes: no new session"


def _without_feed(objects: Objects) -> dict[str, bytes]:
    return {key: body for key, body in objects.items() if family(key) != "changes"}


def check(faults: Mapping[str, Iterable[str]]) -> None:
    """Fail with all faults, by where they were found, a few of each family."""
    found = [(f"{place}: {fault.partition(':')[0]}", fault) for place, some in faults.items() for fault in some]
    few = [fault for _, group in groupby(found, key=itemgetter(0)) for fault in islice(group, 6)]
    assert not found, f"{len(found)} faults, such as {few}"
