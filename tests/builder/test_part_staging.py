"""A build reads only the details that changed, and leaves the same bytes as one that reads everything."""

import json
import os
import shutil
import sqlite3
import stat
import zlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from generator import program
from generator.api import forms, keys
from generator.api.contract import Variant
from generator.builder import last_details, part_rendering
from generator.builder.last_details import DetailCounts, LastDetails, Sample
from generator.builder.notices import Topic
from generator.builder.part_staging import PartWork
from generator.builder.report import Report
from generator.config.settings import Config
from generator.markets.fills import Window
from generator.markets.quarantine import Quarantine
from generator.progress import SILENT, Progress
from generator.source.fill_windows import EarlierCounts
from generator.source.queries import EVERYTHING
from generator.source.reader import open_reader
from generator.tree import files, fingerprints
from generator.tree.fingerprints import MadeOf
from generator.tree.folder import Output, locked
from tests.support import limits
from tests.support.deaths import dying
from tests.support.project import ROOT
from tests.support.sites.builds import (
    AS_OF,
    VARIANTS,
    build_now,
    lasting,
    make_config,
    tells_of_earlier_builds,
)
from tests.support.sites.builds import files as every_file
from tests.support.sites.rows import insert_fill, insert_whole_market, market_id

MARKETS: Final = 7
#: What has no part in details takes a tenth of the time of a build.
QUICK: Final = {"source__audit": 0, "layout": "chunks", "dumps__ndjson": False, "feeds__enabled": False}
EARLIER: Final = "2026-01-15 00:00:00.000000"


