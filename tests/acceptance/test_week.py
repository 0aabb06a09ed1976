"""A week in miniature: hourly runs between a dozen mishaps say on stderr what is new, once, and nothing else."""

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from generator.tree.folder import locked
from tests.support.commands import run
from tests.support.project import ROOT
from tests.support.sites.rows import create_database, insert_fill, insert_market, market_id

_MONDAY: Final = datetime.fromisoformat("2026-02-02T00:00:00Z")
_CONFIG: Final = """
base_url: https://api.example.org
source: {url: "sqlite:///site.db"}
layout: chunks
publish: {target: ./published, cdn: none}
guards: {max_invalid: 0.1}
"""
#: How many hourly runs follow each mishap, and each mending of one.
_HOURS: Final = 2
_MARKETS: Final = 40


@dataclass
class Week:
    """A site of forty markets, twenty of which trade, and an hourly job that publishes it; `diary` is all of stderr."""

    folder: Path
    database: sqlite3.Connection
    hour: int = 0
    diary: list[str] = field(default_factory=list)

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command, which ends with this code. Returns what it printed on stderr, which enters the diary."""
        done = run(*words, cwd=self.folder)
        self.diary.append(f"$ {' '.join(words)}  # exits {done.returncode}\n{done.stderr}")
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        return done.stderr

    def rebuild(self, *options: str, code: int = 0, trades: bool = True) -> str:
        """The run of the next hour, in which a market was traded, or none."""
        self.hour += 1
        now, number = _MONDAY + timedelta(hours=self.hour), self.hour % (_MARKETS // 2) + 1
        time = f"{now:%Y-%m-%d %H:%M:%S}.000000"
        if trades:
            insert_fill(self.database, self.hour, market_id=market_id(number), created_at=time)
            self.set(number, volume=100.0 + self.hour, last_activity_at=time)
        return self.run("rebuild", "--as-of", f"{now:%Y-%m-%dT%H:%M:%SZ}", *options, code=code)

    def set(self, *numbers: int, **columns: object) -> None:
        """Change the rows of markets."""
        names = ", ".join(f"{name} = ?" for name in columns)
        for number in numbers:
            values = [*columns.values(), market_id(number)]
            self.database.execute(f"UPDATE markets SET {names} WHERE id = ?", values)

    def stays_quiet(self) -> None:
        """The next hours, of which the last has no trade, say nothing."""
        for hour in range(_HOURS):
            assert self.rebuild(trades=hour + 1 < _HOURS) == ""


class Mishap(NamedTuple):
    """What goes wrong and how it is mended, each with all that stderr says of it."""

    happens: Callable[[Week], str]
    tells: str
    is_mended: Callable[[Week], str] | None = None
    tells_then: str = ""


def _edited(*numbers: int, **columns: object) -> Callable[[Week], str]:
    """Rows of the database change, and the next run meets them."""

    def act(week: Week) -> str:
        week.set(*numbers, **columns)
        return week.rebuild()

    return act


def _without_database(week: Week) -> str:
    file = week.folder / "site.db"
    aside = file.rename(week.folder / "aside.db")
    said = week.run("rebuild", code=1)
    aside.rename(file)
    return said


def _half_restored(week: Week) -> str:
    week.set(*range(21, _MARKETS + 1), is_listed=0)
    said = week.rebuild(code=3)
    week.set(*range(21, _MARKETS + 1), is_listed=1)
    return said


def _held(week: Week) -> str:
    return week.run("hold", "results are disputed") + week.rebuild(code=3)


def _percentages(week: Week) -> str:
    """A market is traded in percent: a bad row, whose value moves with every trade."""
    said = ""
    for prob in (45.0, 46.0, 47.5):
        week.set(37, prob=prob)
        said += week.rebuild()
    return said


def _overdue(week: Week) -> str:
    """The site's own job stops closing its markets: one is overdue, then more, then more than ten."""
    said = ""
    for numbers in ((21,), (22, 23), range(24, 37)):
        week.set(*numbers, close_time="2026-01-31 12:00:00.000000")
        said += week.rebuild()
    return said


def _on_another_machine(week: Week) -> str:
    """The job moves to another machine, which has the settings and no folder, and back."""
    here, there = week.folder / "output", week.folder / "there"
    return week.rebuild("--set", f"output={there.name}") + week.rebuild(f"--set=output={here.name}")


