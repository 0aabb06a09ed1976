"""What `publish` refuses, with exit 3 and nothing changed, and the option that allows it."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from generator.api import keys
from generator.config import demo
from generator.tree.files import MANIFEST
from tests.support.sites.builds import files
from tests.support.sites.publishing import FX, PublishedSite, hour, tamper
from tests.support.sites.rows import market_id
from tests.support.stores.s3.wire import Request

MENDED_BY: Final = "run `public-markets rebuild`, or `public-markets build --full`"


def contents(site: PublishedSite) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What the output folder and the store hold."""
    built = files(site.folder / "output", "")
    return {name: body for name, body in built.items() if name != ".lock"}, site.stored()


def hide(site: PublishedSite, *numbers: int) -> None:
    for number in numbers:
        site.edit(number, is_listed=0)


# Too many markets lost


def test_the_loss_of_too_many_markets_is_refused(published_site: PublishedSite) -> None:
    hide(published_site, 1, 2, FX)
    published_site.done("build", "--as-of", hour(1), "--accept=shrink")
    sentence = "3 of 11 markets would disappear, more than guards.max_shrink (0.2) allows; nothing was "
    assert (
        published_site.refused(3, "publish") == sentence + "replaced. If the database is complete, pass --accept shrink"
    )
    assert "3 of 11" in published_site.refused(3, "publish", "--dry-run")
    published_site.refused(3, "publish", guards__max_shrink="0.27")
    published_site.done("publish", "--dry-run", guards__max_shrink="0.28")
    assert "8 markets" in published_site.done("publish", "--accept=shrink").stdout
    published_site.check()


def test_an_empty_database_does_not_empty_the_site(published_site: PublishedSite) -> None:
    published_site.database.execute("DELETE FROM markets")
    before = published_site.stored()
    assert "11 of 11 markets would disappear" in published_site.refused(3, "rebuild", "--as-of", hour(1))
    published_site.forget_output()
    assert "11 of 11 markets would disappear" in published_site.refused(3, "rebuild", "--as-of", hour(1))
    assert {key: body for key, body in published_site.stored().items() if key != "blocked.json"} == before


# Older builds


def test_a_build_older_than_the_published_one_is_refused(published_site: PublishedSite) -> None:
    published_site.done("rebuild", "--as-of", hour(2))
    assert published_site.refused(3, "rebuild", "--as-of", hour(1)) == (
        "the build is as of 2024-02-01T01:00:00.000Z, older than what is published, 2024-02-01T02:00:00.000Z; "
        "build again (check the clocks), or pass --accept older"
    )
    published_site.done("publish", "--accept=older")
    assert published_site.record().built.as_of == "2024-02-01T01:00:00.000Z"
    published_site.check()


# Blocked markets go nevertheless


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("reason", ["shrink", "older", "settings", "altered", "no build"])
def test_whatever_a_guard_refuses_blocked_markets_are_withdrawn(published_site: PublishedSite, reason: str) -> None:
    refusal, settings = {
        "shrink": ("would disappear", {"guards__max_shrink": "0.01"}),
        "older": ("older than what is published", {}),
        "settings": ("built with other settings", {"snapshot__size": "3"}),
        "altered": ("altered since it was built", {}),
        "no build": ("holds no build yet", {}),
    }[reason]
    if reason == "older":
        published_site.done("rebuild", "--as-of", hour(2))
    hide(published_site, FX)
    published_site.edit(2, question="Else?")
    published_site.done("build", "--as-of", hour(1))
    if reason == "altered":
        tamper(Path("output", keys.detail(market_id(2))), b"{}")
    if reason == "no build":
        published_site.forget_output()
    published_site.block(1)
    result = published_site.run("publish", **settings)
    assert result.exit_code == 3
    assert next(line for line in result.stderr.splitlines() if line.startswith("error: ")).count(refusal) == 1
    assert published_site.traces(1, output=False) == []
    assert published_site.traces(FX, output=False), "the rest stays"
    assert published_site.record().work is None


def test_a_dry_run_that_is_refused_withdraws_nothing(published_site: PublishedSite) -> None:
    hide(published_site, FX)
    published_site.done("build", "--as-of", hour(1))
    published_site.block(1)
    assert "would disappear" in published_site.refused(3, "publish", "--dry-run", guards__max_shrink="0.01")
    assert published_site.traces(1, output=False)


# Damaged or incomplete builds


def test_a_file_that_is_altered_while_it_is_published_stops_the_publish(published_site: PublishedSite) -> None:
    published_site.edit(1, question="Else?")
    published_site.done("build", "--as-of", hour(1))
    key = keys.detail(market_id(1))
    built = published_site.built()[key]

    def alter(request: Request) -> None:
        if request.method == "PUT":  # by then, all files were looked at
            tamper(Path("output", key), built + b" ")

    published_site.server.before = alter
    result = published_site.run("publish")
    published_site.server.before = None
    assert f"altered since it was built; {MENDED_BY}" in result.stderr
    assert "missing or altered" not in result.stderr
    assert result.exit_code == 1
    assert published_site.objects()[key] not in (built, built + b" ")


