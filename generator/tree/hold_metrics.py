"""The hold as a metric."""

from datetime import datetime
from typing import Final

from generator.metrics import Samples, sample
from generator.tree.blocklist import Hold

_METRIC: Final = "hold_since_timestamp_seconds"
#: What metrics say of a place without a hold.
NO_HOLD: Final[Samples] = {sample(_METRIC): 0}


def hold_samples(hold: Hold) -> Samples:
    """What metrics say of a hold."""
    return {sample(_METRIC, who=hold.who, reason=hold.reason): datetime.fromisoformat(hold.since).timestamp()}
