"""Metrics of the last run, read with the official parser."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from generator import metrics_file
from generator.metrics import sample
from generator.source.relations import RELATIONS
from tests.support.sites.publishing import PublishedSite, hour

FILE = "metrics.prom"


def read(path: Path) -> dict[str, float]:
    """Every value by `name label…`, as the official parser reads it."""
    families = list(text_string_to_metric_families(path.read_text("utf-8")))
    assert families
    assert all(family.type == "gauge" and family.documentation for family in families)
    return {
        found.name.removeprefix("public_markets_")
        + "".join(f" {value}" for value in found.labels.values()): found.value
        for family in families
        for found in family.samples
    }


def test_a_rebuild_reports_what_was_built_what_is_published_and_how_it_went(published_site: PublishedSite) -> None:
    published_site.edit(1, prob=7.5)
    published_site.done("rebuild", "--as-of", hour(1), "--accept=invalid", "--set", f"metrics={FILE}")
    found = read(published_site.folder / FILE)
    assert found["built_as_of_timestamp_seconds"] == found["published_as_of_timestamp_seconds"] == 1_706_749_200
    assert [found[f"markets {state}"] for state in ("published", "hidden", "quarantined")] == [10, 1, 1]
    assert {name: found[f"quarantined_rows {name}"] for name in RELATIONS} == dict.fromkeys(RELATIONS, 0) | {
        "markets": 1
    }
    assert found["objects"] == len(published_site.built())
    assert found["bytes"] == pytest.approx(sum(map(len, published_site.built().values())), rel=0.01)
    assert found["cost_usd_per_month S3 + CloudFront"] > found["cost_usd_per_month R2"] > 0
    assert found["uploaded_objects"] > 50
    assert found["last_run_exit_code rebuild"] == 0
    assert found["last_run_duration_seconds rebuild"] > 0
    assert found["last_success_timestamp_seconds rebuild"] == found["last_run_timestamp_seconds rebuild"]


def test_a_help_text_of_what_is_new_says_of_what(published_site: PublishedSite) -> None:
    published_site.done("build", "--as-of", hour(1), "--set", f"metrics={FILE}")
    families = text_string_to_metric_families((published_site.folder / FILE).read_text("utf-8"))
    new = {family.name: family.documentation for family in families if family.name.endswith("_new")}
    assert {name.removeprefix("public_markets_"): text.partition(" that are ")[0] for name, text in new.items()} == {
        "quarantined_rows_new": "Quarantined rows", "remarks_new": "Remarks"
    }  # fmt: skip


def test_a_run_that_fails_keeps_when_one_last_succeeded(published_site: PublishedSite) -> None:
    published_site.done("rebuild", "--as-of", hour(1), "--set", f"metrics={FILE}")
    before = read(published_site.folder / FILE)
    published_site.edit(1, prob=7.5)
    published_site.refused(3, "rebuild", "--as-of", hour(2), "--set", f"metrics={FILE}")
    after = read(published_site.folder / FILE)
    assert after["last_run_exit_code rebuild"] == 3
    assert after["last_run_timestamp_seconds rebuild"] > before["last_run_timestamp_seconds rebuild"]
    kept = {name for name in before if not name.startswith("last_run")}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_build_and_publish_each_have_their_metrics_if_the_setting_names_a_file(published_site: PublishedSite) -> None:
    published_site.done("build", "--as-of", hour(1))
    assert {path.name for path in published_site.folder.iterdir()} == {"config.yaml", "markets.db", "output"}
    published_site.settings["metrics"] = FILE
    published_site.done("build", "--as-of", hour(1))
    assert "published_as_of_timestamp_seconds" not in read(published_site.folder / FILE)
    published_site.done("publish", "--dry-run")
    assert "published_as_of_timestamp_seconds" not in read(published_site.folder / FILE)
    published_site.done("publish")
    found = read(published_site.folder / FILE)
    assert {"last_run_exit_code build", "last_run_exit_code publish"} <= found.keys()
    assert found["published_as_of_timestamp_seconds"] == found["built_as_of_timestamp_seconds"]


def test_the_option_that_is_gone_names_the_setting(published_site: PublishedSite) -> None:
    result = published_site.run("build", "--metrics", FILE)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "Error: --metrics is gone; write --set metrics=PATH"


def test_a_file_that_cannot_be_written_does_not_fail_the_run(published_site: PublishedSite) -> None:
    result = published_site.done("build", "--as-of", hour(1), "--set", "metrics=nowhere/metrics.prom")
    assert "metrics: nowhere/metrics.prom: no such file or directory; the run itself is over" in result.stderr
    assert not (published_site.folder / "nowhere").exists()


def test_the_file_is_replaced_atomically_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / FILE
    metrics_file.update(path, {sample("objects"): 1})
    with path.open() as file:
        metrics_file.update(path, {sample("objects"): 2})
        assert file.read().endswith("public_markets_objects 1.0\n"), "a reader in between sees the old file whole"
    assert read(path) == {"objects": 2}
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_what_a_run_does_not_set_keeps_its_value_and_foreign_metrics_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text("# HELP other x\n# TYPE other gauge\nother 5\nnonsense\npublic_markets_bytes 7\n")
    metrics_file.update(path, {sample("objects"): 2, sample("markets", state="hidden"): 1})
    metrics_file.update(path, {sample("markets", state="published"): 3})
    assert read(path) == {"bytes": 7, "objects": 2, "markets published": 3}


def test_a_label_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / FILE
    name = 'a "quoted" \\ name\nof two lines {x="1"} 5'
    metrics_file.update(path, {sample("cost_usd_per_month", place=name): 1.5})
    metrics_file.update(path, {sample("objects"): 1})
    assert read(path) == {f"cost_usd_per_month {name}": 1.5, "objects": 1}