class VersionedSite:
    """A database that promises to change a market's version with its rows, and builds of it."""

    def __init__(self, database: sqlite3.Connection, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.minutes = 0
        database.execute("ALTER TABLE markets ADD COLUMN detail_version")
        for number in range(MARKETS):
            self.add(number)

    def add(self, number: int) -> None:
        insert_whole_market(self.database, number, detail_version=1)

    def edit(self, number: int, **columns: Any) -> None:
        names = ", ".join(f"{name} = ?" for name in columns)
        self.database.execute(f"UPDATE markets SET {names} WHERE id = ?", [*columns.values(), market_id(number)])

    def trade(self, number: int, *, is_told: bool = True, **columns: Any) -> None:
        """Add a fill, and change the version if the promise is kept."""
        (fills,) = self.database.execute("SELECT count(*) FROM fills").fetchone()
        insert_fill(self.database, 1000 + fills, market_id=market_id(number), **columns)
        if is_told:
            self.tell(number)

    def tell(self, number: int) -> None:
        change = "UPDATE markets SET detail_version = detail_version + 1 WHERE id = ?"
        self.database.execute(change, [market_id(number)])

    def build(self, *, later: int = 5, full: bool = False, progress: Progress = SILENT, **settings: Any) -> Report:
        self.minutes += later
        now = AS_OF + timedelta(minutes=self.minutes)
        return build_now(self.config(**settings), now, full=full, progress=progress)

    def config(self, **settings: Any) -> Config:
        return make_config(self.folder, **{**QUICK, **settings})

    def read(self, *, later: int = 5, **settings: Any) -> int:
        """Build, and return how many details that read."""
        return self.build(later=later, **settings).details.read

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def path(self, number: int) -> Path:
        return self.output / keys.detail(market_id(number))

    def detail(self, number: int) -> Any:
        return json.loads(self.path(number).read_bytes())


@pytest.fixture
def versioned_site(database: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VersionedSite:
    monkeypatch.setattr("secrets.randbelow", lambda _: zlib.crc32(b"1"))  # the same samples, always
    return VersionedSite(database, tmp_path)


@pytest.fixture
def built(versioned_site: VersionedSite) -> VersionedSite:
    versioned_site.build()
    return versioned_site


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_another_version_has_a_market_read_and_another_row_gives_it_a_new_market_object(
    versioned_site: VersionedSite,
) -> None:
    assert versioned_site.build().details == DetailCounts(read=MARKETS)
    before = versioned_site.detail(4)
    versioned_site.trade(3)
    versioned_site.edit(4, question='New, "orderBook":?', description='",\\"orderBook":{}', prob=0.25)
    found = versioned_site.build()
    assert found.details == DetailCounts(read=1, updated=1, kept=MARKETS - 2)
    assert len(versioned_site.detail(3)["recentFills"]) == 2
    after = versioned_site.detail(4)
    assert (after["market"]["question"], after["market"]["prob"]) == ('New, "orderBook":?', 0.25)
    assert {**after, "market": None} == {**before, "market": None}
    run = json.loads((versioned_site.output / files.REPORT).read_bytes())["run"]
    assert run["details"] == {"read": 1, "updated": 1, "kept": MARKETS - 2, "audited": 0}
    samples = {key.labels: value for key, value in found.samples().items() if key.name == "details"}
    assert samples == {(("by", name),): value for name, value in run["details"].items()}


def test_in_chunks_fills_leave_the_window_together_at_the_full_hour(versioned_site: VersionedSite) -> None:
    versioned_site.trade(3, created_at="2026-01-30 12:01:00.000000")
    versioned_site.trade(4, created_at="2026-01-30 12:59:00.000000")
    versioned_site.trade(5, created_at="2026-01-30 11:59:00.000000")
    versioned_site.build(later=10)
    shown = [versioned_site.detail(number)["market"]["fills24h"] for number in (3, 4, 5)]
    assert shown == [1, 1, 0]
    assert versioned_site.build(later=49).written == 1, "build.json alone"
    assert versioned_site.build(later=1).details == DetailCounts(updated=2, kept=MARKETS - 2)
    assert [versioned_site.detail(number)["market"]["fills24h"] for number in (3, 4)] == [0, 0]
    assert_as_fresh(versioned_site)


def test_any_other_version_counts_and_null_is_never_known(built: VersionedSite) -> None:
    versions = ("2", "'1'", "1.5", "x'31'", "CAST(x'ff' AS TEXT)", "NULL")
    for number, version in enumerate(versions):
        change = f"UPDATE markets SET detail_version = {version} WHERE id = ?"
        built.database.execute(change, [market_id(number)])
    assert built.read() == len(versions)
    assert built.read() == 1, "still unknown"


def test_an_id_that_is_no_text_or_invalid_utf_8_costs_its_row_and_not_the_build(built: VersionedSite) -> None:
    for number, key in enumerate(("NULL", "x'31'", "CAST(x'ff' AS TEXT)")):
        built.database.execute(f"UPDATE markets SET id = {key} WHERE id = ?", [market_id(number)])
    found = built.build(guards__max_invalid=1, guards__max_shrink=1)
    assert found.quarantine.total("markets") == 3
    assert found.details == DetailCounts(kept=MARKETS - 3)


def sent(site: VersionedSite) -> list[int]:
    """The markets whose details another machine would send for a build now."""
    numbers = {market_id(number): number for number in range(MARKETS)}
    config, now = site.config(), forms.instant(AS_OF + timedelta(minutes=site.minutes))
    with locked(site.output) as folder, open_reader(config, Quarantine()) as reader:
        built = folder.manifest()
        assert built
        last = LastDetails.load(folder, built.objects, built.as_of, last_details.shape_of(config))
        work = PartWork(config, folder, reader.survey(), last, Sample(0, 0), frozenset(), AS_OF, now)
        (part,) = work.survey.parts(MARKETS)
        rendered = part_rendering.render(work.task(part, is_remote=True), reader.reporting_to)
    return [numbers[read.market_id] for read in rendered.details if read.body is not None]


@pytest.mark.parametrize("has_versions", [False, True])
def test_bytes_that_are_in_place_do_not_come_from_another_machine_and_lost_ones_do(
    versioned_site: VersionedSite, *, has_versions: bool
) -> None:
    if not has_versions:
        versioned_site.database.execute("ALTER TABLE markets DROP COLUMN detail_version")
    versioned_site.build()
    assert sent(versioned_site) == []
    for number, lose in enumerate(LOSSES.values()):
        lose(versioned_site.path(number))
    assert sent(versioned_site) == [*range(len(LOSSES))]


def test_a_full_build_and_other_settings_and_an_earlier_as_of_read_everything_and_the_next_build_nothing(
    built: VersionedSite,
) -> None:
    assert (built.build(full=True).details.read, built.read()) == (MARKETS, 0)
    assert built.read(detail__recent_fills=3) == MARKETS
    assert built.read(detail__recent_fills=3, guards__max_shrink=0.5) == 0, "it shapes no detail"
    assert built.read(later=-1, detail__recent_fills=3) == MARKETS


def shape(folder: Path, url: str = "postgresql://user:secret@h/db", **settings: Any) -> str:
    return last_details.shape_of(make_config(folder, source__url=url, **settings))


def test_an_updated_checkout_which_keeps_its_version_is_another_program(tmp_path: Path) -> None:
    root = shutil.copytree(ROOT / "generator", tmp_path / "program")
    packages = ("api", "builder", "markets")
    digests = [program.digest(*packages, root=root)]
    for name in ("markets/detail.py", "builder/notices.py", "api/openapi.yaml"):
        (root / name).write_text("# changed")
        digests.append(program.digest(*packages, root=root))
    assert len({*digests}) == len(digests)
    (root / "publish/plan.py").write_text("# changed")
    assert program.digest(*packages, root=root) == digests[-1], "it makes no detail"


def test_templates_are_of_the_program(tmp_path: Path) -> None:
    (root := tmp_path / "program").mkdir()
    (template := tmp_path / "templates/edge/router.js.j2").parent.mkdir(parents=True)
    digests = set[str]()
    for text in ("1", "2"):
        template.write_text(text)
        digests.add(program.digest(".", "../templates", root=root))
    assert len(digests) == len("12")


def test_another_version_of_what_encodes_or_writes_gives_details_another_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(program.maker.cache_clear)
    monkeypatch.syspath_prepend(tmp_path)
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: monkeypatch.setattr("pydantic_core.__version__", "99.0"),
        lambda: monkeypatch.setattr("platform.python_version_tuple", lambda: ("3", "99", "0")),
        lambda: monkeypatch.setattr("zlib.ZLIB_RUNTIME_VERSION", "9.9"),
        *(partial(install, tmp_path, package) for package in ("arro3_core", "arro3_io", "numpy")),
    ]
    found = set[str]()
    for change in changes:
        change()
        program.maker.cache_clear()
        found.add(shape(tmp_path))
    assert len(found) == len(changes)


def install(folder: Path, package: str) -> None:
    """Have the folder say that it has a later version of a package."""
    (folder / f"{package}-99.0.dist-info").mkdir()
    (folder / f"{package}-99.0.dist-info/METADATA").write_text(f"Name: {package}\nVersion: 99.0\n")


def test_another_schema_or_server_counts_as_another_database_and_another_password_as_the_same(tmp_path: Path) -> None:
    same = {shape(tmp_path), shape(tmp_path, "postgresql://user:other@h/db?password=x")}
    others = {shape(tmp_path, source__schema="staging"), shape(tmp_path, "postgresql://user@h/db?host=other")}
    assert (len(same), len(same | others)) == (1, 3)


# ── what is in place ──────────────────────────────────────────────────────────────────────────────────────────────


def edited(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"Question", b"Quastion"))


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.symlink_to(path.with_suffix(".old"))


