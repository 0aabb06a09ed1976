"""The output of `plan`, and the guard that refuses a publish that costs too much."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from generator.api import keys
from generator.cli.main import main
from generator.tree.layouts import LAYOUTS
from tests.questions import sites
from tests.support.sites.builds import build_now, files, make_config
from tests.support.sites.publishing import OPEN, PublishedSite, hour
from tests.support.sites.rows import insert_fill, market_id

BEGINNING = """\
layout pages: 3,234 objects of bytes, at worst 11.82 USD a month at S3 + CloudFront
recommended: layout chunks, which saves 11.36 USD a month at S3 + CloudFront; its edge must read objects
publish.target is not set, so nothing is published and nothing is paid

                                                             pages   chunks
objects of a build                                           3,234      124
bytes
objects changed since 2024-01-31T12:00:00.000Z                   1        1
PUT requests per month, with a publish every 60 minutes  2,363,010   92,710
USD per month at S3 + CloudFront                             11.82     0.46
USD per month at R2                                          10.63     0.42

"""
REST = """\
                                                             pages   chunks
objects of its dump and change feed                              5        5
bytes
objects changed in its dump and change feed                      0        0
objects in the store, retired ones kept for 360 minutes      4,655      565
LIST requests for all of the store                               5        1
bytes
PUT requests per publish                                     3,237      127
plus one reader at the rate limit at S3 + CloudFront         64.22    74.74
plus one reader at the rate limit at R2                      13.40    18.13

layout pages: one changed market costs at most 1,197 objects of some bytes, whose PUT requests cost 0.0060 USD \
at S3 + CloudFront, 0.0054 USD at R2: every page of its lists is new
changes per publish: worst case, as if everything changed every time; no two builds were compared yet
prices as of 2026-03-08, without free tiers and taxes; check them before you rely on them
  S3 + CloudFront: us-east-1, first tier, pay as you go; other regions may cost more. Free tiers are \
ignored: 1 TB, 10 million requests and 2 million function calls a month with CloudFront, 100 GB a month straight \
from S3.
  R2: Standard storage, Workers Paid. Free tiers are ignored: 1 million class A and 10 million class B operations and \
10 GB a month with R2, 10 million requests a month with Workers Paid.
a reader at the rate limit makes 13,140,000 requests a month; each counts as what costs most, with up to 32,796 bytes; \
a million that are refused cost up to 1.70 USD at S3 + CloudFront, 0.30 USD at R2
fills leave fills24h in steps of 1 hour: without any trade, 0 markets will have changed or closed by \
2024-02-01T02:00:00.000Z
"""
END = """\
not included: the cost of reads (add --reads 10M), of downloads (add --downloads 1k) and of the publishing machine
sqlite:///markets.db as of 2024-02-01T01:00:00.000Z: 11 markets in 30 lists, 0 rows quarantined; nothing was written"""


def plan(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["plan", *arguments])
    assert result.exit_code == 0, result.output
    return result


