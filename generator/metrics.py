"""What Prometheus is to know of the last run, as a text file for node_exporter's textfile collector.

Format: Prometheus text exposition 0.0.4. What a run does not tell keeps its value from the run before.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from generator import filesystem

#: Every metric with its help; all are gauges. Ages are for the reader to count: `time() - …_timestamp_seconds`.
_HELP: Final = {
    "last_run_timestamp_seconds": "When the command ended last.",
    "last_run_duration_seconds": "How long it took.",
    "last_run_exit_code": "Its exit code: 0 done, 1 failed, 3 a guard refused, 4 another run at work, 5 unknown.",
    "last_success_timestamp_seconds": "When the command ended well last.",
    "built_as_of_timestamp_seconds": "The instant that the output folder shows.",
    "published_as_of_timestamp_seconds": "The instant that the store shows.",
    "markets": "Markets by what became of them in the last build.",
    "quarantined_rows": "Rows that the last build left out because they break the contract, by relation.",
    "objects": "Objects of the last build.",
    "bytes": "Their bytes.",
    "uploaded_objects": "Objects that the last publish uploaded.",
    "deleted_objects": "Objects that the last publish deleted.",
    "requests": "Requests that the last publish made.",
    "cost_usd_per_month": "What publishing such builds costs, estimated, by store.",
}
_PREFIX: Final = "public_markets_"
#: These speak of one command; all others are replaced as a whole.
_PER_COMMAND: Final = frozenset(name for name in _HELP if name.startswith("last_"))
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

#: Values by `name{label="value"}`, the name without its prefix.
Samples = Mapping[str, float]


def sample(name: str, **labels: str) -> str:
    """The key of a sample."""
    told = ",".join(f'{label}="{value.translate(_ESCAPES)}"' for label, value in labels.items())
    return f"{name}{{{told}}}" if told else name


def update(path: Path, samples: Samples) -> None:
    """Replace the file by one that has these samples, and of the old ones what they do not replace."""
    try:
        before = dict(_parsed(path.read_text("utf-8", "replace")))
    except FileNotFoundError:
        before = {}
    filesystem.replace(path, encoded(_merged(before, samples)).encode())


def encoded(samples: Samples) -> str:
    """The file's text."""
    lines = []
    for name, text in _HELP.items():
        values = sorted(f"{_PREFIX}{key} {value!r}" for key, value in samples.items() if _name(key) == name)
        if values:
            lines += [f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} gauge", *values]
    return "".join(f"{line}\n" for line in lines)


def _merged(before: Samples, samples: Samples) -> Samples:
    replaced = {_name(key) for key in samples} - _PER_COMMAND
    return {**{key: value for key, value in before.items() if _name(key) not in replaced}, **samples}


def _parsed(text: str) -> Iterator[tuple[str, float]]:
    """The samples of an earlier file; whatever else there is in it is dropped."""
    for line in text.splitlines():
        key, _, value = line.removeprefix(_PREFIX).rpartition(" ")
        try:
            yield key, float(value)
        except ValueError:
            continue


def _name(key: str) -> str:
    return key.partition("{")[0]