@pytest.mark.parametrize("step", ["detail", "detail of the same version", "chunk", "first page"])
def test_a_rebuild_whose_publish_meets_a_damaged_file_builds_in_full_and_goes_on(
    published_site: PublishedSite, step: str
) -> None:
    if "version" in step:
        published_site.database.execute("ALTER TABLE markets ADD COLUMN detail_version INTEGER DEFAULT 1")
    published_site.done("rebuild", "--as-of", hour(1), layout="chunks")
    published_site.edit(1, question="Else?")
    published_site.done("build", "--as-of", hour(2), layout="chunks")
    built = published_site.built()
    new = [key for key in built.keys() - published_site.objects().keys() if keys.is_immutable(key)]
    chunk = next(key for key in sorted(new) if "/chunks/" in key and "/open/new/" in key)
    key = {"chunk": chunk, "first page": keys.head("open/new")}.get(step, keys.detail(market_id(1)))
    body = built[key]
    tamper(Path("output", key), bytes([*body[:-3], body[-3] ^ 1, *body[-2:]]))
    assert "altered since it was built" in published_site.run("publish", layout="chunks").stderr
    result = published_site.run("rebuild", "--as-of", hour(2), layout="chunks")
    assert result.exit_code == 0
    is_full = step in ("chunk", "detail of the same version")  # any build compares the others
    assert result.stderr.count("missing or altered since it was built; building again with --full") == is_full
    assert published_site.built()[key] == body == published_site.objects()[key]
    assert published_site.record().work is None


@pytest.mark.parametrize("content", [None, b"{", b"{}"])
def test_a_folder_without_a_manifest_is_refused(published_site: PublishedSite, content: bytes | None) -> None:
    Path("output/manifest.json").unlink()
    if content is not None:
        Path("output/manifest.json").write_bytes(content)
    sentence = published_site.refused(1, "publish")
    assert "output/manifest.json" in sentence
    assert "damaged" in sentence or "does not" in sentence


# Another site


def test_a_build_made_with_other_settings_is_refused(published_site: PublishedSite) -> None:
    sentence = published_site.refused(3, "publish", snapshot__size="3")
    assert sentence == (
        "output: built with other settings (snapshot.size was 6, is 3); run `public-markets build` again"
    )
    os.link("markets.db", "copy.db")
    assert "(from another database)" in published_site.refused(3, "publish", source__url="sqlite:///copy.db")
    # Settings that do not affect the published objects may change at any time.
    published_site.done("publish", cursor__lifetime="1 h", schedule="5")


def test_what_an_earlier_version_recorded_of_a_setting_that_is_gone_refuses_nothing(
    published_site: PublishedSite,
) -> None:
    path = published_site.folder / "output" / MANIFEST
    found = json.loads(path.read_bytes())
    found["settings"]["texts.question"] = 2_000
    tamper(path, json.dumps(found).encode())
    published_site.done("publish")


def test_a_setting_that_an_earlier_version_did_not_know_counts_as_its_default(published_site: PublishedSite) -> None:
    path = published_site.folder / "output" / MANIFEST
    found = json.loads(path.read_bytes())
    new = {"history.public", "license", "questions.enabled", "questions.lists", "snapshot.size"}
    assert new <= found["settings"].keys()
    found["settings"] = {key: value for key, value in found["settings"].items() if key not in new}
    tamper(path, json.dumps(found).encode())
    published_site.done("publish", questions__enabled="false")
    assert "(snapshot.size was 6, is 3)" in published_site.refused(3, "publish", snapshot__size="3")


def test_another_sites_bucket_is_refused_and_both_blocked_lists_are_left_alone(published_site: PublishedSite) -> None:
    other = "https://other.example"
    published_site.block(1)
    before = contents(published_site)
    for options in ((), ("--dry-run",)):
        assert published_site.refused(3, "rebuild", "--as-of", hour(1), *options, base_url=other) == (
            "publish.target holds the site http://127.0.0.1:8000, but base_url is https://other.example; if it is the "
            "right target, pass --accept other-site"
        )
    assert contents(published_site) == before, "nothing was built"
    assert "base_url was http://127.0.0.1:8000, is https://other.example" in published_site.refused(
        3, "publish", base_url=other
    )
    published_site.remove("blocked.json")
    published_site.done("build", "--as-of", hour(1), base_url=other)
    published_site.block(1)
    before = contents(published_site)
    assert "publish.target holds the site" in published_site.refused(3, "publish", base_url=other)
    assert contents(published_site) == before
    published_site.remove("blocked.json")
    published_site.done("rebuild", "--as-of", hour(1), "--accept=other-site", base_url=other)
    assert published_site.record().built.settings["base_url"] == other
    published_site.check()
    published_site.done("publish", base_url=other)


# Made-up markets


def mark_as_demo(site: PublishedSite) -> None:
    site.database.execute(f"PRAGMA application_id = {demo.APPLICATION_ID}")


