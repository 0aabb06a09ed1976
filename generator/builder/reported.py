"""What a saved report says of bad rows and remarks, for `status`; reports of other versions lack some of it. Pure."""

from collections.abc import Iterable

from pydantic import ValidationError

from generator.tree import files
from generator.tree.status import Noted
from generator.tree.stored import Instant, StoredModel
from generator.tree.told import is_new


class _Row(StoredModel, extra="ignore"):
    rows: int = 1
    since: Instant | None = None  # not known since when


class _Reported(StoredModel, extra="ignore"):
    """The part of a report that counts, whichever version wrote it; a takedown leaves numbers alone."""

    as_of: Instant
    quarantined: list[_Row]
    quarantined_unnamed: int = 0
    remarks: list[str]
    remarks_unnamed: int = 0
    remarks_since: list[Instant | None] | None = None


def noted(report: bytes | None) -> Noted | None:
    """What the last build noted; None without a report."""
    if report is None:
        return None
    try:
        said = _Reported.model_validate_json(report)
    except ValidationError:
        return Noted(damage=f"{files.REPORT} is damaged or not this program's, and the next build makes it anew")
    new_rows = sum(row.rows for row in said.quarantined if is_new(row.since, said.as_of))
    return Noted(
        quarantined=sum(row.rows for row in said.quarantined) + said.quarantined_unnamed,
        new_quarantined=None if said.remarks_since is None else new_rows,
        remarks=len(said.remarks) + said.remarks_unnamed,
        new_remarks=None if said.remarks_since is None else _new(said.remarks_since, said.as_of),
    )


def _new(sinces: Iterable[str | None], as_of: str) -> int:
    return sum(is_new(since, as_of) for since in sinces)