def options(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def conclusion(result: Result) -> list[str]:
    return result.stdout.split("\n\n")[0].splitlines()


# ── the output ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.every_limit
@pytest.mark.parametrize(
    ("options", "text"),
    [((), f"{BEGINNING}{END}; --all says what the figures are made of"), (("--all",), f"{BEGINNING}{REST}{END}")],
)
def test_plan_reads_exactly_so(published_site: PublishedSite, options: tuple[str, ...], text: str) -> None:
    output = plan("--as-of", hour(1), *options).stdout
    # The size of the interface description is not under test here.
    lines = [line.split("bytes")[0] + "bytes" if line.startswith("bytes") else line for line in output.splitlines()]
    assert re.sub("(some|objects of) [0-9,]+ bytes", r"\1 bytes", "\n".join(lines).replace("\n\n\n", "\n\n")) == text


def test_plan_needs_no_build_and_leaves_nothing(published_site: PublishedSite) -> None:
    published_site.forget_output()
    result = plan("--all")
    assert "new objects: nothing is built yet" in result.stdout
    assert "worst case, as if everything changed every time; no two builds were compared yet" in result.stdout
    assert not (published_site.folder / "output").exists()


def test_plan_says_how_many_builds_the_estimate_uses(published_site: PublishedSite) -> None:
    published_site.edit(1, question="Another question?")
    published_site.done("build", "--as-of", hour(1))
    assert "at worst" in conclusion(plan("--set", "schedule=15", "--set", "output=else"))[0]
    assert "at worst" not in conclusion(plan())[0]
    assert "changes per publish: mean of 1 build, 780 minutes apart" in plan("--all").stdout


def test_plan_says_what_leaving_fills_cost_and_what_a_step_would_save(published_site: PublishedSite) -> None:
    for number, moment in ((1, "01:30"), (2, "02:30"), (3, "04:30"), (4, "06:00")):
        insert_fill(
            published_site.database, number, market_id=market_id(number), created_at=f"2024-01-31 {moment}:00.000000"
        )

    def said(*settings: str) -> list[str]:
        options = [word for setting in settings for word in ("--set", setting)]
        return [line for line in plan("--all", "--as-of", hour(1), *options).stdout.splitlines() if "fills24h" in line]

    by = "without any trade, {} will have changed or closed by 2024-02-01T{}:00.000Z".format
    costs = "; a build then writes at most "
    line, advice = said()
    assert line.startswith(f"fills leave fills24h in steps of 1 hour: {by('1 market', '02:00')}{costs}")
    assert advice == (
        "fills_window_step: 4 h would let them leave fills24h only every 4 hours, then of 3 markets, and count up to "
        "4 hours more"
    )
    assert len(said("schedule=15")) == 1, "an hour is long enough"
    assert len(said("schedule=1440")) == 1, "no step is long enough to help"
    (line,) = said("fills_window_step=3 h", "schedule=15")
    assert line.startswith(f"fills leave fills24h in steps of 3 hours: {by('2 markets', '03:00')}{costs}")
    line, _ = said("layout=chunks", "fills_window_step=0")
    assert line.startswith(f"fills leave fills24h once they are a day old: {by('1 market', '02:00')}; a build then ")
    assert said("fills_window_step=0", "schedule=15") == [
        f"fills leave fills24h once they are a day old: {by('0 markets', '01:15')}"
    ]


@pytest.mark.parametrize(("text", "shown"), [("10M", "10,000,000"), ("250k", "250,000"), ("7", "7"), ("0", "0")])
def test_readers_are_estimated_when_asked_for(published_site: PublishedSite, text: str, shown: str) -> None:
    output = plan("--reads", text).stdout
    assert f"plus {shown} reads at S3 + CloudFront" in output
    assert f"plus {shown} reads at R2" in output
    assert "the cost of reads" not in output


def test_downloads_are_estimated_when_asked_for_by_the_ways_that_files_can_take(published_site: PublishedSite) -> None:
    lines = plan("--downloads", "100M").stdout.splitlines()
    (note,) = [line for line in lines if line.startswith("a download counts as the whole dump")]
    (head,) = [key for key in published_site.built() if key == "v1/dumps/head.json"]
    size = json.loads(published_site.built()[head])["markets"][0]["size"]
    assert f", {size} bytes;" in note
    figures = {line.rpartition("  ")[0].split("  ")[0]: line.split()[-2:] for line in lines if "downloads at" in line}
    assert figures == {
        "plus 100,000,000 downloads at S3 + CloudFront, through CloudFront": [f"{size / 10 * 0.085:,.2f}"] * 2,
        "plus 100,000,000 downloads at S3 + CloudFront, straight from S3": [f"{size / 10 * 0.09:,.2f}"] * 2,
        "plus 100,000,000 downloads at R2, through a custom domain": ["0.00"] * 2,
    }
    assert not [line for line in lines if "of downloads (add" in line]


@pytest.mark.parametrize("text", ["", "M", "ten", "1.5M", "-1", "10T", "٣"])
def test_an_invalid_number_of_reads_is_a_usage_error(published_site: PublishedSite, text: str) -> None:
    result = CliRunner().invoke(main, ["plan", "--reads", text])
    assert result.exit_code == 2
    assert "is not an amount; write it like 250000, 250k or 10M" in result.stderr


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ([], "publish.target is not set, so nothing is published and nothing is paid"),
        (["publish.target=site"], "publish.target is the directory site: publishing there costs nothing"),
        (
            ["publish.target=s3://markets", "publish.endpoint_url=https://minio.example"],
            "the prices of minio.example are not known; if you set guards.max_monthly_cost to another number than its ",
        ),
        (["publish.target=s3://markets"], " USD at S3 + CloudFront is within guards.max_monthly_cost (100)"),
        (
            ["publish.target=s3://markets", "schedule=1", "guards.max_monthly_cost=10"],
            "`public-markets publish` would refuse: ",
        ),
    ],
)
def test_plan_concludes_with_the_verdict_for_the_target(
    published_site: PublishedSite, settings: list[str], verdict: str
) -> None:
    assert any(verdict in line for line in conclusion(plan(*options(settings)))[::2])


