"""Publishing a folder to a bucket with the real commands: what is uploaded, kept and retained, in how few requests."""

import json
import re
import subprocess
import sys
from contextlib import suppress

import pytest

from generator.api import keys
from generator.publish import apply
from generator.publish.apply import Tally
from generator.publish.run import Outcome
from generator.stores.directory import Directory
from generator.stores.s3 import Bucket
from generator.stores.store import Condition
from generator.tree import families
from tests.support.builds import ROOT, files
from tests.support.campaigns import rounds
from tests.support.publishing import EVERY, FIRST, FX, OPEN, Site, Walk, copy_output, hour, tamper, walk
from tests.support.rows import insert_fx_member, insert_market, market_id
from tests.support.s3.behaviour import SLOW_DOWN
from tests.support.waiting import PATIENCE_S, wait_until

LIST = "open/popular"


def generation(site: Site, list_name: str = LIST) -> str:
    return site.record().built.current[list_name].generation


def pages_of(site: Site, name: str, list_name: str = LIST) -> int:
    prefix = keys.generation_prefix(list_name, name)
    return sum(key.startswith(f"{prefix}/") for key in site.objects())


def without_times(text: str) -> str:
    return re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+Z", "TIME", text)


# What is uploaded


def test_the_first_publish_uploads_the_whole_build(empty: Site) -> None:
    result = empty.done("publish")
    built = empty.built()
    assert empty.objects() == built
    empty.check()
    size = sum(map(len, built.values()))
    assert without_times(result.stdout) == (
        f"published 11 markets as of TIME to s3://markets/api: {len(built)} objects uploaded ({size} bytes), "
        f"0 unchanged, 0 deleted, 0 retained, {len(empty.server.log)} requests\n"
    )
    assert result.stderr == ""


def test_every_object_is_stored_with_its_headers(site: Site) -> None:
    stored = {
        key.removeprefix("api/"): (headers["content-type"], headers["cache-control"])
        for key, (_, headers) in site.server.objects().items()
        if key.startswith("api/v1/")
    }
    assert len(stored) > 100
    assert stored == {key: tuple(keys.headers(key, keys.UNPURGED_IMMUTABLE).values()) for key in stored}


def test_groups_are_uploaded_in_publication_order(site: Site) -> None:
    site.edit(1, question="Else?")
    requests = site.requests("rebuild", "--as-of", hour(1))
    put = [request.removeprefix("PutObject ") for request in requests if request.startswith("PutObject v1/")]
    groups = [0 if keys.is_immutable(key) else 1 + families.rank(key) for key in put]
    assert groups == sorted(groups)
    assert {*groups} == {0, 1, 2, 3, 4, 5}
    before, after = (
        requests.index("PutObject manifest.json"),
        len(requests) - requests[::-1].index("PutObject manifest.json"),
    )
    assert before < requests.index(f"PutObject {put[0]}") < requests.index(f"PutObject {put[-1]}") < after


def test_only_what_changed_is_uploaded(site: Site) -> None:
    before = site.objects()
    site.edit(1, question="Else?")
    result = site.done("rebuild", "--as-of", hour(1))
    site.check()
    after = site.objects()
    changed = {key for key in after if after[key] != before.get(key)}
    size = sum(len(after[key]) for key in changed)
    unchanged = len(site.built().keys() & after.keys()) - len(changed) - site_retained(result.stdout)
    assert f"{len(changed)} objects uploaded ({size} bytes), {unchanged} unchanged, 0 deleted" in result.stdout
    uploaded = {entry.key.removeprefix("api/") for entry in site.server.log if entry.operation == "PutObject"}
    assert {key for key in uploaded if key.startswith("v1/")} == changed


def site_retained(summary: str) -> int:
    found = re.search(r"(\d+) retained", summary)
    assert found
    return int(found[1])


