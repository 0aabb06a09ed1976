"""Names of metrics, and the values that a run has for them; `metrics_file` writes them."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias


class Sample(NamedTuple):
    """What a value belongs to: the metric's name without its prefix, and its labels."""

    name: str
    labels: tuple[tuple[str, str], ...]


Samples: TypeAlias = Mapping[Sample, float]


def sample(name: str, /, **labels: str) -> Sample:
    """The key of a value."""
    return Sample(name, tuple(sorted(labels.items())))
