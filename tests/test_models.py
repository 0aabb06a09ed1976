"""Copies of frozen models take nothing that their fields do not."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict

from generator.models import replaced


class Inner(BaseModel):
    model_config = ConfigDict(frozen=True)

    number: int = 0


class Outer(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: Annotated[str, AfterValidator(str)] | None = None
    layout: Literal["pages", "chunks"] = "pages"
    inner: Inner | None = None
    rows: Mapping[str, tuple[str, ...]] = {}
    names: tuple[str, ...] = ()
    lifetime: timedelta = timedelta(0)
    anything: Any = None


GOOD: Mapping[str, object] = {
    "text": "new",
    "layout": "chunks",
    "inner": Inner(number=1),
    "rows": {"a": ("b",)},
    "names": ("a",),
    "lifetime": timedelta(1),
    "anything": object(),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_copy_has_the_new_value_and_all_others(name: str) -> None:
    copy = replaced(Outer(), **{name: GOOD[name]})
    assert getattr(copy, name) is GOOD[name]
    assert replaced(copy, **{name: getattr(Outer(), name)}) == Outer()


def test_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Outer has no field txt"):
        replaced(Outer(), txt="new")


@pytest.mark.parametrize(
    ("name", "value"),
    [("text", 1), ("layout", "heaps"), ("inner", {}), ("rows", "nonsense"), ("names", ["a"]), ("lifetime", 60)],
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"Outer.{name} cannot be of type"):
        replaced(Outer(), **{name: value})