def test_changed_headers_count_as_a_change(site: Site) -> None:
    # The record holds digests of bytes and headers, so other headers give another digest.
    record = json.loads(site.stored()["manifest.json"])
    record["built"]["objects"][keys.SNAPSHOT] = "0" * 32
    site.put("manifest.json", json.dumps(record).encode())
    site.put(keys.SNAPSHOT, site.objects()[keys.SNAPSHOT], {"cache-control": "no-store"})
    assert f"PutObject {keys.SNAPSHOT}" in site.requests("publish")
    assert site.server.objects()["api/" + keys.SNAPSHOT][1]["cache-control"] == keys.MUTABLE
    site.check()


@pytest.mark.parametrize("client", ["obstore", "boto3"])
def test_both_clients_publish_the_same(site: Site, client: str) -> None:
    site.edit(FX, question="Else?")
    site.done("rebuild", "--as-of", hour(1), publish__client=client)
    site.check()
    assert b'"Else?"' in site.objects()[keys.detail(market_id(FX))]


# Numbers of requests


def test_an_unchanged_publish_makes_two_requests(site: Site) -> None:
    before = site.stored()
    assert site.requests("publish") == ["GetObject manifest.json", "GetObject blocked.json"]
    assert site.stored() == before


@pytest.mark.parametrize("more", [0, 90])
def test_an_unchanged_rebuild_makes_five_requests_whatever_the_size(site: Site, more: int) -> None:
    if more:
        for number in range(200, 200 + more):
            insert_market(site.database, number)
            insert_fx_member(site.database, market_id=market_id(number))
        site.done("rebuild", "--as-of", hour(1))
    requests = site.requests("rebuild", "--as-of", hour(2))
    assert requests == [
        "GetObject blocked.json",
        "GetObject manifest.json",
        "PutObject manifest.json",
        "PutObject v1/build.json",
        "PutObject manifest.json",
    ]
    site.check()
    assert json.loads(site.objects()[keys.BUILD])["markets"] == len(EVERY) + more


def test_the_bucket_is_not_listed_in_the_normal_case(site: Site) -> None:
    site.server.behaviour.refuses_lists = True
    site.edit(1, question="Else?")
    site.done("rebuild", "--as-of", hour(1))
    assert site.server.count("ListObjectsV2") == 0
    site.check()


# Retention


def test_a_retired_generation_is_deleted_by_the_first_publish_after_its_lifetime(
    site: Site,
) -> None:
    old = generation(site)
    objects = pages_of(site, old)
    assert objects > 0
    site.edit(1, question="Else?")
    assert site_retained(site.done("rebuild", "--as-of", hour(1)).stdout) > objects
    for as_of in (hour(2), hour(7)):
        site.done("rebuild", "--as-of", as_of)
        assert pages_of(site, old) == objects
        site.check()
    result = site.done("rebuild", "--as-of", "2024-02-01T07:00:00.001Z")
    assert pages_of(site, old) == 0
    assert site_retained(result.stdout) == 0
    site.check()


def test_without_as_of_retirement_goes_by_the_stores_clock(site: Site) -> None:
    site.done("rebuild")
    old = generation(site)
    site.edit(1, question="Else?")
    site.done("rebuild")
    for offset in (3_600, 6 * 3_600 - 60):
        site.server.behaviour.clock_offset_s = offset
        site.done("publish")
        assert pages_of(site, old) > 0
    site.server.behaviour.clock_offset_s = 6 * 3_600 + 60
    assert "0 retained" in site.done("publish").stdout
    assert pages_of(site, old) == 0
    site.check()


