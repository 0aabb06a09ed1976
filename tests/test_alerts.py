"""templates/monitoring/alerts.yml: every alert reads metrics that exist, and fires in the state that it is for."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.project import ROOT
from tests.support.readers.pages import section, typed
from tests.support.sites.publishing import PublishedSite, hour

Values = Mapping[str, float]
ALERTS: Final = ROOT / "templates" / "monitoring" / "alerts.yml"
RULES: Final[dict[str, dict[str, Any]]] = {
    rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]
}
_SELECTOR: Final = re.compile(r'(public_markets_\w+(?:\{\w+="\w+"\})?)( offset 1d)?')
#: What remains of an expression without its selectors.
_ARITHMETIC: Final = re.compile(r"[-+*<>=.\d ]+")
FRESH: Final = 60.0
NOW: Final = datetime.fromisoformat(hour(1)).astimezone(UTC).timestamp() + FRESH


def fires(alert: str, values: Values, yesterday: Values, now: float = NOW) -> bool:
    """Whether the alert's expression has a result. It understands what the rules use of PromQL, and no more."""
    expression = RULES[alert]["expr"]
    if absent := re.fullmatch(r"absent\((.*)\)", expression):
        return absent[1] not in values
    known = {"": values, " offset 1d": yesterday}
    arithmetic = _SELECTOR.sub(lambda found: str(known[found[2] or ""][found[1]]), expression).replace(
        "time()", str(now)
    )
    assert _ARITHMETIC.fullmatch(arithmetic), arithmetic
    return bool(eval(arithmetic))  # noqa: S307 - numbers and operators


@pytest.fixture
def values(published_site: PublishedSite) -> dict[str, float]:
    """The samples of a rebuild, spelled as in the file."""
    published_site.done("rebuild", "--as-of", hour(1), "--set", "metrics=metrics.prom")
    return {
        found.name + (f"{{{labels}}}" if (labels := ",".join(f'{k}="{v}"' for k, v in found.labels.items())) else ""): (
            found.value
        )
        for family in text_string_to_metric_families((published_site.folder / "metrics.prom").read_text("utf-8"))
        for found in family.samples
    }


def test_no_alert_fires_after_a_run_that_went_well_and_each_fires_in_its_state(values: dict[str, float]) -> None:
    states: dict[str, dict[str, float]] = {
        "PublicMarketsRefused": {'public_markets_last_run_exit_code{command="rebuild"}': 3},
        "PublicMarketsOnHold": {"public_markets_hold_since_timestamp_seconds": NOW - 60},
        "PublicMarketsFailed": {'public_markets_last_run_exit_code{command="rebuild"}': 1},
        "PublicMarketsQuarantined": {'public_markets_quarantined_rows_new{relation="markets"}': 1},
        "PublicMarketsFalseVersion": {'public_markets_remarks{topic="false_version"}': 1},
        "PublicMarketsFewer": {'public_markets_markets{state="published"}': 8},
        "PublicMarketsSlow": {'public_markets_last_run_duration_seconds{command="rebuild"}': 3000},
        "PublicMarketsClockAhead": {"public_markets_published_as_of_timestamp_seconds": NOW + 3600},
        "PublicMarketsStale": {"public_markets_published_as_of_timestamp_seconds": NOW - 4 * 3600},
    }
    assert states.keys() | {"PublicMarketsMetricsMissing"} == RULES.keys()
    assert [alert for alert in RULES if fires(alert, values, values)] == []
    for alert, state in states.items():
        assert [name for name in RULES if fires(name, values | state, values)] == [alert]
    assert fires("PublicMarketsMetricsMissing", {}, {})


def test_the_rules_are_adapted_as_the_page_says(tmp_path: Path) -> None:
    shutil.copy(ALERTS, tmp_path)
    for line in typed(section("docs/monitoring.md", "Prometheus")):
        subprocess.run(["sh", "-ec", line], cwd=tmp_path, check=True)
    adapted = yaml.safe_load((tmp_path / ALERTS.name).read_text("utf-8"))
    expressions = [rule["expr"] for group in adapted["groups"] for rule in group["rules"]]
    assert expressions == [
        rule["expr"].replace("3600", "900").replace('"rebuild"', '"build"').replace("published_as_of", "built_as_of")
        for rule in RULES.values()
    ]
    assert [expression for expression in expressions if "rebuild" in expression or "published_as" in expression] == []


def test_every_alert_says_how_urgent_it_is_what_it_means_and_what_to_do() -> None:
    for rule in RULES.values():
        assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