@pytest.mark.parametrize(
    "settings",
    [["publish.target=site"], ["publish.target=s3://markets", "publish.endpoint_url=https://minio.example"]],
)
def test_what_has_no_price_has_no_bill_and_no_layout_to_recommend(
    published_site: PublishedSite, settings: list[str]
) -> None:
    verdict, size = conclusion(plan(*options(settings)))
    assert re.match(r"publish.target is the directory|the prices of minio\.example are not known", verdict)
    assert re.fullmatch(r"layout pages: [\d,]+ objects of [\d,]+ bytes", size)
    limited = conclusion(plan(*options([*settings, "guards.max_monthly_cost=5"])))
    assert (len(limited) == 2) == (len(settings) == 1), "a limit applies to a store by the prices of another"


def test_a_site_that_is_served_from_the_folder_pays_no_store_and_needs_no_layout_for_its_price(
    published_site: PublishedSite,
) -> None:
    (line,) = conclusion(plan(*options(["publish.cdn=none"])))
    served = "readers are served from output/, and no store is paid"
    assert re.fullmatch(rf"layout pages: [\d,]+ objects of [\d,]+ bytes; {served}", line)


# ── the guard ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.every_limit
def test_what_costs_too_much_is_not_published_as_a_dry_run_says(empty: PublishedSite) -> None:
    assert "guards.max_monthly_cost" in empty.refused(3, "publish", "--dry-run", guards__max_monthly_cost="10")
    refusal = empty.refused(3, "publish", guards__max_monthly_cost="10")
    assert refusal == (
        "3,237 PUT requests every 60 minutes would cost about 11.82 USD a month at S3 + CloudFront (prices of "
        "2026-03-08), more than guards.max_monthly_cost (10) allows; nothing was uploaded. set schedule: 120 "
        "(5.91 USD) or layout: chunks (0.46 USD), or pass --accept cost"
    )


def test_only_settings_that_satisfy_the_guard_are_advised(empty: PublishedSite) -> None:
    assert "layout: chunks" not in empty.refused(3, "publish", guards__max_monthly_cost="0.4")
    compact = empty.run("rebuild", layout="chunks", schedule="10", guards__max_monthly_cost="2")
    assert compact.exit_code == 3
    assert compact.stderr.endswith("nothing was uploaded. set schedule: 15 (1.40 USD), or pass --accept cost\n")


@pytest.mark.parametrize(("options", "limit", "schedule"), [((), "10", "120"), (("--accept=cost",), "0", "60")])
def test_a_longer_schedule_satisfies_the_guard_and_an_option_lifts_it(
    empty: PublishedSite, options: tuple[str, ...], limit: str, schedule: str
) -> None:
    empty.done("publish", *options, guards__max_monthly_cost=limit, schedule=schedule)
    empty.check()