@pytest.mark.campaign
def test_machines_with_and_without_as_of_that_take_turns_do_not_fill_the_bucket(site: Site) -> None:
    retired = []
    hours = rounds(2.5, 1.0)  # never just the lifetime of cursors in the short tier
    for turn in range(rounds(7, 30)):
        site.edit(1, question=f"Edition {turn}?")
        if turn % 2:
            site.done("rebuild", "--as-of", hour(turn // 2), "--allow-older", output="of-another-machine")
        else:
            site.done("rebuild")
        retired.append(len(site.record().built.retired))
        site.server.behaviour.clock_offset_s += hours * 3_600
    assert max(retired) == max(retired[: rounds(5, 8)]), retired  # cursors live for six hours


def test_a_walk_begun_before_a_publish_stays_exact(site: Site) -> None:
    site.done("rebuild", "--as-of", hour(0))
    lists = {name: walk(site, name) for name in (LIST, "all/new", "all/volume", "archive/ended")}
    walks = [Walk(site, name, 2).begin() for name in lists]
    for step in range(1, 3):
        for number in (1, 2, 8):
            site.edit(number, question=f"Step {step}, {number}?", volume=float(step * number * 7 % 13))
        site.done("rebuild", "--as-of", hour(step))
    assert len(walks) == 4
    for begun in walks:
        assert begun.finish() == lists[begun.list_name]
        assert walk(site, begun.list_name) != lists[begun.list_name]


def test_an_ephemeral_machine_publishes_and_retains(site: Site) -> None:
    generations = [generation(site)]
    began = Walk(site, LIST, 2).begin()
    for step in range(1, 3):
        site.forget_output()
        site.edit(1, question=f"Step {step}?")
        site.done("rebuild", "--as-of", hour(step))
        site.check()
        generations.append(generation(site))
    assert all(pages_of(site, name) > 0 for name in generations)
    assert len({*generations}) == 3
    assert len(began.finish()) == len(OPEN)
    site.forget_output()
    site.done("rebuild", "--as-of", hour(8, 1))
    assert [pages_of(site, name) > 0 for name in generations] == [False, False, True]
    site.check()


def test_an_unchanged_build_on_a_fresh_machine_costs_no_more(site: Site) -> None:
    site.forget_output()
    assert len(site.requests("rebuild", "--as-of", FIRST)) <= 5
    site.check()


def test_two_machines_publish_in_turn(site: Site) -> None:
    copy_output(site.folder / "output", site.folder / "other")
    for step in range(1, 4):
        output = "other" if step % 2 else "output"
        site.edit(FX if step == 2 else 1, question=f"Step {step}?")
        site.done("rebuild", "--as-of", hour(step), output=output)
        site.check(output)
    assert "Step 3?" in walk(site, "open/new")


def test_a_purge_deletes_every_retired_generation(site: Site) -> None:
    old = generation(site)
    site.edit(1, question="Regretted text?")
    site.done("rebuild", "--as-of", hour(1))
    site.edit(1, question="Corrected text?")
    summary = site.done("rebuild", "--as-of", hour(2), "--purge-retired").stdout
    site.check()
    assert "0 retained" in summary
    assert pages_of(site, old) == 0
    assert not [key for key, body in site.objects().items() if b"Regretted" in body]
    assert [key for key, body in site.objects().items() if b"Corrected" in body]


# Versions


def test_a_purge_deletes_old_versions_of_edited_texts(site: Site) -> None:
    site.server.bucket.versioning = "Enabled"
    site.edit(FX, question="Regretted text?")
    site.done("rebuild", "--as-of", hour(1))
    site.edit(FX, question="Corrected text?")
    site.done("rebuild", "--as-of", hour(2), "--purge-retired")
    versions, _ = site.server.bucket.list_versions("api/v1/", ("", ""), 100_000)
    assert not [version.key for version in versions if b"Regretted" in version.body]
    assert [version.key for version in versions if b"Corrected" in version.body]
    site.check()


# Outages


@pytest.mark.usefixtures("impatient")
def test_an_outage_says_nothing_of_a_published_site_where_there_is_none(empty: Site) -> None:
    empty.server.before = lambda request: SLOW_DOWN if "first/" in request.key else None
    assert empty.run("rebuild", "--as-of", hour(1)).stderr.endswith(
        "; check publish.endpoint_url and the network, then run again\n"
    )


@pytest.mark.usefixtures("impatient")
def test_an_outage_of_a_published_site_is_no_reason_to_worry(site: Site) -> None:
    site.edit(1, question="Else?")
    site.server.before = lambda request: SLOW_DOWN if "first/" in request.key else None
    assert site.run("rebuild", "--as-of", hour(1)).stderr.endswith(
        "; what is published stays whole, the next run finishes the work\n"
    )


# Targets


def test_a_directory_is_a_target_too(site: Site) -> None:
    directory = site.folder / "www"
    site.target = str(directory)
    site.done("publish")
    assert files(directory) == site.built()
    site.edit(1, question="Else?")
    site.done("rebuild", "--as-of", hour(1))
    assert files(directory) == site.built()
    for _ in range(2):
        site.done("rebuild", "--as-of", hour(8))
        assert files(directory) == site.built()
    names = {path.name for path in directory.iterdir()}
    assert names - {".lock-publish"} == {"v1", "manifest.json"}
    assert [listed.key for listed in Directory(directory).list("")] == sorted(["manifest.json", *site.built()])


def test_two_prefixes_of_a_bucket_are_two_sites(site: Site) -> None:
    site.done("publish", publish__target="s3://markets/other/place")
    other = {key.removeprefix("other/place/"): body for key, (body, _) in site.server.objects().items()}
    assert {key: body for key, body in other.items() if key.startswith("v1/")} == site.objects()
    site.check()


def test_large_files_are_uploaded_one_at_a_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once would be in memory, and share the line until none is done in time."""
    put, at_once, most, patience_s = Bucket.put, set[str](), 0, float(PATIENCE_S)

    def slowly(bucket: Bucket, key: str, body: bytes, condition: Condition) -> str:
        nonlocal most
        if key.endswith(".parquet"):
            at_once.add(key)
            with suppress(AssertionError):  # no other one comes
                wait_until(lambda: len(at_once) > 1 or most > 1, patience_s)
            most = max(most, len(at_once))
            at_once.remove(key)
        return put(bucket, key, body, condition)

    monkeypatch.setattr(Bucket, "put", slowly)
    site.done("rebuild", "--as-of", hour(1), dumps__parquet="true")
    assert most > 1
    most, patience_s = 0, 0.01
    monkeypatch.setattr(apply, "_LARGE", 1)
    site.done("publish", dumps__parquet="true", publish__target="s3://markets/another/")
    assert most == 1


def test_a_foreign_change_of_an_object_is_overwritten_and_the_store_audited(site: Site) -> None:
    page, detail = keys.first_page("cancelled/new", 2), keys.detail(market_id(2))
    site.put(page, b"manual")
    site.put(detail, b"manual, too")
    site.edit(10, question="Else?", volume=1_000.0)
    requests = site.requests("rebuild", "--as-of", hour(1))
    assert "ListObjectsV2 " in requests
    site.check()


def test_objects_uploaded_twice_do_not_reduce_the_unchanged() -> None:
    outcome = Outcome("s3://markets", FIRST, markets=3, objects=10, requests=20, tally=Tally(uploaded=12))
    assert "12 objects uploaded (0 bytes), 0 unchanged, 0 deleted" in outcome.summary()


# Folders


@pytest.mark.parametrize("target", ["output", "output/", "./output/v1", "output/site", "link", "link/site"])
def test_a_target_within_the_output_folder_is_refused(site: Site, target: str) -> None:
    (site.folder / "link").symlink_to("output")
    before = files(site.folder / "output", "")
    sentence = site.refused(1, "publish", publish__target=target)
    assert sentence.startswith("publish.target: ")
    assert "output" in sentence
    assert files(site.folder / "output", "").keys() == before.keys()


def test_two_runs_on_one_folder_do_not_overlap(site: Site) -> None:
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
            assert site.refused(4, *command) == f"output: another run is at work there (process {other.pid})"
        other.communicate()
    site.done("publish")


def test_a_published_file_that_was_altered_in_the_folder_only_matters_when_it_is_uploaded(site: Site) -> None:
    tamper(site.folder / "output" / keys.SNAPSHOT, b"{}")
    site.done("publish")
    assert site.objects()[keys.SNAPSHOT] != b"{}"