LOSSES: Final[dict[str, Callable[[Path], object]]] = {"lost": Path.unlink, "a link": replaced_by_link}


EDITS: Final[dict[str, Callable[[Path], object]]] = {"cut": lambda path: os.truncate(path, 10), "edited": edited}


def test_what_somebody_edits_in_a_detail_is_noticed_by_a_full_build_or_where_the_detail_changes(
    built: VersionedSite,
) -> None:
    for number, edit in enumerate(EDITS.values()):
        edit(built.path(number))
    wrong = [built.path(number).read_bytes() for number in range(len(EDITS))]
    assert built.build().details == DetailCounts(kept=MARKETS)
    assert [built.path(number).read_bytes() for number in range(len(EDITS))] == wrong
    built.edit(0, prob=0.25)
    assert built.build().details == DetailCounts(read=1, kept=MARKETS - 1), "nothing is made of a damaged body"
    assert built.build(full=True).details == DetailCounts(read=MARKETS)
    assert_as_fresh(built)


def test_a_build_that_was_killed_before_its_manifest_was_complete_is_not_trusted(built: VersionedSite) -> None:
    built.trade(3)
    saved = count(1)
    with dying(lambda _, path: path.name == files.MANIFEST and next(saved) == 2):
        built.build(later=0)
    assert len(built.detail(3)["recentFills"]) == 2, "it was in place"
    assert built.read(later=0) == MARKETS
    assert_as_fresh(built)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_version_is_in_no_byte_and_its_digest_for_the_builder_alone(
    versioned_site: VersionedSite, variant: Variant
) -> None:
    versioned_site.database.execute("UPDATE markets SET detail_version = 'CANARY'")
    versioned_site.build(**dict[str, Any](VARIANTS[variant]))
    found = every_file(versioned_site.output, "")
    assert [name for name, body in found.items() if b"CANARY" in body or b"etail_version" in body] == []
    assert {files.FINGERPRINTS, keys.OPENAPI} <= found.keys()
    assert stat.S_IMODE((versioned_site.output / files.FINGERPRINTS).stat().st_mode) == 0o600


# ── what is reported ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_market_with_findings_is_read_by_every_build_which_reports_them(built: VersionedSite) -> None:
    built.trade(3, amount=-1)
    built.trade(4, created_at="2026-02-01 00:00:00.000000")
    for _ in range(2):
        found = built.build()
        assert (found.details.read, found.quarantine.total(), len(found.remarks)) == (2, 1, 1)