def test_a_directory_costs_nothing_whatever_the_limit(empty: PublishedSite) -> None:
    empty.target = "./site"
    empty.settings["publish.endpoint_url"] = ""
    empty.done("publish", guards__max_monthly_cost="0")


def test_a_store_with_unknown_prices_is_refused_only_if_a_limit_was_set(empty: PublishedSite) -> None:
    assert "at S3 + CloudFront" in empty.refused(3, "publish", guards__max_monthly_cost="0")
    empty.done("publish", schedule="1")


@pytest.mark.every_limit
def test_builds_with_few_changes_are_published_again(empty: PublishedSite) -> None:
    """The whole site is refused at first; then builds turn out to change one list only."""
    empty.refused(3, "publish", guards__max_monthly_cost="10", schedule="60")
    for number in (1, 2):
        empty.done("build", "--as-of", hour(number), schedule="60")
    empty.done("publish", guards__max_monthly_cost="10", schedule="60")


def test_withdrawn_markets_disappear_although_the_guard_refuses(empty: PublishedSite) -> None:
    empty.done("publish")
    empty.edit(OPEN[0], approval="rejected")
    assert empty.run("rebuild", "--as-of", hour(1), guards__max_monthly_cost="0").exit_code == 3
    assert empty.traces(OPEN[0]) == []


def test_without_a_report_the_guard_has_no_figures(empty: PublishedSite) -> None:
    (empty.folder / "output" / "report.json").unlink()
    refusal = empty.refused(3, "publish", guards__max_monthly_cost="10")
    assert refusal == (
        "output/report.json: has no cost estimate; run `public-markets build` again, or pass --accept cost"
    )


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lists_of_questions_are_counted_as_a_build_makes_them_with_what_it_saves_to_have_none(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites.small(tmp_path / "markets.db")
    monkeypatch.chdir(tmp_path)
    config = make_config(tmp_path, variant="extended", layout=layout)
    settings = [word for key in ("variant=extended", f"layout={layout}") for word in ("--set", key)]
    shown = plan("--all", *settings, "--set", "source.url=sqlite:///markets.db").stdout
    build_now(config)
    made = {key: len(body) for key, body in files(config.output).items() if key.startswith(keys.QUESTION_LISTS)}
    place = 1 + [*LAYOUTS].index(layout)
    rows = {
        cells[0]: cells for line in shown.splitlines() if len(cells := re.split(r"\s{2,}", line)) == len(LAYOUTS) + 1
    }
    assert rows["objects of its lists of questions"][place] == f"{len(made):,}"
    assert rows["bytes of its lists of questions"][place] == f"{sum(made.values()):,}"
    of_categories = sum("." in key.removeprefix(keys.QUESTION_LISTS).split("/")[1] for key in made)
    (of_each,) = (
        cells for name, cells in rows.items() if name.startswith("objects of a category's lists of questions")
    )
    assert of_each[place] == f"{of_categories / 2:,.0f}"
    assert "of 2 categories" in of_each[0]
    saved = re.findall(r"questions\.lists: false would save about ([\d.,]+) USD at S3.* in layout (\w+)", shown)
    assert [name for _, name in saved] == [*LAYOUTS]
    without = plan(
        "--all", *settings, "--set", "source.url=sqlite:///markets.db", "--set", "questions.lists=false"
    ).stdout
    assert "lists of questions" not in without
    usd = [
        float(re.search(r"USD per month at S3 \+ CloudFront +([\d.,]+) +([\d.,]+)", text)[place].replace(",", ""))  # type: ignore[index]
        for text in (shown, without)
    ]
    assert float(saved[place - 1][0].replace(",", "")) == pytest.approx(usd[0] - usd[1], rel=0.1, abs=0.02)
