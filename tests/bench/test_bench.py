"""The benchmarks measure what they say: all competitors make the same files, and goals can be missed."""

import http.client
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from generator.api.keys import LISTS
from generator.tree.shards import LEAST
from tests.bench import __main__ as program
from tests.bench import (
    build,
    change,
    changes,
    changing,
    databases,
    histories,
    local_cluster,
    million,
    packed,
    peers,
    processes,
    record,
)
from tests.bench.buckets import Buckets, Server
from tests.bench.changes import exponent
from tests.bench.growth import weighed
from tests.bench.runner import PYTHON, Command, Competitor, Options, Runner, opened, same_files
from tests.bench.tables import Goal, Measured, ratio, shown, table, walls
from tests.support import programs
from tests.support.sites.builds import NOW, make_config


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with opened(Options(tmp_path / "bench", rounds=2, scale=0.01)) as made:
        yield made


@pytest.fixture
def compiler() -> None:
    programs.require("cc", reason="the C programs of the benchmarks are not run")


def took(*seconds: float) -> list[Measured]:
    return [Measured(time, time, 50) for time in seconds]


def seen(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_ratio_is_of_runs_in_the_same_round() -> None:
    assert ratio([1.0, 10.0, 3.0], [2.0, 20.0, 1.0]) == 0.5
    with pytest.raises(ValueError, match="shorter"):
        ratio([1.0, 2.0], [1.0])


def test_start_up_is_subtracted_by_its_median_and_never_leaves_less_than_nothing() -> None:
    assert walls(took(3.0, 1.0), took(0.5, 9.0, 1.0)) == [2.0, 0.001]


def test_a_goal_is_reached_or_missed() -> None:
    assert Goal("ours ÷ theirs", 0.8, 0.8).line() == "- ours ÷ theirs: 0.80, goal at most 0.80: reached"
    assert Goal("ours ÷ theirs", 0.81, 0.8).line() == "- ours ÷ theirs: 0.81, goal at most 0.80: **MISSED**"
    assert Goal("theirs ÷ ours", 9, 10, is_least=True).line().endswith("9.00, goal at least 10.0: **MISSED**")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1,234"), (0, "0.000")]
)
def test_figures_show_the_digits_that_count(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_table_is_markdown_and_refuses_a_row_of_another_width() -> None:
    assert [*table(["", "wall s"], [["cp -r", "1.00"]])] == ["|  | wall s |", "|---|---:|", "| cp -r | 1.00 |"]
    with pytest.raises(ValueError, match="a row of 1 cells under 2 headings"):
        [*table(["", "wall s"], [["cp -r"]])]


def test_growth_has_an_exponent() -> None:
    assert exponent([10, 100, 1000], [3 * size**1.5 for size in (10, 100, 1000)]) == pytest.approx(1.5)


def test_written_and_unchanged_files_are_read_from_the_summary_line() -> None:
    line = "built 9 markets as of 2026-01-31T12:00:00.000Z: 12 files written (345 bytes), 678 unchanged, 0 deleted"
    assert changing.counted(line) == {"written": 12, "unchanged": 678}


# ── the runner ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.campaign(short=0)
def test_every_competitor_runs_once_a_round_in_a_new_folder(runner: Runner) -> None:
    def command(output: Path) -> Command:
        assert not output.exists()
        return Command(["mkdir", output])

    found: list[tuple[str, Path]] = []
    results = runner.race(
        [Competitor(name, command) for name in "ab"], lambda name, output: found.append((name, output))
    )
    assert {name: len(runs) for name, runs in results.items()} == {"a": 2, "b": 2}
    assert sorted(name for name, _ in found) == ["a", "b"]
    assert all(output.is_dir() for _, output in found)


@pytest.mark.campaign(short=0)
def test_memory_is_that_of_the_largest_process_and_cpu_time_that_of_all(runner: Runner) -> None:
    child = "import time; x = bytearray(200 << 20)\nwhile time.process_time() < 0.5: pass"
    parent = f"import subprocess, sys; [subprocess.run([sys.executable, '-c', {child!r}]) for _ in '12']; print('done')"
    taken = runner.measured(Command([sys.executable, "-c", parent]))
    assert taken.stdout == "done\n"
    assert 200 < taken.rss_mib < 300
    assert taken.cpu_s > 1


def test_a_command_that_fails_ends_the_benchmark(runner: Runner) -> None:
    with pytest.raises(SystemExit, match="false ended with 1"):
        runner.measured(Command(["false"]))


def test_a_missing_program_is_reported_as_not_measured(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.program("no-such-program", "apt-get install it") is None
    sentence = "NOT MEASURED: no-such-program is not installed; apt-get install it"
    assert runner.missing == [sentence]
    assert sentence in capsys.readouterr().err


def test_a_slow_file_system_makes_the_results_warn(runner: Runner) -> None:
    runner.created_s = [10e-6, 20e-6]
    assert runner.disk_state() == "before each round, creating a file took at most 20 us, as it should"
    runner.created_s.append(400e-6)
    assert "took 10 to 400 us" in runner.disk_state()
    assert "do not trust the figures" in runner.disk_state()


def test_folders_with_different_bytes_are_not_the_same(tmp_path: Path) -> None:
    for name, text in (("one", "x"), ("same", "x"), ("other", "y")):
        folder = tmp_path / name
        folder.mkdir()
        folder.joinpath("file").write_text(text)
    same_files(tmp_path / "one", tmp_path / "same")
    with pytest.raises(SystemExit, match="the files differ"):
        same_files(tmp_path / "one", tmp_path / "other")
    tmp_path.joinpath("same", "more").touch()
    with pytest.raises(SystemExit, match="the files differ"):
        same_files(tmp_path / "one", tmp_path / "same")


def test_files_and_folders_are_counted_with_their_bytes(tmp_path: Path) -> None:
    tmp_path.joinpath("folder").mkdir()
    tmp_path.joinpath("folder", "file").write_bytes(b"x" * 5000)
    inodes, size, blocks = weighed(tmp_path)
    assert (inodes, size) == (3, 5000)
    assert blocks >= 5000


def test_what_a_build_writes_is_told_apart_by_what_it_is_for(tmp_path: Path) -> None:
    marker, keys = tmp_path / "marker", (f"{LISTS}/all/new/head.json", "v1/public/markets/detail/00/0.json")
    for key in (*keys, "v1/build.json", "v1/public/markets/snapshot.json"):
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(b"x" * len(key))
    marker.touch()
    time.sleep(0.02)  # longer than the clock of a file system takes to move on
    for key in (*keys, "v1/build.json"):
        (tmp_path / key).rename(tmp_path / "aside")
        (tmp_path / "aside").rename(tmp_path / key)
    expected = dict.fromkeys((changing.CHUNKS, changing.INDEXES, changing.BESIDE), changing.Written())
    kinds = (changing.HEADS, changing.DETAILS, changing.OTHERS)
    expected |= {kind: changing.Written(1, len(key)) for kind, key in zip(kinds, (*keys, "v1/build.json"), strict=True)}
    assert changing.written_since(tmp_path, marker) == expected


@pytest.mark.campaign(short=0)
def test_all_processes_of_a_build_have_their_rows_statements_and_files_counted(runner: Runner) -> None:
    path = databases.uniform(runner.root / "uniform.db", markets=30, points=4, fills=3)
    output = runner.new("counted")
    first, second = (changing.built(runner, path, output, 0, is_counted=True).counts for _ in range(2))
    assert first is not None
    assert second is not None
    # The number of markets; of each its id, row, membership, points, fills and orders.
    assert second.rows == 1 + 30 * (1 + 1 + 1 + 4 + 3 + 6)
    assert second.statements > 6
    # A first build also asks four relations whether they have any row.
    assert (first.rows, first.statements) == (second.rows + 4, second.statements + 4)
    assert second.looked_at >= 30
    assert second.opened >= 30, "without versions, details are compared with their files"
    plain = changing.built(runner, path, output, 0)
    assert plain.counts is None


def test_a_few_changes_touch_as_many_chunks_of_a_long_list_and_all_of_a_short_one() -> None:
    assert [round(changes.touched(chunks, 50), 1) for chunks in (0, 1, 14, 300, 30_000)] == [0, 1, 13.7, 46.1, 50]


def test_a_smaller_database_has_the_first_markets_with_all_that_is_theirs(demo_folder: Path, tmp_path: Path) -> None:
    demo, part = demo_folder / "markets.db", tmp_path / "part.db"
    databases.copy_first(demo, 20, part)
    owned = "market_id IN (SELECT id FROM markets ORDER BY rowid LIMIT 20)"
    counts = [f"SELECT count(*) FROM {relation} WHERE {owned}" for relation in ("fills", "orders", "probabilities")]
    with closing(sqlite3.connect(demo)) as whole, closing(sqlite3.connect(part)) as copied:
        for query in (*counts, "SELECT * FROM markets ORDER BY rowid LIMIT 20"):
            assert copied.execute(query).fetchall() == whole.execute(query).fetchall()
        assert copied.execute("SELECT count(*) FROM markets").fetchone() == (20,)
        assert copied.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'index'").fetchone() == (6,)


def test_the_traded_markets_are_as_many_everywhere_but_where_they_would_be_most() -> None:
    assert [round(change.traded(public) * public) for public in (90_000, 500, 100)] == [50, 50, 10]


# ── competitors make the same files ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("processes", [1, 3])
def test_the_c_program_creates_the_same_files(runner: Runner, processes: int) -> None:
    tree, output = runner.root / "tree", runner.new("c")
    for number in range(7):
        folder = tree / f"{number % 3}" / f"{number}"
        folder.mkdir(parents=True)
        for name in ("a.json", "with space"):
            folder.joinpath(name).write_bytes(f"{number}\n{name}".encode() * number)
    tree.joinpath("at the top.json").write_bytes(b"1")
    program = packed.compiled(runner)
    assert program is not None
    runner.measured(packed.creating(program, *packed.pack(tree, runner.root), processes, output))
    same_files(tree, output)


@pytest.mark.campaign(short=0)
def test_the_lists_stage_a_build_and_the_naive_script_write_the_same_pages(runner: Runner) -> None:
    path = databases.realistic(runner, 10)
    whole, alone, naive = (runner.new(name) for name in ("whole", "alone", "naive"))
    runner.measured(build.building(runner, databases.url(path), whole))
    runner.measured(build.listing(databases.url(path), alone))
    runner.measured(peers.scripted(peers.written_lists(runner, path), naive))
    same_files(whole / LISTS, alone / LISTS)
    # Files only: a list of one market has an empty folder for its later pages.
    assert len(seen(naive)) > 3_000
    assert seen(naive) == seen(whole / LISTS)


@pytest.mark.campaign(short=0)
def test_the_loop_of_cursors_writes_the_same_details_as_the_product(runner: Runner) -> None:
    path = databases.uniform(runner.root / "uniform.db", markets=3, points=20, fills=5)
    made = {name: runner.new(name) for name in ("stages", "direct_details")}
    for name, output in made.items():
        stage = ["details", NOW] if name == "stages" else []
        runner.measured(Command([*PYTHON, f"tests.bench.{name}", *stage, databases.url(path), output]))
    bodies = [output.read_bytes() for output in made.values()]
    assert bodies[0].count(b"\n") == 3
    assert bodies[0].count(b'"prob":') == 3 * 21
    assert bodies[0] == bodies[1]


@pytest.mark.campaign(short=0)
def test_trades_change_some_open_markets(runner: Runner) -> None:
    path = databases.realistic(runner, 50)
    outputs = runner.new("traded")
    runner.measured(build.building(runner, databases.url(path), outputs))
    before = seen(outputs / "v1")
    assert databases.trade(path, 0.1) == 5
    runner.measured(build.building(runner, databases.url(path), outputs))
    details = {name for name, body in seen(outputs / "v1").items() if before.get(name) != body and "/detail/" in name}
    assert len(details) == 5


# ── the S3 server ─────────────────────────────────────────────────────────────────────────────────────────────────


def ask(server: Server, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request(method, target, body, {"Authorization": "x", **named})
        answer = connection.getresponse()
        return answer.status, answer.read() or (answer.headers["ETag"] or "").encode()


@pytest.mark.usefixtures("compiler")
def test_the_server_in_c_honours_conditions_and_lists_its_objects(runner: Runner) -> None:
    with Buckets.compiled(runner).running(0) as server:
        assert isinstance(server, Server)
        status, tag = ask(server, "PUT", "/markets/a%20b", b"one", If_None_Match="*")
        assert status == 200
        assert ask(server, "PUT", "/markets/a%20b", b"two", If_None_Match="*")[0] == 412
        assert ask(server, "PUT", "/markets/a%20b", b"two", If_Match='"0000"')[0] == 412
        assert ask(server, "PUT", "/markets/a%20b", b"two", If_Match=tag.decode())[0] == 200
        assert ask(server, "GET", "/markets/a%20b") == (200, b"two")
        assert b"<Key>a b</Key>" in ask(server, "GET", "/markets?list-type=2&prefix=a")[1]
        assert b"<Key>" not in ask(server, "GET", "/markets?list-type=2&prefix=b")[1]
        assert ask(server, "DELETE", "/markets/a%20b")[0] == 204
        assert ask(server, "GET", "/markets/a%20b")[0] == 404
        assert (server.counts().requests, server.counts().puts) == (9, 4)


@pytest.mark.campaign(short=0)
@pytest.mark.usefixtures("compiler")
def test_the_ceiling_of_the_server_is_measured(runner: Runner) -> None:
    assert (Buckets.compiled(runner).ceiling(2) or 0) > 100


@pytest.mark.campaign(short=0)
def test_histories_are_built_for_the_first_time_and_on_the_next_day(runner: Runner) -> None:
    found = {kind: histories.one_round(runner, 120, kind) for kind in (histories.NONE, histories.FULL)}
    for first, day in (built.values() for built in found.values()):
        assert first.read is not None
        assert 0 < (day.read or 0) < first.read
    assert [goal.limit for goal in histories.goals([found])] == [0.25, 0.03]


def test_an_unknown_part_is_refused_with_the_names_of_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tests.bench", "nothing"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 2
    assert "'build'" in capsys.readouterr().err


@pytest.mark.campaign(short=0)
def test_the_record_is_measured_for_every_kind_of_publish(tmp_path: Path) -> None:
    config = make_config(tmp_path, layout="chunks", publish__single_writer=True, cursor__lifetime=86_400)
    found = record.measured(LEAST, config)
    idle = [found["nothing changed"].bytes, found["nothing changed, after a day"].bytes]
    assert all(each["GET"] > 0 and "PUT" not in each for each in idle)
    # A folder that was lost knows no chunk names, so their indexes are read.
    lost, kept = (found[f"{record.CHANGED} changed{rest}"].requests for rest in (", folder lost", ""))
    assert lost["GET"] > kept["GET"] > 0
    assert lost["PUT"] == kept["PUT"]


# ── builds with a cluster ─────────────────────────────────────────────────────────────────────────────────────────


def test_seconds_in_which_all_workers_are_idle_count_as_the_coordinators_alone() -> None:
    def at(second: float, coordinator: float, worker: float, database: float) -> processes.Sample:
        used = {million.COORDINATOR: coordinator, "worker 1": worker, "worker 2": 0.0, million.DATABASE: database}
        return processes.Sample(second, {local_cluster.SCHEDULER: 0.0, **used})

    seconds = [(0, 0, 0, 0), (10, 9, 0, 1), (20, 13, 9, 3), (22, 14, 9.1, 3), (30, 20, 9.2, 3), (31, 20, 9.2, 3)]
    log: list[dict[str, object]] = [
        {"stage": "read", "duration_ms": 8000, "time": "1970-01-01T00:00:10Z"},
        {"message": "something else"},
        {"stage": "render", "duration_ms": 20000, "time": "1970-01-01T00:00:30Z"},
    ]
    ends = million.ends(log)
    assert ends == {million.START: 2, "read": 10, "render": 30}
    found = million.parts([at(*each) for each in seconds], ends, ["worker 1", "worker 2"])
    assert [(name, part.wall_s, part.alone_s) for name, part in found.items()] == [
        (million.START, 0, 0), ("read", 10, 10), ("render", 20, 10), (million.END, 1, 1)
    ]  # fmt: skip
    whole = sum(found.values(), million.Part())
    assert (whole.beside_s, whole.database_beside_s, whole.clock.serial_s, whole.cpu.serial_s) == (4, 2, 25, 21)
    assert [round(whole.clock.calculated_s(workers), 1) for workers in (1, 2, 32)] == [32.2, 26.6, 25]
    assert [round(whole.cpu.calculated_s(workers), 1) for workers in (1, 2, 32)] == [28.2, 22.6, 21]


def test_the_time_and_the_peak_memory_of_running_processes_are_sampled() -> None:
    work = "while time.process_time() < 0.05: pass"
    child = f"import sys, time; x = bytearray(60 << 20)\n{work}\nprint(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        with processes.watched({"child": process.pid}) as watch:
            assert process.pid in processes.family(processes.parent(process.pid))
        process.communicate()
    assert watch.peaks["child"] > 60
    assert watch.samples[-1].cpu_s["child"] >= 0.04
    assert processes.cpu_s([process.pid]) == processes.peak_mib(process.pid) == 0