# ── false versions ────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_audit_that_finds_a_false_version_reads_everything_and_names_the_market(built: VersionedSite) -> None:
    built.trade(3, is_told=False)
    built.edit(3, prob=0.25)
    built.trade(5, is_told=False)
    built.edit(6, prob=0.75)
    found = built.build(source__audit=1)
    false = [remark.key for remark in found.remarks if remark.topic == Topic.FALSE_VERSION]
    assert false == [market_id(3), market_id(5)]
    assert (found.details.read, found.details.kept, found.details.updated) == (MARKETS, 0, 0)
    page = (built.output / files.INSPECTION).read_text()
    assert (
        f"market {market_id(5)}: a version (detail_version or market_version) did not change"
        in page.partition("Published with a remark")[2]
    )
    assert any("change detail_version with each order, fill and point" in line for line in found.findings())
    assert_as_fresh(built)
    assert not built.build(source__audit=1).remarks


def test_when_a_sample_finds_a_false_version_all_that_differ_are_named_up_to_a_hundred(built: VersionedSite) -> None:
    wrong = [0, 1, 2, 4]
    for number in wrong:
        built.trade(number, is_told=False)
    built.trade(5)
    built.database.execute("DELETE FROM fills WHERE market_id = ?", [market_id(6)])
    sample = Sample(0.5, zlib.crc32(b"1"))
    assert 0 < sum(sample.has(market_id(number)) for number in wrong) < len(wrong)
    found = built.build(source__audit=0.5)
    false = [remark.key for remark in found.remarks if remark.topic == Topic.FALSE_VERSION]
    assert false == [market_id(number) for number in (*wrong, 6)]
    assert_as_fresh(built)


def test_an_audit_counts_the_fills_of_its_sample_too(built: VersionedSite) -> None:
    built.trade(3, is_told=False, created_at="2026-01-31 11:00:00.000000")
    built.tell(3)
    built.build()
    built.database.execute("DELETE FROM fills WHERE created_at = '2026-01-31 11:00:00.000000'")
    counts = {key: (known.version, Window(known.fills24h, known.until)) for key, known in made(built.output).items()}
    with open_reader(make_config(built.folder), Quarantine()) as reader:
        facts, now = reader.survey().facts, AS_OF + timedelta(minutes=built.minutes)
        found = reader.read(EVERYTHING, facts, now, EarlierCounts(counts, lambda _: True))
    assert found.false_versions == [market_id(3)]
    assert [remark.key for remark in built.build(source__audit=1).remarks] == [market_id(3)]
    assert built.detail(3)["market"]["fills24h"] == 0


def made(output: Path) -> Mapping[str, MadeOf]:
    found = fingerprints.load(Output(output, output))
    return found.details if found else {}


# ── the same bytes ────────────────────────────────────────────────────────────────────────────────────────────────


def assert_as_fresh(site: VersionedSite, **settings: Any) -> None:
    """The folder shows what a build into a new folder makes of the same database."""
    fresh = VersionedSite.__new__(VersionedSite)
    fresh.database, fresh.folder, fresh.minutes = site.database, site.folder, site.minutes
    place = site.folder / "fresh"
    if (blocked := site.output / files.BLOCKED).exists():
        place.mkdir()
        shutil.copy(blocked, place)
    with limits.on_one_processor():
        fresh.build(later=0, output=place, **settings)
    assert shown(site.output) == shown(place)
    ours, theirs = (lasting(every_file(output, "v1")) for output in (site.output, place))
    assert {key: ours.get(key) for key in theirs} == theirs
    strangers = {key for key in ours.keys() - theirs.keys() if not keys.is_immutable(key)}
    assert not strangers, "only generations are kept"
    shutil.rmtree(place)


def shown(output: Path) -> dict[str, Any]:
    """Everything but retired generations and what they hold, what a run did to the folder, and since when."""
    manifest = json.loads((output / files.MANIFEST).read_bytes())
    report = json.loads((output / files.REPORT).read_bytes())
    report["quarantined"] = [{**row, "since": ""} for row in report["quarantined"]]
    remarks = [remark for remark in report["remarks"] if "detail_version" not in remark]
    page = (output / files.INSPECTION).read_bytes().partition(b'"excerpts":')[2].partition(b"]}")[0]
    manifest["objects"] = {key: found for key, found in manifest["objects"].items() if not tells_of_earlier_builds(key)}
    objects = {key: (output / key).read_bytes() for key in manifest["objects"]}
    details = {path.relative_to(output).as_posix() for path in (output / keys.DETAILS).rglob("*.json")}
    return {
        "objects": objects,
        "details": details,
        "made": made(output),
        "manifest": [manifest[name] for name in ("objects", "lists", "slugs") if name in manifest],
        "report": [report[name] for name in ("markets", "lists", "quarantined", "quarantinedUnnamed")],
        "remarks": remarks,
        "excerpts": page,
    }
