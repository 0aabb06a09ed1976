"""Validates rows of questions and of their memberships, each by itself; `questions` looks at all of them together.

It knows no SQL. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationError

from generator.api import contract, forms
from generator.api.questions import QuestionKind
from generator.findings import Finding
from generator.markets import faults, row_validation
from generator.markets.quarantine import Quarantine

#: The columns of `questions` that are read of a visible one; in the extended variant `slug`, too.
COLUMNS: Final = ("id", "title", "description", "kind", "created_at", "key")
_REPEATED: Final = Finding(column="id", text="several questions have the same", remedy=faults.REPEATED)
_Plain: Final = AfterValidator(forms.has_no_control_but_breaks)


class GivenQuestion(NamedTuple):
    """A question whose own columns are valid; slug and key are as the database has them."""

    id: str
    title: str
    description: str | None
    kind: QuestionKind
    created_at: str
    slug: Any
    key: Any


class QuestionRow(contract.Closed):
    """Validates a row of `questions`."""

    id: Annotated[forms.Uuid, BeforeValidator(forms.uuid)]
    title: Annotated[
        str, StringConstraints(max_length=contract.TITLE_LENGTH), _Plain, BeforeValidator(row_validation.text)
    ]
    description: Annotated[contract.Description | None, row_validation.optional(row_validation.text)]
    kind: QuestionKind
    created_at: Annotated[forms.Timestamp, BeforeValidator(row_validation.timestamp)]


def _label(value: Any) -> str | None:
    """Validate a label; a blank one is none."""
    label = row_validation.text(value)
    return label if label.strip() else None


class MemberRow(contract.Closed):
    """Validates a row of `question_members`, whose ids say what it belongs to; a blank label is None."""

    label: Annotated[
        Annotated[str, StringConstraints(max_length=contract.LABEL_LENGTH), _Plain] | None,
        row_validation.optional(_label),
    ]
    position: Annotated[
        Annotated[int, Field(ge=-contract.EXACT_INTEGER, le=contract.EXACT_INTEGER)] | None,
        row_validation.optional(row_validation.integer),
    ]
    payout: Annotated[forms.Probability | None, row_validation.optional(row_validation.probability)]


def valid(
    rows: Sequence[Mapping[str, Any]],
    unclear: Sequence[tuple[Any, Any]],
    quarantine: Quarantine,
) -> list[GivenQuestion]:
    """The visible questions that keep all rules of a row. Others are quarantined, and so are those that share an id.

    `unclear` are the id and the `is_listed` of rows of which nobody can tell whether they are visible.
    """
    for key, value in unclear:
        quarantine.reject("questions", key, faults.unclear("is_listed", value))
    counts = Counter(str(key).lower() for key in (*(row["id"] for row in rows), *(key for key, _ in unclear)))
    found = list[GivenQuestion]()
    for row in rows:
        wrong, question = _checked(row)
        if question and counts[question.id] > 1:
            wrong = [_REPEATED._replace(value=str(counts[question.id]))]
        if wrong or question is None:
            quarantine.reject("questions", row["id"], *wrong, title=row["title"] or "")
        else:
            found.append(GivenQuestion(**dict(question), slug=row.get("slug"), key=row["key"]))
    return found


def _checked(row: Mapping[str, Any]) -> tuple[list[Finding], QuestionRow | None]:
    try:
        return [], QuestionRow.model_validate({name: row[name] for name in QuestionRow.model_fields})
    except ValidationError as error:
        return faults.of(error), None


class ValidMember(NamedTuple):
    """A membership without its ids; a blank label is None."""

    label: str | None
    position: int | None
    payout: float | None


def member(values: Sequence[Any], market_id: str, quarantine: Quarantine) -> ValidMember | None:
    """A membership by its label, position and payout; None if it is bad, and quarantined."""
    label, position, payout = values
    if _is_usual(label, position, payout):
        return ValidMember(label, position, payout)
    try:
        row = MemberRow.model_validate({"label": label, "position": position, "payout": payout})
    except ValidationError as error:
        quarantine.reject("question_members", market_id, *faults.of(error))
        return None
    return ValidMember(row.label, row.position, row.payout)


def _is_usual(label: Any, position: Any, payout: Any) -> bool:
    """Whether these are as most are: `MemberRow` would change nothing, and takes four times as long."""
    return (
        type(label) is str
        and 0 < len(label) <= contract.LABEL_LENGTH
        and label.isprintable()
        and not label.isspace()
        and (position is None or (type(position) is int and abs(position) <= contract.EXACT_INTEGER))
        and (payout is None or (type(payout) is float and 0 < payout <= 1))
    )


def blocked_markets(memberships: Iterable[Sequence[Any]]) -> dict[str, list[str]]:
    """The markets with these memberships of blocked questions (ids of question and market), each with its questions.

    What is no UUID names no market.
    """
    found = dict[str, set[str]]()
    for question_id, market_id in memberships:
        if isinstance(market_id, str) and forms.is_uuid(market_id):
            found.setdefault(market_id.lower(), set()).add(question_id)
    return {market_id: sorted(found[market_id]) for market_id in sorted(found)}
