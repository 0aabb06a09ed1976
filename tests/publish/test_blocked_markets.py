"""Blocked markets stay out of every build and publish, on any machine, until `takedown --undo`."""

import json
from pathlib import Path

import pytest

from generator import filesystem
from generator.api import keys
from tests.support.sites.builds import lasting
from tests.support.sites.publishing import FX, PublishedSite, copy_output, hour
from tests.support.sites.rows import market_id


def test_a_build_made_before_the_takedown_is_published_without_the_market(published_site: PublishedSite) -> None:
    copy_output(published_site.folder / "output", published_site.folder / "elsewhere")
    published_site.done("takedown", market_id(1), output="elsewhere")
    assert len(published_site.traces(1)) > 20, "the folder still has it"
    published_site.done("publish")
    assert published_site.traces(1) == []
    published_site.check()
    assert json.loads(Path("output/blocked.json").read_bytes()) == json.loads(published_site.stored()["blocked.json"])


def test_a_takedown_without_a_target_reaches_the_store_with_the_next_publish(published_site: PublishedSite) -> None:
    target, published_site.target = published_site.target, ""
    result = published_site.done("takedown", market_id(1))
    assert "s3://" not in result.stderr
    published_site.target = target
    assert published_site.traces(1)
    assert not [key for key, body in published_site.built().items() if market_id(1).encode() in body]
    published_site.done("publish")
    assert published_site.traces(1) == []
    assert published_site.blocked_ids() == {market_id(1)}
    published_site.check()


def test_no_power_failure_brings_back_what_a_takedown_deleted_from_a_folder(
    published_site: PublishedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, sync = list[list[Path]](), filesystem.sync

    def noted(folder: Path) -> None:
        sync(folder)
        texts = [path for path in Path("output").rglob("*.json") if b"Question 1?" in path.read_bytes()]
        found.append([path for path in texts if path.parts[1] != "report.json"])

    monkeypatch.setattr(filesystem, "sync", noted)
    published_site.target = ""
    published_site.done("takedown", market_id(1))
    assert found[0], "what is staged is flushed before anything is replaced"
    assert not found[-1], "what is deleted is flushed when it is gone"


def test_without_target_and_folder_a_takedown_applies_to_the_first_build(published_site: PublishedSite) -> None:
    published_site.forget_output()
    published_site.target = ""
    published_site.done("takedown", market_id(FX))
    published_site.done("build")
    assert not [key for key, body in published_site.built().items() if market_id(FX).encode() in body]


def test_an_undone_takedown_takes_effect_with_the_next_build(published_site: PublishedSite) -> None:
    before = published_site.objects()
    published_site.done("takedown", market_id(1))
    result = published_site.done("takedown", "--undo", market_id(1))
    assert result.stdout == "0 markets are blocked\n"
    assert published_site.traces(1) == []
    published_site.done("rebuild", "--as-of", hour(1))
    after = lasting(published_site.objects())
    expected = {key: body for key, body in lasting(before).items() if key != keys.BUILD}
    assert {key: after.get(key) for key in expected} == expected
    published_site.check()
