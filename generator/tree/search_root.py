"""What the root of a search index, as it is stored, says of the index. Pure."""

from collections.abc import Mapping, Sequence
from itertools import chain

from pydantic import BaseModel


class _Objects(BaseModel):
    """Everything that a root names."""

    vectors: Mapping[str, Sequence[str]]
    table: str
    buckets: Sequence[str]


def names(root: bytes) -> tuple[str, ...]:
    """The names of the objects that a root leads to, in order; raise ValueError when it is none."""
    found = _Objects.model_validate_json(root)
    return tuple(dict.fromkeys((*chain.from_iterable(found.vectors.values()), found.table, *found.buckets)))
