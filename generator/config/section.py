"""What all sections of the settings have in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of all settings: no unknown keys, no coercion, immutable, and no values in errors."""

    model_config = ConfigDict(allow_inf_nan=False, extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)
