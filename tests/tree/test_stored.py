"""Stored JSON: its format is read before anything else of it."""

import pytest
from pydantic import ValidationError

from generator.tree import stored
from generator.tree.stored import FormatError


def test_the_format_of_a_file_is_read_whatever_else_it_holds() -> None:
    stored.require_format(b'{"format": 7, "else": []}', 7)
    with pytest.raises(FormatError, match=r"^format 7, this program knows 1$"):
        stored.require_format(b'{"format": 7, "else": []}', 1)
    for content in (b"{}", b"[]", b"", b'{"format": null}'):
        with pytest.raises(ValidationError):
            stored.require_format(content, 1)
