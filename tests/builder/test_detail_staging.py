"""A build reads only the details that changed, and leaves the same bytes as one that reads everything."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.builder import detail_staging
from generator.builder.guards import BuildOverrides
from generator.builder.last_details import LastDetails, Sample
from generator.builder.notices import Topic
from generator.builder.report import Report
from generator.builder.run import Clock, build
from generator.errors import FalseVersionsError
from generator.markets.fills import Window
from generator.markets.quarantine import Quarantine
from generator.source.fill_windows import FillWindows
from generator.source.queries import EVERYTHING, Chosen, Within
from generator.source.reader import open_reader
from generator.tree import files, fingerprints
from generator.tree.fingerprints import Made
from generator.tree.folder import Output
from tests.support.builds import AS_OF, Silent, make_config
from tests.support.rows import insert_fill, insert_market, insert_order, insert_point, market_id

MARKETS: Final = 7
EARLIER: Final = "2026-01-15 00:00:00.000000"


class Site:
    """A database that promises to change a market's version with its rows, and builds of it."""

    def __init__(self, database: sqlite3.Connection, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.minutes = 0
        database.execute("ALTER TABLE markets ADD COLUMN detail_version")
        for number in range(MARKETS):
            self.add(number)

    def add(self, number: int) -> None:
        insert_market(self.database, number, detail_version=1)
        insert_order(self.database, market_id=market_id(number))
        insert_fill(self.database, number, market_id=market_id(number))
        insert_point(self.database, EARLIER, market_id=market_id(number))

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

    def build(self, *, later: int = 5, full: bool = False, **settings: Any) -> Report:
        self.minutes += later
        config = make_config(self.folder, **{"source__audit": 0, "layout": "chunks", **settings})
        clock = Clock(AS_OF + timedelta(minutes=self.minutes), is_set=True)
        return build(config, clock, overrides=BuildOverrides(full=full, seed="1"), progress=Silent())

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
def site(database: sqlite3.Connection, tmp_path: Path) -> Site:
    return Site(database, tmp_path)


@pytest.fixture
def built(site: Site) -> Site:
    site.build()
    return site


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_build_reads_every_detail_and_the_next_one_none(site: Site) -> None:
    assert site.build().details == detail_staging.DetailCounts(read=MARKETS)
    assert site.build().details == detail_staging.DetailCounts(kept=MARKETS)


def test_a_market_with_another_version_is_read(built: Site) -> None:
    built.trade(3)
    assert built.build().details == detail_staging.DetailCounts(read=1, kept=MARKETS - 1)
    assert len(built.detail(3)["recentFills"]) == 2


def test_a_market_whose_own_row_changed_gets_a_new_market_object_and_keeps_the_rest(built: Site) -> None:
    built.edit(3, question='New, "orderBook":?', description='",\\"orderBook":{}', prob=0.25)
    before = built.detail(3)
    assert built.build().details == detail_staging.DetailCounts(updated=1, kept=MARKETS - 1)
    after = built.detail(3)
    assert (after["market"]["question"], after["market"]["prob"]) == ('New, "orderBook":?', 0.25)
    assert {**after, "market": None} == {**before, "market": None}


def test_a_fill_that_leaves_the_window_of_24_hours_changes_the_market_object_alone(site: Site) -> None:
    site.trade(3, created_at="2026-01-30 12:10:00.000000")
    site.build()
    assert site.detail(3)["market"]["fills24h"] == 1
    assert site.build(later=30).details == detail_staging.DetailCounts(updated=1, kept=MARKETS - 1)
    assert site.detail(3)["market"]["fills24h"] == 0


def test_with_a_step_fills_leave_the_window_together_at_the_full_hour(site: Site) -> None:
    hourly: dict[str, Any] = {"fills_window_step": "1 h"}
    site.trade(3, created_at="2026-01-30 12:01:00.000000")
    site.trade(4, created_at="2026-01-30 12:59:00.000000")
    site.trade(5, created_at="2026-01-30 11:59:00.000000")
    site.build(later=10, **hourly)
    shown = [site.detail(number)["market"]["fills24h"] for number in (3, 4, 5)]
    assert shown == [1, 1, 0]
    assert site.build(later=49, **hourly).written == 1, "build.json alone"
    assert site.build(later=1, **hourly).details == detail_staging.DetailCounts(updated=2, kept=MARKETS - 2)
    assert [site.detail(number)["market"]["fills24h"] for number in (3, 4)] == [0, 0]
    assert_as_fresh(site, **hourly)


def test_another_step_counts_anew_and_reads_everything(site: Site) -> None:
    site.trade(3, created_at="2026-01-30 12:10:00.000000")
    site.build(later=30)
    assert site.detail(3)["market"]["fills24h"] == 0
    assert site.read(later=1, fills_window_step="1 h") == MARKETS
    assert site.detail(3)["market"]["fills24h"] == 1


def test_a_fill_that_was_there_before_its_time_enters_the_window_when_that_comes(site: Site) -> None:
    site.trade(3, created_at="2026-01-31 12:08:00.000000")
    site.build()
    assert site.detail(3)["market"]["fills24h"] == 0
    assert site.build().details == detail_staging.DetailCounts(updated=1, kept=MARKETS - 1)
    assert site.detail(3)["market"]["fills24h"] == 1


def test_fills_are_counted_only_where_the_number_may_have_changed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = list[Within]()
    real = FillWindows._count  # noqa: SLF001 - what it is asked for cannot be seen from outside

    def count(self: FillWindows, as_of: datetime, within: Within) -> dict[str, Window]:
        counted.append(within)
        return real(self, as_of, within)

    monkeypatch.setattr(FillWindows, "_count", count)
    site.trade(3, created_at="2026-01-30 12:12:00.000000")
    site.trade(4, created_at="2026-01-31 12:00:00.000000")
    for _ in range(3):
        site.build()
    site.trade(5)
    site.build()
    # Nothing in the second build; then market 3, whose fill leaves the window, and market 5, which was traded.
    assert counted == [EVERYTHING, Chosen((market_id(3),)), Chosen((market_id(5),))]


def test_any_other_version_counts_and_null_is_never_known(built: Site) -> None:
    for version in ("2", "'1'", "1.5", "x'31'", "CAST(x'ff' AS TEXT)", "NULL"):
        change = f"UPDATE markets SET detail_version = {version} WHERE id = ?"
        built.database.execute(change, [market_id(3)])
        assert built.read() == 1, version
    assert built.read() == 1, "still unknown"


def test_without_the_column_everything_is_read_and_nothing_remembered(built: Site) -> None:
    assert (built.output / files.FINGERPRINTS).exists()
    built.database.execute("ALTER TABLE markets DROP COLUMN detail_version")
    assert [built.read(), built.read()] == [MARKETS, MARKETS]
    assert not (built.output / files.FINGERPRINTS).exists()


def test_a_full_build_reads_everything_and_the_next_one_nothing(built: Site) -> None:
    assert (built.build(full=True).details.read, built.read()) == (MARKETS, 0)


def test_a_setting_that_shapes_details_has_all_of_them_read_and_another_one_none(built: Site) -> None:
    assert built.read(detail__recent_fills=3) == MARKETS
    assert built.read(detail__recent_fills=3, guards__max_shrink=0.5) == 0


@pytest.mark.parametrize("which", ["__version__", "encoder"])
def test_another_program_or_encoder_reads_everything(built: Site, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if which == "encoder":
        monkeypatch.setattr("generator.builder.last_details.pydantic_core.__version__", "0")
    else:
        monkeypatch.setattr("generator.builder.last_details.__version__", "0")
    assert built.read() == MARKETS


def test_an_earlier_as_of_reads_everything(built: Site) -> None:
    assert built.read(later=-1) == MARKETS


# ── what is in place ──────────────────────────────────────────────────────────────────────────────────────────────


def edited(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"Question", b"Quastion"))


def edited_in_disguise(path: Path) -> None:
    """The same size and times as before."""
    before = path.stat()
    edited(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.symlink_to(path.with_suffix(".old"))


DAMAGES: Final[dict[str, Callable[[Path], object]]] = {
    "lost": Path.unlink,
    "cut": lambda path: os.truncate(path, 10),
    "edited": edited,
    "edited in disguise": edited_in_disguise,
    "a link": replaced_by_link,
}


@pytest.mark.campaign(short=3)
@pytest.mark.parametrize("most", [0, 1000], ids=["no excerpts", "excerpts"])
@pytest.mark.parametrize("prob", [0.5, 0.25], ids=["same row", "another row"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_detail_that_somebody_lost_or_edited_is_read_and_written_again(
    built: Site, damage: str, prob: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.builder.inspection.excerpts.EXCERPTS", most)
    DAMAGES[damage](built.path(3))
    built.edit(3, prob=prob)
    found = built.build(later=0)
    assert found.details.read + found.details.updated == 1
    assert_as_fresh(built)
    assert built.read(later=0) == 0


def test_a_body_that_is_needed_is_compared_with_its_digest_whatever_the_file_system_says(built: Site) -> None:
    edited(built.path(3))
    edited(built.path(4))
    built.edit(4, prob=0.25)
    os.utime(built.output / files.FINGERPRINTS)  # now everything is older
    assert built.read() == 2
    assert_as_fresh(built)


def test_a_folder_that_lost_what_its_details_were_made_of_is_read_again(built: Site) -> None:
    for content in (None, b"", b"{", b'{"asOf": "2026", "shape": "", "details": {}}'):
        place = built.output / files.FINGERPRINTS
        place.unlink() if content is None else place.write_bytes(content)
        assert built.read() == MARKETS


def test_what_an_older_program_built_meanwhile_is_read_again(built: Site) -> None:
    old = (built.output / files.FINGERPRINTS).read_bytes()
    built.edit(3, prob=0.25)
    built.build()
    (built.output / files.FINGERPRINTS).write_bytes(old)
    assert built.read() == MARKETS


def test_a_build_that_was_killed_before_its_manifest_was_complete_is_not_trusted(
    built: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    built.trade(3)
    save = Output.save

    def killed_before_it_is_complete(folder: Output, name: str, content: bytes) -> None:
        if name == files.MANIFEST and b'"complete": true' in content:
            raise KeyboardInterrupt
        save(folder, name, content)

    with monkeypatch.context() as patch:
        patch.setattr(Output, "save", killed_before_it_is_complete)
        with pytest.raises(KeyboardInterrupt):
            built.build(later=0)
    assert len(built.detail(3)["recentFills"]) == 2, "it was in place"
    assert built.read(later=0) == MARKETS
    assert_as_fresh(built)


def test_a_market_that_returns_is_read(built: Site) -> None:
    built.edit(3, approval="pending")
    assert built.read() == 0
    built.edit(3, approval="approved")
    assert built.read() == 1


def test_an_unchanged_build_writes_no_file(built: Site) -> None:
    def written() -> dict[Path, tuple[int, int]]:
        found = {path: path.stat() for path in built.output.rglob("*.*") if path.name != ".lock"}
        return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}

    before = written()
    built.build(later=0)
    assert written() == before


# ── what is reported ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_market_with_findings_is_read_by_every_build_which_reports_them(built: Site) -> None:
    built.trade(3, amount=-1)
    built.trade(4, created_at="2026-02-01 00:00:00.000000")
    for _ in range(2):
        found = built.build()
        assert (found.details.read, found.quarantine.total(), len(found.remarks)) == (2, 1, 1)


def test_the_report_counts_how_details_were_made(built: Site) -> None:
    built.trade(3)
    built.edit(4, prob=0.25)
    found = built.build()
    run = json.loads((built.output / files.REPORT).read_bytes())["run"]
    assert run["details"] == {"read": 1, "updated": 1, "kept": MARKETS - 2, "audited": 0}
    samples = {key.labels: value for key, value in found.samples().items() if key.name == "details"}
    assert samples == {(("by", name),): value for name, value in run["details"].items()}


# ── false versions ────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_audit_that_finds_a_false_version_reads_everything_and_names_the_market(built: Site) -> None:
    built.trade(3, is_told=False)
    built.edit(3, prob=0.25)
    built.trade(5, is_told=False)
    built.edit(6, prob=0.75)
    found = built.build(source__audit=1)
    false = [remark.key for remark in found.remarks if remark.kind.topic == Topic.FALSE_VERSION]
    assert false == [market_id(3), market_id(5)]
    assert found.details == detail_staging.DetailCounts(read=MARKETS)
    assert any("change it with each of these rows" in line for line in found.findings())
    assert_as_fresh(built)
    assert not built.build(source__audit=1).remarks


def test_an_audit_counts_the_fills_of_its_sample_too(built: Site) -> None:
    built.trade(3, is_told=False, created_at="2026-01-31 11:00:00.000000")
    built.tell(3)
    built.build()
    built.database.execute("DELETE FROM fills WHERE created_at = '2026-01-31 11:00:00.000000'")
    earlier = LastDetails(Output(built.output, built.output), known=made(built)).counts(Sample(1, ""))
    with open_reader(make_config(built.folder), Quarantine()) as reader, pytest.raises(FalseVersionsError) as found:
        reader.catalog(AS_OF + timedelta(minutes=built.minutes), earlier)
    assert found.value.markets == [market_id(3)]
    assert [remark.key for remark in built.build(source__audit=1).remarks] == [market_id(3)]
    assert built.detail(3)["market"]["fills24h"] == 0


def made(site: Site) -> Mapping[str, Made]:
    found = fingerprints.parsed((site.output / files.FINGERPRINTS).read_bytes())
    assert found
    return found.details


def test_a_row_to_quarantine_that_came_without_a_new_version_is_a_false_version(built: Site) -> None:
    built.trade(3, is_told=False, amount=-1)
    found = built.build(source__audit=1)
    assert [remark.key for remark in found.remarks] == [market_id(3)]
    assert found.quarantine.total() == 1


def test_an_audit_reads_its_share_and_finds_nothing_where_promises_are_kept(built: Site) -> None:
    built.trade(3)
    built.edit(4, prob=0.25)
    found = built.build(source__audit=0.5)
    assert not found.remarks
    assert 0 < found.details.audited == found.details.read - 1 < MARKETS - 1


def test_a_false_version_that_is_in_no_sample_is_not_noticed(built: Site) -> None:
    built.trade(3, is_told=False)
    assert built.read(source__audit=0) == 0


# ── the same bytes ────────────────────────────────────────────────────────────────────────────────────────────────


def assert_as_fresh(site: Site, **settings: Any) -> None:
    """The folder shows what a build into a new folder makes of the same database."""
    fresh = Site.__new__(Site)
    fresh.database, fresh.folder, fresh.minutes = site.database, site.folder, site.minutes
    place = site.folder / "fresh"
    fresh.build(later=0, output=place, **settings)
    assert shown(site.output) == shown(place)
    shutil.rmtree(place)


def shown(output: Path) -> dict[str, Any]:
    """Everything but retired generations and what they hold, and what a run did to the folder."""
    manifest = json.loads((output / files.MANIFEST).read_bytes())
    report = json.loads((output / files.REPORT).read_bytes())
    remarks = [remark for remark in report["remarks"] if "detail_version" not in remark]
    page = (output / files.INSPECTION).read_bytes().partition(b'"excerpts":')[2].partition(b"]}")[0]
    objects = {key: (output / key).read_bytes() for key in manifest["objects"]}
    details = {path.relative_to(output).as_posix() for path in (output / keys.DETAILS).rglob("*.json")}
    return {
        "objects": objects,
        "details": details,
        "made": json.loads((output / files.FINGERPRINTS).read_bytes()) if (output / files.FINGERPRINTS).exists() else 0,
        "manifest": [manifest[name] for name in ("objects", "lists", "slugs") if name in manifest],
        "report": [report[name] for name in ("markets", "lists", "quarantined", "quarantinedUnnamed")],
        "remarks": remarks,
        "excerpts": page,
    }
