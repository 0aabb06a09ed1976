"""Metrics of the last run, as a text file for the textfile collector of Prometheus' node_exporter.

A metric that a run does not set keeps its value from the run before.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from generator import filesystem
from generator.metrics import Sample, Samples, sample

#: Every metric with its help text; all are gauges. Readers compute ages: `time() - …_timestamp_seconds`.
_HELP: Final = {
    "last_run_timestamp_seconds": "When the command ended last.",
    "last_run_duration_seconds": "How long it took.",
    "last_run_exit_code": "Its exit code: 0 done, 1 failed, 3 a guard refused, 4 another run at work, 5 unknown.",
    "last_success_timestamp_seconds": "When the command last succeeded.",
    "built_as_of_timestamp_seconds": "As-of time of the output folder.",
    "published_as_of_timestamp_seconds": "As-of time of the store.",
    "markets": "Markets in the last build, by state.",
    "questions": "Questions in the last build; 0 where a site has none.",
    "question_members": "Markets in the last build that are in a question.",
    "quarantined_rows": "Rows that the last build quarantined because they break the contract, by relation.",
    "quarantined_rows_new": "Quarantined rows that are known to be new in the day before the last build, by relation.",
    "remarks": "Markets, categories and files that the last build has a remark about, by topic.",
    "remarks_new": "Remarks that are known to be new in the day before the last build, by topic.",
    "details": "Details of the last build: read, given a new market object, kept; audited were read.",
    "objects": "Objects in the last build.",
    "bytes": "Their size.",
    "dump_bytes": "Size of the files of the dump, by format; histories count as Parquet.",
    "change_feed_serial": "Serial of the change feed: one more with every change, from 1 in every session.",
    "change_feed_steps": "Steps that the change feed retains.",
    "change_step_lines": "Lines of the step that the last build made; 0 if it made none.",
    "uploaded_objects": "Objects that the last publish uploaded.",
    "deleted_objects": "Objects that the last publish deleted.",
    "requests": "Requests that the last publish made.",
    "hold_since_timestamp_seconds": "Since when no build is published, with who holds and why; 0 without a hold.",
    "cost_usd_per_month": "Estimated cost of publishing such builds, by store.",
}
_PREFIX: Final = "public_markets_"
#: Metrics of one command. Setting any other metric replaces all its samples.
_PER_COMMAND: Final = frozenset(name for name in _HELP if name.startswith("last_"))


def update(path: Path, samples: Samples) -> None:
    """Set these samples in the file, which is replaced atomically."""
    try:
        before = dict(_parsed(path.read_text("utf-8", "replace")))
    except FileNotFoundError:
        before = {}
    filesystem.replace(path, generate_latest(_Gauges(_merged(before, samples))))


class _Gauges(Collector):
    """Samples in the form that prometheus_client writes."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, text in _HELP.items():
            family = GaugeMetricFamily(_PREFIX + name, text)
            for key, value in sorted(self._samples.items()):
                if key.name == name:
                    family.add_sample(family.name, dict(key.labels), value)
            if family.samples:
                yield family


def _merged(before: Samples, samples: Samples) -> Samples:
    replaced = {key.name for key in samples} - _PER_COMMAND
    return {**{key: value for key, value in before.items() if key.name not in replaced}, **samples}


def _parsed(text: str) -> Iterator[tuple[Sample, float]]:
    """The samples of an earlier file. Each line is parsed by itself, so that a bad one spoils no other."""
    for line in text.split("\n"):
        try:
            for family in text_string_to_metric_families(line):
                for found in family.samples:
                    yield sample(found.name.removeprefix(_PREFIX), **found.labels), found.value
        except ValueError:
            continue