def use_the_default_source(_: PublishedSite) -> None:
    Path("markets.db").rename("demo.db")
    Path("config.yaml").write_text("source: {url: 'sqlite:///demo.db'}\n", "utf-8")


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (mark_as_demo, "source.url names a demo database"),
        (use_the_default_source, "source.url is not set, and its default is the demo database"),
    ],
)
def test_made_up_markets_are_built_but_not_published(
    empty: PublishedSite, prepare: Callable[[PublishedSite], None], says: str
) -> None:
    prepare(empty)
    empty.done("build", "--as-of", hour(1))
    for options in ((), ("--dry-run",)):
        assert empty.refused(3, "publish", *options) == (
            f"{says}: its markets are made up; set PUBLIC_MARKETS_SOURCE__URL to your database and build again, or "
            "pass --accept demo"
        )
    assert "manifest.json" not in empty.stored()
    empty.done("publish", "--accept=demo")
    empty.check()


def test_a_database_named_as_the_demo_on_purpose_is_published(published_site: PublishedSite) -> None:
    use_the_default_source(published_site)
    published_site.done("rebuild", "--as-of", hour(1), source__url="sqlite:///demo.db")


# Unknown objects, and unreliable stores


def test_a_first_publish_among_unknown_objects_is_refused(empty: PublishedSite) -> None:
    empty.put("v1/index.html", b"somebody else's")
    assert empty.refused(1, "publish") == (
        "s3://markets/api: holds v1/index.html but no record of this program, so the object may belong to somebody "
        "else; choose another target, or run publish --verify, which deletes every unknown object under v1/"
    )
    assert not [key for key in empty.stored() if key.startswith("manifest")]
    empty.done("publish", "--verify")
    empty.check()


def test_objects_beside_the_api_are_left_alone(empty: PublishedSite) -> None:
    empty.put("v10/file.json", b"mine")
    empty.put("index.html", b"mine")
    empty.done("publish")
    empty.done("publish", "--verify")
    stored = empty.stored()
    assert stored["v10/file.json"] == stored["index.html"] == b"mine"
    empty.check()


def test_a_store_that_ignores_conditions_is_refused_without_single_writer(empty: PublishedSite) -> None:
    empty.server.behaviour.ignores_conditions = True
    assert empty.refused(1, "publish") == (
        "s3://markets/api: ignores conditional puts (If-Match, If-None-Match), so two publishers could overwrite each "
        "other's work unnoticed; use another store, or declare that there is only one publisher with "
        "publish.single_writer: true"
    )
    assert empty.objects() == {}
    assert not [key for key in empty.stored() if key.startswith("probe")]
    empty.done("publish", publish__single_writer="true")
    empty.check()


def test_a_store_is_probed_again_after_a_week(published_site: PublishedSite) -> None:
    published_site.server.behaviour.clock_offset_s = 6 * 86_400
    assert not [request for request in published_site.requests("rebuild") if "probe" in request]
    published_site.server.behaviour.clock_offset_s = 15 * 86_400
    assert [request for request in published_site.requests("rebuild") if "probe" in request]
    assert len(published_site.requests("rebuild")) == 5
    published_site.server.behaviour.ignores_conditions = True
    published_site.server.behaviour.clock_offset_s = 30 * 86_400
    assert "ignores conditional puts" in published_site.refused(1, "rebuild")


def test_a_bucket_that_anyone_can_write_to_causes_a_warning(empty: PublishedSite) -> None:
    empty.server.behaviour.open_to_everyone = True
    result = empty.done("publish")
    assert "s3://markets/api: anyone can write here without credentials; deny it" in result.stderr
    empty.check()


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("step", ["detail", "page", "document", "first page"])
@pytest.mark.parametrize("harm", ["missing", "altered"])
def test_a_file_altered_since_the_build_is_refused(published_site: PublishedSite, step: str, harm: str) -> None:
    published_site.edit(1, question="Else?")
    published_site.done("build", "--as-of", hour(1))
    built = published_site.built()
    new = sorted(key for key in built.keys() - published_site.objects().keys() if keys.is_immutable(key))
    assert new
    key = {
        "detail": keys.detail(market_id(1)),
        "page": new[len(new) // 2],
        "document": keys.SNAPSHOT,
        "first page": keys.first_page("open/new", 2),
    }[step]
    if harm == "missing":
        Path("output", key).unlink()
    else:
        tamper(Path("output", key), built[key] + b" ")
    sentence = published_site.refused(3, "publish")
    assert sentence.endswith(f": missing or altered since it was built; {MENDED_BY}")
    assert sentence.startswith("output/v1/")
    assert sentence.split(":")[0].removeprefix("output/") in key
    if step == "page":
        # A build never rewrites a generation's files, unless its folder is missing.
        shutil.rmtree(Path("output", *Path(key).parts[:-2]))
    published_site.done("build", "--as-of", hour(1))
    assert published_site.built() == built
