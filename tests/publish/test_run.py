"""Publishing a folder to a bucket with the real commands: what is uploaded, kept and retained, in how few requests."""

import json
import re
import subprocess
import sys
from contextlib import suppress

import pytest

from generator.api import keys
from generator.publish import apply
from generator.site.families import rank
from generator.stores.directory import Directory
from tests.support.project import ROOT
from tests.support.sites.builds import files
from tests.support.sites.publishing import EVERY, PublishedSite, fill_parquet, hour
from tests.support.sites.rows import insert_fx_member, insert_market, market_id, tell_row_versions
from tests.support.stores.s3.behaviour import SLOW_DOWN
from tests.support.stores.s3.wire import Request
from tests.support.waiting import PATIENCE_S, wait_until

# What is uploaded


def test_the_first_publish_uploads_the_whole_build(empty: PublishedSite) -> None:
    result = empty.done("publish")
    built = empty.built()
    assert empty.objects() == built
    empty.check()
    size = sum(map(len, built.values()))
    assert re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+Z", "TIME", result.stdout) == (
        f"published 11 markets as of TIME to s3://markets/api: {len(built)} objects uploaded ({size} bytes), "
        f"0 unchanged, 0 deleted, 0 retained, {len(empty.server.log)} requests\n"
    )
    assert result.stderr == ""


def test_every_object_is_stored_with_its_headers(published_site: PublishedSite) -> None:
    stored = {
        key.removeprefix("api/"): (headers["content-type"], headers["cache-control"])
        for key, (_, headers) in published_site.server.objects().items()
        if key.startswith("api/v1/")
    }
    assert len(stored) > 100
    assert stored == {key: tuple(keys.headers(key, keys.UNPURGED_IMMUTABLE).values()) for key in stored}


def test_groups_are_uploaded_in_publication_order(published_site: PublishedSite) -> None:
    published_site.edit(1, question="Else?")
    requests = published_site.requests("rebuild", "--as-of", hour(1))
    put = [request.removeprefix("PutObject ") for request in requests if request.startswith("PutObject v1/")]
    groups = [0 if keys.is_immutable(key) else 1 + rank(key) for key in put]
    assert groups == sorted(groups)
    assert {*groups} == {0, 1, 2, 3, 4, 5}
    before, after = (
        requests.index("PutObject manifest.json"),
        len(requests) - requests[::-1].index("PutObject manifest.json"),
    )
    assert before < requests.index(f"PutObject {put[0]}") < requests.index(f"PutObject {put[-1]}") < after


def test_only_what_changed_is_uploaded_and_the_bucket_is_not_listed(published_site: PublishedSite) -> None:
    before = published_site.objects()
    published_site.server.behaviour.refuses_lists = True
    published_site.edit(1, question="Else?")
    result = published_site.done("rebuild", "--as-of", hour(1))
    published_site.check()
    after = published_site.objects()
    changed = {key for key in after if after[key] != before.get(key)}
    size = sum(len(after[key]) for key in changed)
    retained = int(result.stdout.partition(" retained")[0].split()[-1])
    unchanged = len(published_site.built().keys() & after.keys()) - len(changed) - retained
    assert f"{len(changed)} objects uploaded ({size} bytes), {unchanged} unchanged, 0 deleted" in result.stdout
    uploaded = {entry.key.removeprefix("api/") for entry in published_site.server.log if entry.operation == "PutObject"}
    assert {key for key in uploaded if key.startswith("v1/")} == changed


def test_changed_headers_count_as_a_change(published_site: PublishedSite) -> None:
    # The record holds digests of bytes and headers, so other headers give another digest.
    record = json.loads(published_site.stored()["manifest.json"])
    record["built"]["objects"][keys.SNAPSHOT] = "0" * 32
    published_site.put("manifest.json", json.dumps(record).encode())
    published_site.put(keys.SNAPSHOT, published_site.objects()[keys.SNAPSHOT], {"cache-control": "no-store"})
    assert f"PutObject {keys.SNAPSHOT}" in published_site.requests("publish")
    assert published_site.server.objects()["api/" + keys.SNAPSHOT][1]["cache-control"] == keys.MUTABLE
    published_site.check()


# Numbers of requests


def test_an_unchanged_publish_makes_two_requests(published_site: PublishedSite) -> None:
    before = published_site.stored()
    assert published_site.requests("publish") == ["GetObject manifest.json", "GetObject blocked.json"]
    assert published_site.stored() == before


