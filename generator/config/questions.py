"""The settings of questions."""

from pydantic import Field

from generator.config.scalars import Section


class Questions(Section):
    """Questions: groups of markets that answer one thing."""

    enabled: bool | None = Field(
        default=None,
        description="Whether the API has questions; null: if the database has questions and question_members.",
    )
    lists: bool = Field(
        default=True, description="Whether to publish lists of questions, beside details and definitions."
    )