def _beside_another(week: Week) -> str:
    with locked(week.folder / "output"):
        return week.rebuild(code=4)


def _with_wrong_setting(week: Week) -> str:
    return week.rebuild("--set", "layuot=chunks", code=1)


def _without_target(week: Week) -> str:
    target = week.folder / "published"
    aside = target.rename(week.folder / "aside")
    target.touch()
    said = week.rebuild(code=1)
    target.unlink()
    aside.rename(target)
    return said


def _without_folder(week: Week) -> str:
    shutil.rmtree(week.folder / "output")
    return week.rebuild()


_CORRECT: Final = "correct it, or convert it in a view (0.45 rather than 45)"
_OUT_OF_RANGE: Final = "prob: input should be less than or equal to 1"
_IN_FUTURE: Final = (
    "WARNING: markets: 1 remark: created_at is in the future (00000023-0000-4000-8000-000000000000: "
    "2027-02-02T01:00:00.000Z); it leads the sort `new`: correct it, or convert local time to UTC in a view\n"
)
_OVERDUE: Final = (
    "WARNING: markets: 1 remark: is open past its close_time (00000015-0000-4000-8000-000000000000: "
    "2026-01-31T12:00:00.000Z"
)
_IN_LISTS: Final = (
    "it is in the lists of open markets, and accepts no bets: publish it as closed, as <root>/docs/recipes.md says "
    "under “No status closed”\n"
)
_EMPTY: Final = (
    "fx_members, orders, probabilities: this folder's first build finds no row; if your site has any, look at the "
    "view, and at what the database user may see (row level security)\n"
)
_NAMES_EACH: Final = "output/report.json names each\n"
_MISHAPS: Final = {
    "a row breaks the contract": Mishap(
        _edited(30, prob=7.0),
        f"WARNING: markets: 1 row quarantined: {_OUT_OF_RANGE} (0000001e-0000-4000-8000-000000000000: 7.0); "
        f"{_CORRECT}\n"
        "WARNING: withdrawn: market 0000001e-0000-4000-8000-000000000000 is no longer public: "
        '"Will it rain on day 30?"\n',
    ),
    "another row breaks it": Mishap(
        _edited(31, prob=8.0),
        f"WARNING: new: markets: 1 row quarantined, 2 in all: {_OUT_OF_RANGE} (0000001f-0000-4000-8000-000000000000: "
        f"8.0); {_CORRECT}\n"
        "WARNING: withdrawn: market 0000001f-0000-4000-8000-000000000000 is no longer public: "
        '"Will it rain on day 31?"\n',
        _edited(30, 31, prob=0.5),
        f"gone: markets: 2 rows quarantined: {_OUT_OF_RANGE}\n",
    ),
    "a market is traded in percent, a bad row that moves": Mishap(
        _percentages,
        f"WARNING: markets: 1 row quarantined: {_OUT_OF_RANGE} (00000025-0000-4000-8000-000000000000: 45.0); "
        f"{_CORRECT}\n"
        "WARNING: withdrawn: market 00000025-0000-4000-8000-000000000000 is no longer public: "
        '"Will it rain on day 37?"\n',
        _edited(37, prob=0.5),
        f"gone: markets: 1 row quarantined: {_OUT_OF_RANGE}\n",
    ),
    "two markets have one key": Mishap(
        _edited(31, 32, key="rain"),
        "WARNING: markets: 2 remarks: key cannot be used: another market has the same (such as "
        "0000001f-0000-4000-8000-000000000000: rain, as has 00000020-0000-4000-8000-000000000000); no link leads to "
        "its page, and no takedown finds it by its key: give each market a key of its own, or none\n" + _NAMES_EACH,
    ),
    "a third has it": Mishap(
        _edited(33, key="rain"),
        "WARNING: new: markets: 1 remark, 3 in all: key cannot be used: another market has the same "
        "(00000021-0000-4000-8000-000000000000: rain, as has 0000001f-0000-4000-8000-000000000000 and "
        "00000020-0000-4000-8000-000000000000); no link leads to its page, and no takedown finds it by its key: give "
        "each market a key of its own, or none\n",
        _edited(32, 33, key=None),
        "gone: markets: 3 remarks: key cannot be used: another market has the same\n",
    ),
    "markets stay open past their end, ever more": Mishap(
        _overdue, f"{_OVERDUE}); {_IN_LISTS}{_OVERDUE}, and 15 others); {_IN_LISTS}"
    ),
    "a market is rejected": Mishap(
        _edited(33, approval="rejected"),
        "WARNING: withdrawn: market 00000021-0000-4000-8000-000000000000 is no longer public: "
        '"Will it rain on day 33?"\n',
    ),
    "a market is resolved without a resolution": Mishap(
        _edited(34, status="resolved", resolved_at="2026-02-02 01:00:00.000000"),
        "WARNING: markets: 1 remark: is resolved but has no resolution (00000022-0000-4000-8000-000000000000); it is "
        "published as it stands: set its resolution\n",
        _edited(34, resolution="YES"),
        "gone: markets: 1 remark: is resolved but has no resolution\n",
    ),
    "a local time is taken for UTC": Mishap(_edited(35, created_at="2027-02-02 01:00:00.000000"), _IN_FUTURE),
    "the database is away": Mishap(
        _without_database,
        "error: source.url: site.db: no such database file; set source.url to your database, or run "
        "`public-markets demo`\n",
    ),
    "the database is half restored": Mishap(
        _half_restored,
        "error: 19 of 39 markets would disappear, more than guards.max_shrink (0.2) allows; nothing was replaced. If "
        "the database is complete, pass --accept shrink\n",
    ),
    "somebody holds": Mishap(
        _held,
        "error: published: on hold since <time>, by <who>: results are disputed; no build is published until "
        "`public-markets hold --release`\n",
        lambda week: week.run("hold", "--release") + week.rebuild(),
    ),
    "a market is taken down": Mishap(
        lambda week: week.run("takedown", market_id(36)),
        '00000024-0000-4000-8000-000000000000: "Will it rain on day 36?", open\n'
        "published: nothing is left of the blocked markets (<count> objects deleted, <count> replaced)\n"
        "output: nothing is left of the blocked markets\n",
    ),
    "another run is at work": Mishap(
        _beside_another, "error: output: another run is at work there (process <count>)\n"
    ),
    "a setting is misspelt": Mishap(
        _with_wrong_setting, "error: --set layuot: unknown setting; did you mean layout?\n"
    ),
    "the target is away": Mishap(
        _without_target,
        "error: <folder>/published: not a directory; move that file away, or choose another directory with --set "
        "publish.target=…\n",
    ),
    "the job moves to another machine, and back": Mishap(
        _on_another_machine, f"{_IN_FUTURE}{_OVERDUE}, and 12 others); {_IN_LISTS}{_EMPTY}"
    ),
    "the folder is lost, and with it what was told": Mishap(
        _without_folder, f"{_IN_FUTURE}{_OVERDUE}, and 12 others); {_IN_LISTS}{_EMPTY}"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Week]:
    folder = tmp_path_factory.mktemp("week")
    (folder / "config.yaml").write_text(_CONFIG)
    with closing(create_database(folder / "site.db")) as database:
        database.execute("ALTER TABLE markets ADD COLUMN key TEXT")
        for number in range(1, _MARKETS + 1):
            insert_market(database, number, question=f"Will it rain on day {number}?")
        yield Week(folder, database)


def test_stderr_says_each_mishap_once_and_nothing_in_the_hours_between(week: Week) -> None:
    assert week.rebuild() == _EMPTY
    week.stays_quiet()
    for name, mishap in _MISHAPS.items():
        assert (name, _plain(week, mishap.happens(week))) == (name, mishap.tells)
        if mishap.is_mended is None:
            week.stays_quiet()
            continue
        if mishap.happens is not _held:
            week.stays_quiet()
        assert (name, _plain(week, mishap.is_mended(week))) == (name, mishap.tells_then)
        week.stays_quiet()
    assert week.hour > len(_MISHAPS) * _HOURS


def _plain(week: Week, said: str) -> str:
    """What was said, without what differs from run to run."""
    said = said.replace(str(week.folder), "<folder>").replace(str(ROOT), "<root>")
    said = re.sub(r"since \S+, by \S+:", "since <time>, by <who>:", said)
    return re.sub(r"(?<=process )\d+|\d+(?= objects| replaced)", "<count>", said)
