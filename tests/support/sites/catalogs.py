"""The catalog of a database, read in one piece."""

from datetime import datetime

from generator.api import forms
from generator.builder import collecting
from generator.site.catalog import Catalog
from generator.source.queries import EVERYTHING
from generator.source.reader import Reader
from tests.support.sites.builds import AS_OF


def catalog_of(reader: Reader, as_of: datetime = AS_OF) -> Catalog:
    """Everything that the database shows."""
    survey = reader.survey()
    found = reader.read(EVERYTHING, survey.facts, as_of)
    return collecting.catalog_of(survey, (market for _, market in found.public()), forms.instant(as_of))