@pytest.mark.parametrize(("more", "ends_early"), [(0, False), (90, False), (0, True)])
def test_an_unchanged_rebuild_makes_five_requests_whatever_the_size(
    published_site: PublishedSite, more: int, *, ends_early: bool
) -> None:
    if ends_early:
        published_site.database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
        tell_row_versions(published_site.database)
        published_site.done("rebuild", "--as-of", hour(0))
    if more:
        for number in range(200, 200 + more):
            insert_market(published_site.database, number)
            insert_fx_member(published_site.database, market_id=market_id(number))
        published_site.done("rebuild", "--as-of", hour(1))
    requests = published_site.requests("rebuild", "--as-of", hour(2))
    assert requests == [
        "GetObject blocked.json",
        "GetObject manifest.json",
        "PutObject manifest.json",
        "PutObject v1/build.json",
        "PutObject manifest.json",
    ]
    published_site.check()
    assert json.loads(published_site.objects()[keys.BUILD])["markets"] == len(EVERY) + more
    report = json.loads((published_site.folder / "output/report.json").read_bytes())
    assert ("render" not in report["run"]["seconds"]) == ends_early


# Outages


@pytest.mark.usefixtures("impatient")
def test_an_outage_of_a_published_site_is_no_reason_to_worry(published_site: PublishedSite) -> None:
    published_site.edit(1, question="Else?")
    published_site.server.before = lambda request: SLOW_DOWN if "first/" in request.key else None
    assert published_site.run("rebuild", "--as-of", hour(1)).stderr.endswith(
        "; what is published stays whole, the next run finishes the work\n"
    )


# Targets


def test_a_directory_is_a_target_too(published_site: PublishedSite) -> None:
    directory = published_site.folder / "www"
    published_site.target = str(directory)
    published_site.done("publish")
    assert files(directory) == published_site.built()
    published_site.edit(1, question="Else?")
    published_site.done("rebuild", "--as-of", hour(1))
    assert files(directory) == published_site.built()
    for _ in range(2):
        published_site.done("rebuild", "--as-of", hour(8))
        assert files(directory) == published_site.built()
    names = {path.name for path in directory.iterdir()}
    assert names - {".lock-publish"} == {"v1", "manifest.json"}
    assert [listed.key for listed in Directory(directory).list("")] == sorted(
        ["manifest.json", *published_site.built()]
    )


def test_large_files_are_uploaded_one_at_a_time(published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once would be in memory, and share the line until none is done in time."""
    at_once, most, patience_s = set[str](), 0, float(PATIENCE_S)

    def slowly(request: Request) -> None:
        nonlocal most
        if request.operation == "PutObject" and request.key.endswith(".parquet"):
            at_once.add(request.key)
            with suppress(AssertionError):  # no other one comes
                wait_until(lambda: len(at_once) > 1 or most > 1, patience_s)
            most = max(most, len(at_once))
            at_once.remove(request.key)

    fill_parquet(published_site)
    published_site.server.before = slowly
    published_site.done("rebuild", "--as-of", hour(1))
    assert most > 1
    most, patience_s = 0, 0.01
    monkeypatch.setattr(apply, "_LARGE", 1)
    published_site.done("publish", publish__target="s3://markets/another/")
    assert most == 1


def test_a_foreign_change_of_an_object_is_overwritten_and_the_store_audited(published_site: PublishedSite) -> None:
    page, detail = keys.first_page("cancelled/new", 2), keys.detail(market_id(2))
    published_site.put(page, b"manual")
    published_site.put(detail, b"manual, too")
    published_site.edit(10, question="Else?", volume=1_000.0)
    requests = published_site.requests("rebuild", "--as-of", hour(1))
    assert "ListObjectsV2 " in requests
    published_site.check()


# Folders


@pytest.mark.parametrize("target", ["output", "output/", "./output/v1", "output/site", "link", "link/site"])
def test_a_target_within_the_output_folder_is_refused(published_site: PublishedSite, target: str) -> None:
    (published_site.folder / "link").symlink_to("output")
    before = files(published_site.folder / "output", "")
    sentence = published_site.refused(1, "publish", publish__target=target)
    assert sentence.startswith("publish.target: ")
    assert "output" in sentence
    assert files(published_site.folder / "output", "").keys() == before.keys()


def test_two_runs_on_one_folder_do_not_overlap(published_site: PublishedSite) -> None:
    hold = (
        "import sys; from pathlib import Path; from generator.tree.folder import locked\n"
        "with locked(Path('output')): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={"PYTHONPATH": str(ROOT)},
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        for command in (["publish"], ["rebuild"], ["publish", "--dry-run"]):
            assert published_site.refused(4, *command) == f"output: another run is at work there (process {other.pid})"
        other.communicate()
    published_site.done("publish")
